//! The end-to-end checks, on the demo's cluster and its local cloud.

use cloudkeel_e2e::{Options, Outcome, run};

use crate::cluster::Cluster;
use crate::process::{DEADLINE, Demo};

#[tokio::test]
async fn the_end_to_end_checks_pass_on_the_cluster_and_the_cloud_of_the_demo() {
    let demo = Demo::start(&["--scenario", "none", "--page", "off"]);
    let cluster = Cluster::of(&demo).await;
    let options = Options {
        // Its kubelets answer on node ports themselves.
        image: None,
        timeout: DEADLINE,
    };
    let report = run(cluster.client(), &options).await;
    assert!(report.passed(), "{}", report.text());
    // All of them were tried: the demo has several Nodes.
    let skipped = |outcome: &Outcome| matches!(outcome, Outcome::Skipped(_));
    assert!(
        !report.cases.iter().any(|case| skipped(&case.outcome)),
        "{}",
        report.text()
    );
    assert_eq!(report.cases.len(), 6);
    // It can be run again: nothing was left behind.
    let again = run(cluster.client(), &options).await;
    assert!(again.passed(), "{}", again.text());
}

/// Without a manager there is no address, and the report says so.
#[tokio::test]
async fn a_cluster_without_a_manager_fails_the_checks_and_is_cleaned_up() {
    let api = cloudkeel_embedded::EmbeddedApi::new();
    let options = Options {
        image: None,
        timeout: std::time::Duration::ZERO,
    };
    let report = run(&api.client("checks"), &options).await;
    assert!(!report.passed());
    let outcome = |index: usize| report.cases[index].outcome.clone();
    let Outcome::Failed(why) = outcome(0) else {
        panic!("{}", report.text());
    };
    assert!(why.contains("the cluster has no Node"), "{why}");
    assert!(matches!(outcome(1), Outcome::Failed(why) if why.contains("no address")));
    assert!(matches!(outcome(2), Outcome::Skipped(_)));
    assert_eq!(outcome(5), Outcome::Passed, "{}", report.text());
}
