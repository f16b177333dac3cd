//! The example through the conformance kit.

use cloudkeel_api::{ConfigSource, ProviderFactory as _, ProviderInput};
use cloudkeel_provider_example::Example;
use cloudkeel_testkit::conformance::{self, SimulatedAdapter};
use cloudkeel_testkit::simulated_cloud::{InProcess, SimulatedCloud};
use cloudkeel_toolkit::{CloudFactory, Wiring};
use futures::FutureExt as _;
use serde_json::json;

/// What the example leaves out.
const GAPS: &str = "
    load-balancers/owned-are-listed, load-balancers/source-ranges, load-balancers/affinity,
    load-balancers/proxy-protocol, load-balancers/algorithm, load-balancers/internal, load-balancers/chosen-address,
    load-balancers/dual-stack, load-balancers/name, load-balancers/size, load-balancers/hostname,
    load-balancers/name-taken-back, load-balancers/size-taken-back, load-balancers/health-check-taken-back,
    load-balancers/health-check-by-http, load-balancers/health-check-per-port, load-balancers/drain,
    load-balancers/targets-by-address, load-balancers/refused-target-is-reported, load-balancers/released-stays,
    load-balancers/released-may-be-adopted, load-balancers/cancelled-release, load-balancers/slow-jobs-are-pending,
    load-balancers/targets-over-the-limit, load-balancers/listeners-over-the-limit,
    load-balancers/foreign-parts-*: left as an exercise
    load-balancers/annotations-taken-back, load-balancers/node-selector,
    load-balancers/unknown-annotations-are-reported, volumes/*, webhooks/*, background/*: the example has none
    load-balancers/udp, load-balancers/sctp, load-balancers/mixed-protocols: the example forwards TCP only
    load-balancers/shared-*: each Service has a balancer of its own
";

fn adapter() -> SimulatedAdapter {
    let adapter = SimulatedAdapter::new("example", |cloud, context| {
        async move {
            let factory = CloudFactory::<Example>::wired(Wiring::over(cloud.transport()));
            let config = json!({"endpoint": InProcess::URL, "token": SimulatedCloud::TOKEN});
            let input = ProviderInput {
                config: ConfigSource::Own(config),
                ..ProviderInput::default()
            };
            factory.build(input, context).await
        }
        .boxed()
    });
    adapter
        .with_ids(|machine| format!("example://{machine}"))
        .with_gaps(&[GAPS])
}

#[tokio::test(start_paused = true)]
async fn the_example_conforms_and_the_page_says_so() {
    let report = conformance::run(&adapter()).await;
    let documented = conformance::verify(&report, env!("CARGO_MANIFEST_DIR"));
    documented.unwrap_or_else(|why| panic!("{why}"));
}
