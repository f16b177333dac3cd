//! The program itself in the place of aws-cloud-controller-manager, in clusters that this made: the tier `go-ccm-aws`
//! recorded them.

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, wait_for_service_gone};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::aws_cluster::{AwsCluster, Changes, NODES, changes, each, stop};
use crate::aws_services::SCENARIOS;
use crate::go_aws::record_file;
use crate::harness::DEADLINE;

#[tokio::test]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn clusters_of_the_go_ccm_are_taken_over_without_a_write_and_then_followed() {
    for scenario in &SCENARIOS {
        println!("settings {}", scenario.name);
        let text = std::fs::read_to_string(record_file(scenario.name)).expect("a record");
        let record: Value = serde_json::from_str(&text).expect("JSON");
        let cluster = AwsCluster::new(scenario).await;
        cluster.restore(&record).await;
        let restored = cluster.left().await;
        assert_eq!(restored["state"], record["state"], "the record is played");
        cluster.moto.calls().await;
        takes_over(&cluster).await;
    }
}

async fn takes_over(cluster: &AwsCluster) {
    let manager = cluster.start().await;
    let mut calls = cluster.first_pass().await;
    assert_eq!(changes(&calls), Changes::new(), "{}", manager.log());

    // A new Node and a Service that goes show that everything was seen before; they are all that is changed.
    cluster.moto.change("add_instance", json!(["node-5"])).await;
    let node = NodeBuilder::new("node-5").pod_cidr("10.244.5.0/24");
    node.create(&cluster.client)
        .await
        .expect("the node is made");
    cluster.wait_for_nodes(NODES.len() + 1).await;
    eventually("the new target", DEADLINE, || async {
        let state = cluster.left().await["state"].clone();
        let lists = each(&state["classic"]).chain(each(&state["target groups"]));
        let without = lists.filter(|it| !each(&it["targets"]).any(|id| id == "{instance node-5}"));
        // One Service takes only Nodes with a label.
        let selecting = usize::from(cluster.scenario.name == "usual");
        without.count() == selecting
    })
    .await;
    let gone = cluster.scenario.services[0].name;
    let deleted = cluster
        .services()
        .delete(gone, &DeleteParams::default())
        .await;
    deleted.expect("the service can be deleted");
    wait_for_service_gone(&cluster.client, "default", gone, DEADLINE).await;
    stop(manager).await;

    calls.extend(cluster.moto.calls().await);
    let expected = cluster.scenario.changes.iter();
    let expected: Changes = expected.map(|(name, n)| ((*name).to_owned(), *n)).collect();
    assert_eq!(changes(&calls), expected);
    let written: Vec<_> = cluster.written().into_iter().collect();
    let service = format!("services/status {gone}");
    let expected = ["nodes node-5", "nodes/status node-5", service.as_str()];
    assert_eq!(written, expected);
}
