//! How many calls the work of a cluster takes.

use cloudkeel_api::{DesiredState, Shared};
use cloudkeel_emulator_openstack::{Kind, Operation};

use crate::lab::{Lab, spec};

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_take_two_lists_and_not_two_thousand_calls() {
    let lab = Lab::new("").await;
    let nodes: Vec<_> = lab.nodes(1_000).into_iter().map(Shared::from).collect();
    let instances = lab.provider.instances().unwrap();
    let list = instances.list().await.unwrap();
    assert_eq!(list.instances().len(), 1_000);
    let calls = lab.cloud.calls();
    assert_eq!(
        (
            calls.of(Operation::ListServers),
            calls.of(Operation::ListPorts)
        ),
        (1, 1 + 1)
    );
    lab.cloud.reset_calls();
    let found = instances.find_many(&nodes, None).await;
    assert_eq!(found.len(), 1_000);
    assert!(lab.cloud.calls().total() <= 3, "{:?}", lab.cloud.calls());
}

#[tokio::test(start_paused = true)]
async fn fifty_targets_are_one_call_to_create_and_one_to_change() {
    let lab = Lab::new("").await;
    let nodes = lab.nodes(51);
    lab.settle(&spec(&[80], &nodes[..50])).await;
    assert_eq!(
        lab.mutating(),
        2,
        "the load balancer with all of it, and its floating IP"
    );
    assert_eq!(lab.cloud.all(Kind::Member).len(), 50);
    lab.cloud.reset_calls();
    lab.settle(&spec(&[80], &nodes[1..])).await;
    assert_eq!(
        (lab.mutating(), lab.cloud.calls().of(Operation::SetMembers)),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_settled_service_takes_five_reads_and_a_hundred_of_them_five_lists_and_their_targets() {
    let lab = Lab::new("").await;
    let nodes = lab.nodes(3);
    let one = spec(&[80], &nodes);
    lab.settle(&one).await;
    lab.cloud.reset_calls();
    lab.balancers()
        .plan(DesiredState::Present(&one))
        .await
        .unwrap();
    // The load balancer, its floating IP, listeners, pools, members.
    assert_eq!(lab.cloud.calls().total(), 5, "{:?}", lab.cloud.call_log());
    let mut specs = vec![one];
    for number in 2..=100 {
        let mut more = spec(&[80], &nodes);
        more.balancer_ref.service.name = format!("web-{number}");
        more.balancer_ref.service.uid = format!("uid-{number}");
        lab.settle(&more).await;
        specs.push(more);
    }
    lab.cloud.reset_calls();
    let looked = lab.balancers().observe_all(&specs).await;
    assert!(
        looked
            .iter()
            .all(|look| look.as_ref().unwrap().plan.is_empty())
    );
    assert_eq!(lab.cloud.calls().total(), 5 + 100);
}
