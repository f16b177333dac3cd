//! What an hour costs.

use std::time::Duration;

use cloudkeel_emulator_digitalocean::Operation;

use crate::lab::{Lab, balancers, instances, settle, spec};

/// How often the controllers look when nothing changes: a list of machines and a look at balancers every ten minutes.
const ROUND: Duration = Duration::from_mins(10);

/// The budget of a token for an hour.
const BUDGET: u64 = 5_000;

#[tokio::test(start_paused = true)]
async fn a_quiet_hour_with_a_thousand_droplets_and_a_hundred_services_costs_42_calls() {
    let lab = Lab::new(1_000);
    lab.cloud
        .change_settings(|settings| settings.burst_limit = None);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut specs = Vec::new();
    for number in 0..100 {
        // Calls do not depend on how many targets each has.
        let mut spec = spec(&[80, 443], &nodes[..50]);
        spec.balancer_ref.service.uid = format!("{number:08}-0000-0000-0000-000000000000");
        settle(&provider, &mut spec).await;
        specs.push(spec);
    }
    let made = lab.cloud.calls();
    assert_eq!(made.mutations(), 100, "one call creates a load balancer");
    lab.cloud.reset_calls();
    for _ in 0..6 {
        tokio::time::sleep(ROUND).await;
        let list = instances(&provider).list().await.unwrap();
        assert_eq!(list.instances().len(), 1_000);
        for observed in balancers(&provider).observe_all(&specs).await {
            assert!(observed.unwrap().plan.is_empty());
        }
    }
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 0);
    // Five pages of droplets and two of load balancers, which show all their droplets, six times.
    assert_eq!(calls.of(Operation::ListDroplets), 30);
    assert_eq!(calls.of(Operation::ListLoadBalancers), 12);
    assert_eq!(calls.total(), 42);
    assert!(calls.total() * 100 < BUDGET, "less than a hundredth");
}

#[tokio::test(start_paused = true)]
async fn a_new_node_costs_one_change_per_service_and_few_reads() {
    let lab = Lab::new(20);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut specs = Vec::new();
    for number in 0..10 {
        let mut spec = spec(&[80], &nodes[..19]);
        spec.balancer_ref.service.uid = format!("{number:08}-0000-0000-0000-000000000000");
        settle(&provider, &mut spec).await;
        specs.push(spec);
    }
    lab.cloud.reset_calls();
    for before in specs {
        let mut after = spec(&[80], &nodes);
        after.balancer_ref = before.balancer_ref;
        settle(&provider, &mut after).await;
    }
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 10);
    // Each is read before and after its change. One list of droplets shows that the new one is there.
    assert_eq!(calls.of(Operation::GetLoadBalancer), 20);
    assert!(calls.total() <= 31, "{calls:?}");
}
