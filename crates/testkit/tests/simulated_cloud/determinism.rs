//! The same seed and the same calls make the same log.

use std::time::Duration;

use cloudkeel_api::DesiredState;
use cloudkeel_testkit::simulated_cloud::{
    Fault, FaultMatch, Latency, LoggedCall, Operation, Settings,
};

use crate::support::Lab;

async fn run(seed: u64) -> Vec<LoggedCall> {
    let lab = Lab::set_up(
        30,
        Settings {
            seed,
            page_size: 10,
            latency: Latency {
                fixed: Duration::from_millis(20),
                jitter: Duration::from_millis(500),
            },
            ..Settings::default()
        },
    )
    .await;
    lab.cloud
        .faults()
        .times(Operation::ListMachines, 2, Fault::status(503))
        .times(FaultMatch::any(), 1, Fault::BrokenBefore);
    lab.instances().list().await.unwrap();
    let known_instance = lab.known_instance_besides(0).await;
    lab.cloud.destroy(lab.machines[0].id).unwrap();
    lab.instances()
        .find(&lab.node(0), known_instance.as_ref())
        .await;
    let spec = lab.spec(&[80, 443]);
    lab.balancers()
        .apply(DesiredState::Present(&spec))
        .await
        .unwrap();
    lab.balancers()
        .apply(DesiredState::Absent(&spec.balancer_ref))
        .await
        .unwrap();
    lab.cloud.call_log()
}

/// Each run has a runtime of its own, so that the paused clocks start alike.
fn log_of(seed: u64) -> Vec<LoggedCall> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(run(seed))
}

#[test]
fn the_same_seed_gives_the_same_log_and_another_seed_another() {
    let log = log_of(7);
    assert!(log.len() > 10, "{} calls", log.len());
    assert_eq!(log, log_of(7));
    let times = |log: &[LoggedCall]| log.iter().map(|call| call.at).collect::<Vec<_>>();
    assert_ne!(times(&log), times(&log_of(8)));
}
