//! The example through the conformance kit.

use std::path::Path;
use std::sync::Arc;

use cloudkeel_api::{ConfigSource, ProviderFactory as _, ProviderInput};
use cloudkeel_provider_example::ExampleFactory;
use cloudkeel_testkit::conformance::{self, SimulatedSetup};
use cloudkeel_testkit::simulated_cloud::{InProcess, SimulatedCloud};
use futures::FutureExt as _;
use serde_json::json;

/// What the example leaves as an exercise.
const LEFT_OUT: &[(&str, &str)] = &[
    ("load-balancers/algorithm", "left as an exercise"),
    ("load-balancers/name", "left as an exercise"),
    ("load-balancers/size", "left as an exercise"),
    ("load-balancers/hostname", "left as an exercise"),
    ("load-balancers/check-by-http", "left as an exercise"),
    ("load-balancers/check-per-port", "left as an exercise"),
];

fn setup() -> SimulatedSetup {
    let setup = SimulatedSetup::new("example", |cloud, context| {
        async move {
            let factory = ExampleFactory(Some(Arc::new(cloud.transport())));
            let config = json!({"endpoint": InProcess::URL, "token": SimulatedCloud::TOKEN});
            let input = ProviderInput {
                config: ConfigSource::Own(config),
                ..ProviderInput::default()
            };
            let built = factory.build(input, context).await;
            built.map_err(|error| error.to_string())
        }
        .boxed()
    });
    setup
        .with_ids(|machine| format!("example://{machine}"))
        .with_gaps(LEFT_OUT)
}

#[tokio::test(start_paused = true)]
async fn the_example_conforms_and_the_page_says_so() {
    let report = conformance::run(&setup()).await;
    assert!(report.is_clean(), "{report}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    if let Err(stale) = conformance::compare_with_page(&report, &page) {
        panic!("{stale}");
    }
}
