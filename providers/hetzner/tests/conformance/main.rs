//! The Hetzner provider on the emulator of Hetzner's APIs, through the conformance kit.

mod emulator;
mod seen;

use std::path::Path;

use async_trait::async_trait;
use cloudkeel_testkit::conformance::{self, Emulator, Setup, Stop};

use self::emulator::HetznerEmulator;

struct Hetzner;

#[async_trait]
impl Setup for Hetzner {
    fn name(&self) -> &'static str {
        "hcloud"
    }

    async fn new_cloud(&self) -> Result<Box<dyn Emulator>, Stop> {
        Ok(Box::new(HetznerEmulator::new()?))
    }
}

#[tokio::test(start_paused = true)]
async fn the_hetzner_provider_conforms_and_the_page_says_so() {
    let report = conformance::run(&Hetzner).await;
    assert!(report.is_clean(), "{report}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    if let Err(stale) = conformance::compare_with_page(&report, &page) {
        panic!("{stale}");
    }
}
