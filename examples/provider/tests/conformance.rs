//! The example through the conformance kit.

use cloudkeel_api::{ConfigSource, ProviderFactory as _, ProviderInput};
use cloudkeel_provider_example::Example;
use cloudkeel_testkit::conformance::{self, SimulatedAdapter};
use cloudkeel_testkit::simulated_cloud::{InProcess, SimulatedCloud};
use cloudkeel_toolkit::{CloudFactory, Wiring};
use futures::FutureExt as _;
use serde_json::json;

const EXERCISE: &str = "left as an exercise";
const OWN: &str = "each Service has a balancer of its own";
const TCP: &str = "the example forwards TCP only";
const NONE: &str = "the example has none";

/// What the example leaves out.
const GAPS: &[(&str, &str)] = &[
    ("load-balancers/owned-are-listed", EXERCISE),
    ("load-balancers/source-ranges", EXERCISE),
    ("load-balancers/affinity", EXERCISE),
    ("load-balancers/proxy-protocol", EXERCISE),
    ("load-balancers/algorithm", EXERCISE),
    ("load-balancers/internal", EXERCISE),
    ("load-balancers/chosen-address", EXERCISE),
    ("load-balancers/dual-stack", EXERCISE),
    ("load-balancers/name", EXERCISE),
    ("load-balancers/size", EXERCISE),
    ("load-balancers/hostname", EXERCISE),
    ("load-balancers/name-taken-back", EXERCISE),
    ("load-balancers/size-taken-back", EXERCISE),
    ("load-balancers/health-check-taken-back", EXERCISE),
    ("load-balancers/health-check-by-http", EXERCISE),
    ("load-balancers/health-check-per-port", EXERCISE),
    ("load-balancers/drain", EXERCISE),
    ("load-balancers/targets-by-address", EXERCISE),
    ("load-balancers/refused-target-is-reported", EXERCISE),
    ("load-balancers/released-stays", EXERCISE),
    ("load-balancers/released-may-be-adopted", EXERCISE),
    ("load-balancers/cancelled-release", EXERCISE),
    ("load-balancers/slow-jobs-are-pending", EXERCISE),
    ("load-balancers/annotations-taken-back", NONE),
    ("load-balancers/node-selector", NONE),
    ("load-balancers/unknown-annotations-are-reported", NONE),
    ("load-balancers/targets-over-the-limit", EXERCISE),
    ("load-balancers/listeners-over-the-limit", EXERCISE),
    ("load-balancers/udp", TCP),
    ("load-balancers/sctp", TCP),
    ("load-balancers/mixed-protocols", TCP),
    ("load-balancers/shared-*", OWN),
    ("load-balancers/foreign-parts-*", EXERCISE),
    ("volumes/*", NONE),
    ("webhooks/*", NONE),
    ("background/*", NONE),
];

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
        .with_gaps(GAPS)
}

#[tokio::test(start_paused = true)]
async fn the_example_conforms_and_the_page_says_so() {
    let report = conformance::run(&adapter()).await;
    let documented = conformance::verify(&report, env!("CARGO_MANIFEST_DIR"));
    documented.unwrap_or_else(|why| panic!("{why}"));
}
