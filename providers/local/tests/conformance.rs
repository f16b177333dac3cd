//! The local provider on the simulated cloud, through the conformance kit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::CloudProvider;
use cloudkeel_testkit::conformance::{self, SimulatedSetup};
use futures::FutureExt as _;

fn setup() -> SimulatedSetup {
    SimulatedSetup::new("local", |cloud, context| {
        async move {
            let provider = cloud.provider(&context).await;
            let provider = provider.map_err(|error| error.to_string())?;
            Ok(Arc::new(provider) as Arc<dyn CloudProvider>)
        }
        .boxed()
    })
}

#[tokio::test(start_paused = true)]
async fn the_local_provider_conforms_and_the_page_says_so() {
    let report = conformance::run(&setup()).await;
    assert!(report.is_clean(), "{report}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    if let Err(stale) = conformance::compare_with_page(&report, &page) {
        panic!("{stale}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_conforms_as_well_on_a_cloud_that_takes_its_time() {
    let slow = setup().with_slow_actions(Duration::from_secs(30));
    let report = conformance::run(&slow).await;
    assert!(report.is_clean(), "{report}");
}
