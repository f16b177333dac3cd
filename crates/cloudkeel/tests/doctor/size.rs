//! What `doctor` costs in a large cluster.

use std::time::Instant;

use cloudkeel_testkit::simulated_cloud::MachineSpec;
use futures::StreamExt as _;

use crate::lab::Lab;

const NODES: usize = 1_000;
const SERVICES: usize = 50;

/// Prints the time and the calls. `docs/troubleshoot.md` has the numbers.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: cargo xtask test --tier long"]
async fn a_thousand_nodes_are_checked_with_few_calls() {
    let lab = Lab::open().await;
    let nodes = (0..NODES).map(|number| {
        let lab = &lab;
        async move {
            let name = format!("n{number}");
            lab.initialised_as(&name, |node| node).await;
        }
    });
    futures::stream::iter(nodes)
        .buffer_unordered(16)
        .collect::<Vec<_>>()
        .await;
    for number in 0..SERVICES {
        let name = format!("s{number}");
        lab.serve(lab.service(&name), &name, "n0").await;
    }
    lab.machine_of(MachineSpec::named("spare"));
    lab.world.cloud.reset_calls();
    let began = Instant::now();
    let diagnosis = lab.doctor().await;
    let took = began.elapsed();
    let calls = lab.world.cloud.calls();
    println!(
        "doctor: {NODES} Nodes, {SERVICES} Services: {} findings in {took:?} with {} calls to the cloud: {calls:?}",
        diagnosis.findings.len(),
        calls.total()
    );
    assert!(calls.total() < 60, "{calls:?}");
    assert_eq!(calls.mutations(), 0);
}
