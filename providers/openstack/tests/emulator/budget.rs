//! What an hour costs.

use std::time::Duration;

use cloudkeel_api::Shared;
use cloudkeel_emulator_openstack::Operation;

use crate::lab::{Lab, spec};

/// How often the controllers look when nothing changes: a list of machines and a look at balancers every ten minutes.
const ROUND: Duration = Duration::from_mins(10);

#[tokio::test(start_paused = true)]
async fn a_quiet_hour_with_a_thousand_nodes_and_a_hundred_services_costs_655_reads() {
    let lab = Lab::new("[Route]\nrouter-id=00000000-0000-4000-9000-000000000005").await;
    let nodes = lab.nodes(1_000);
    let mut specs = Vec::new();
    for number in 0..100 {
        // Calls do not depend on how many targets each has.
        let mut one = spec(&[80], &nodes[..3]);
        one.balancer_ref.service.name = format!("web-{number}");
        one.balancer_ref.service.uid = format!("uid-{number}");
        lab.settle(&one).await;
        specs.push(one);
    }
    let nodes: Vec<_> = nodes.into_iter().map(Shared::from).collect();
    lab.cloud.reset_calls();
    for _ in 0..6 {
        tokio::time::sleep(ROUND).await;
        let list = lab.provider.instances().unwrap().list().await.unwrap();
        assert_eq!(list.instances().len(), 1_000);
        for observed in lab.balancers().observe_all(&specs).await {
            assert!(observed.unwrap().plan.is_empty());
        }
    }
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 0);
    let each_round = |operation| calls.of(operation) / 6;
    assert_eq!(each_round(Operation::ListServers), 1);
    // One page for the servers' ports and one for the rest.
    assert_eq!(each_round(Operation::ListPorts), 2);
    assert_eq!(each_round(Operation::ListMembers), 100);
    let others = [
        Operation::ListLoadBalancers,
        Operation::ListListeners,
        Operation::ListPools,
        Operation::ListFloatingIps,
        Operation::ListSecurityGroups,
        Operation::ListMonitors,
    ];
    for operation in others {
        assert_eq!(each_round(operation), 1, "{operation}");
    }
    // A token serves for hours, and what Octavia can do is asked for once an hour.
    assert_eq!(calls.of(Operation::Login), 0);
    assert_eq!(calls.of(Operation::ListVersions), 1);
    assert_eq!(calls.total(), 6 * (1 + 2 + 100 + 6) + 1, "{calls:?}");
    // A pass of the route controller is one more.
    lab.cloud.reset_calls();
    lab.provider.routes().unwrap().list(&nodes).await.unwrap();
    assert_eq!(lab.cloud.calls().total(), 1, "{:?}", lab.cloud.calls());
}
