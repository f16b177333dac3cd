//! The vSphere provider on a simulated vCenter, through the conformance kit.

mod cloud;

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_testkit::conformance::{Adapter, Stop, TestCloud, run, verify};

const NSX: &str = "load balancers and routes of NSX-T are not supported";
const NONE: &str = "vSphere's provider has none";
const NO_TOTAL: &str = "vCenter's lists announce no total; what they lack is looked up";

const GAPS: &[(&str, &str)] = &[
    ("instances/other-account-proves-nothing", "the simulator has no second inventory to show"),
    ("instances/terminated-*", "a deleted virtual machine is not shown any more"),
    ("instances/truncated-page-is-an-error", NO_TOTAL),
    ("instances/lost-page-is-an-error", NO_TOTAL),
    ("load-balancers/*", NSX),
    ("routes/*", NSX),
    ("volumes/*", NONE),
    ("webhooks/*", NONE),
    ("background/*", NONE),
];

struct VCenters;

#[async_trait]
impl Adapter for VCenters {
    fn name(&self) -> &'static str {
        "vsphere"
    }

    async fn new_cloud(&self) -> Result<Box<dyn TestCloud>, Stop> {
        Ok(Box::new(cloud::VSphereTestCloud::new().await?))
    }

    fn gaps(&self) -> &[(&'static str, &'static str)] {
        GAPS
    }

    fn timeout(&self) -> Duration {
        Duration::from_mins(3)
    }

    /// Answers come by real connections, and some checks wait for slow ones.
    fn concurrency(&self) -> usize {
        8
    }
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn the_vsphere_provider_conforms_and_the_page_says_so() {
    let report = run(&VCenters).await;
    verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
}
