//! Load balancers of AWS send traffic to Nodes of another cloud, on a real API server.

use std::collections::BTreeSet;

use cloudkeel_testkit::cluster::{ServiceBuilder, eventually};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::harness::DEADLINE;
use crate::scrape::free_port;
use crate::several::{Cluster, NAMESPACE};

const TYPE: &str = "service.beta.kubernetes.io/aws-load-balancer-type";
const CLOUDS: [&str; 2] = ["aws", "openstack"];

/// The only network load balancer.
async fn network(cluster: &Cluster) -> Value {
    let state = cluster.clouds.aws().change("state", json!([])).await;
    state["network"][0].clone()
}

async fn targets(cluster: &Cluster) -> BTreeSet<String> {
    let have = network(cluster).await;
    let targets = have["targets"].as_array().into_iter().flatten();
    let targets = targets.filter_map(Value::as_str).map(str::to_owned);
    targets.collect()
}

/// The internal IPv4 address of a Node.
async fn address(cluster: &Cluster, node: &str) -> String {
    let node = cluster.node(node).await.expect("the Node is there");
    let addresses = node.status.and_then(|status| status.addresses);
    let mut addresses = addresses.into_iter().flatten();
    let internal = addresses.find(|it| it.type_ == "InternalIP" && !it.address.contains(':'));
    internal.expect("an address").address
}

/// Whether a Service has an Event with this reason that says this.
async fn is_reported(cluster: &Cluster, service: &str, reason: &str, part: &str) -> bool {
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let of_service = format!("involvedObject.name={service},reason={reason}");
    let found = events
        .list(&ListParams::default().fields(&of_service))
        .await;
    let found = found.expect("Events can be listed").items;
    let says = |event: &Event| event.message.as_deref().unwrap_or_default().contains(part);
    found.iter().any(says)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn nodes_of_another_cloud_are_behind_a_balancer_of_aws() {
    let cluster = Cluster::with_aws().await;
    let _manager = cluster.start(free_port(), &[]);
    let (mut nodes, mut machines) = (Vec::new(), Vec::new());
    for cloud in CLOUDS {
        for number in [1, 2] {
            let name = format!("{cloud}-{number}");
            machines.push(cluster.machine(cloud, &name).await);
            cluster.join(cloud, &name).await;
            nodes.push(name);
        }
    }
    for name in &nodes {
        let is_initialized = || cluster.is_initialized(name);
        eventually("the Node is initialized", DEADLINE, is_initialized).await;
    }
    let service = ServiceBuilder::new(NAMESPACE, "web")
        .class("aws")
        .port("http", 80);
    let service = service.annotation(TYPE, "nlb");
    service
        .create(&cluster.client)
        .await
        .expect("the Service is made");
    eventually("an address", DEADLINE, || cluster.is_served("web")).await;
    let mut expected = BTreeSet::new();
    for name in &nodes {
        expected.insert(address(&cluster, name).await);
    }
    eventually("all Nodes are targets", DEADLINE, || async {
        targets(&cluster).await == expected
    })
    .await;
    assert_eq!(network(&cluster).await["target_types"], json!(["ip"]));

    // A Node of the other cloud goes with its machine, and its address with it.
    let (gone, machine) = (&nodes[3], &machines[3]);
    let left = address(&cluster, gone).await;
    cluster.lose("openstack", gone, machine).await;
    expected.remove(&left);
    eventually("its address is no target", DEADLINE, || async {
        targets(&cluster).await == expected
    })
    .await;

    // A classic one says that it cannot.
    cluster.expose("aws", "classic").await;
    eventually("an Event", DEADLINE, || {
        let reason = "UnsupportedLoadBalancerOption";
        is_reported(&cluster, "classic", reason, "traffic to Nodes of openstack")
    })
    .await;
    eventually("an address", DEADLINE, || cluster.is_served("classic")).await;
    assert!(!is_reported(&cluster, "web", "UnsupportedLoadBalancerOption", "").await);
}
