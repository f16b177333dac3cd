//! The local provider on the simulated cloud, through the conformance kit.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::CloudProvider;
use cloudkeel_provider_local::TYPE;
use cloudkeel_testkit::conformance::{self, SimulatedAdapter};
use futures::FutureExt as _;

const GAPS: &str = "
    load-balancers/sctp: the local cloud forwards TCP and UDP
    load-balancers/size-taken-back, load-balancers/annotations-taken-back: documented: a size is left alone if it is not given
    load-balancers/node-selector: Nodes are selected by the neutral annotation only
    load-balancers/shared-*: each Service has a balancer of its own
    webhooks/*, background/*: the local cloud has none
";

fn adapter() -> SimulatedAdapter {
    let adapter = SimulatedAdapter::new("local", |cloud, context| {
        async move {
            let provider = cloud.provider(&context).await?;
            Ok(Arc::new(provider) as Arc<dyn CloudProvider>)
        }
        .boxed()
    });
    adapter
        .with_gaps(&[GAPS])
        .with_samples(|samples| samples.annotations = vec![(TYPE.name(), "large")])
}

#[tokio::test(start_paused = true)]
async fn the_local_provider_conforms_and_the_page_says_so() {
    let report = conformance::run(&adapter()).await;
    let documented = conformance::verify(&report, env!("CARGO_MANIFEST_DIR"));
    documented.unwrap_or_else(|why| panic!("{why}"));
}

#[tokio::test(start_paused = true)]
async fn it_conforms_as_well_on_a_cloud_that_takes_its_time() {
    let slow = adapter().with_settings(|now| now.action_duration = Duration::from_secs(30));
    let report = conformance::run(&slow).await;
    assert!(report.is_clean(), "{report}");
}
