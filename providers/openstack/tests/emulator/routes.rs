//! Routes of a router, with and without the extensions of Neutron.

use cloudkeel_api::{NodeFacts, Route, RouteChange, RouteTarget};
use cloudkeel_emulator_openstack::{Kind, OpenStackCloud, Operation, Settings};
use serde_json::{Value, json};

use crate::lab::Lab;

async fn lab(extensions: &[&str]) -> Lab {
    let settings = Settings {
        extensions: extensions.iter().map(|alias| (*alias).to_owned()).collect(),
        ..Settings::default()
    };
    Lab::with(
        settings,
        &format!("[Route]\nrouter-id={}", OpenStackCloud::ROUTER),
    )
    .await
}

fn create(nodes: &[NodeFacts]) -> Vec<RouteChange> {
    let route = |(number, node): (usize, &NodeFacts)| {
        RouteChange::Create(Route {
            name: String::new(),
            destination: format!("10.244.{number}.0/24").parse().unwrap(),
            target: RouteTarget::node(node),
            blackhole: false,
            follows_addresses: false,
        })
    };
    nodes.iter().enumerate().map(route).collect()
}

fn routes(lab: &Lab) -> usize {
    lab.only(Kind::Router)["routes"].as_array().unwrap().len()
}

fn pairs(lab: &Lab, node: &NodeFacts) -> Value {
    let id = node
        .provider_id
        .as_ref()
        .unwrap()
        .rest()
        .trim_start_matches('/')
        .to_owned();
    let ports = lab.cloud.all(Kind::Port);
    ports.iter().find(|port| port["device_id"] == id).unwrap()["allowed_address_pairs"].clone()
}

#[tokio::test(start_paused = true)]
async fn many_routes_are_one_call_and_ports_may_send_from_pod_networks() {
    let lab = lab(&["extraroute-atomic", "allowed-address-pairs"]).await;
    let nodes = lab.nodes(3);
    let table = lab.provider.routes().unwrap();
    let results = table.apply(&create(&nodes)).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(
        (routes(&lab), lab.cloud.calls().of(Operation::AddRoutes)),
        (3, 1)
    );
    assert_eq!(
        pairs(&lab, &nodes[1]),
        json!([{"ip_address": "10.244.1.0/24"}])
    );
    let nodes: Vec<_> = nodes.into_iter().map(cloudkeel_api::Shared::from).collect();
    let listed = table.list(&nodes).await.unwrap();
    let gone = listed
        .into_iter()
        .filter(|route| route.target.node_name() == Some("node-2"));
    let results = table
        .apply(&gone.map(RouteChange::Delete).collect::<Vec<_>>())
        .await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!((routes(&lab), pairs(&lab, &nodes[1])), (2, json!([])));
}

#[tokio::test(start_paused = true)]
async fn without_the_atomic_extension_the_table_is_written_unless_it_changed() {
    let lab = lab(&["extraroute"]).await;
    let nodes = lab.nodes(2);
    let table = lab.provider.routes().unwrap();
    let results = table.apply(&create(&nodes)).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(
        (routes(&lab), lab.cloud.calls().of(Operation::UpdateRouter)),
        (2, 1)
    );
    assert_eq!(
        pairs(&lab, &nodes[0]),
        json!([]),
        "there is no such extension"
    );
    // A route that Neutron refuses does not keep the other one back.
    let mut bad = lab.node("stray");
    bad.addresses = nodes[0].addresses.clone();
    let again = table.apply(&create(&nodes)).await;
    assert!(again.iter().all(Result::is_ok), "{again:?}");
    assert_eq!(lab.cloud.calls().of(Operation::UpdateRouter), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_router_or_its_extension_there_are_no_routes() {
    assert!(lab(&[]).await.provider.routes().is_none());
    assert!(Lab::new("").await.provider.routes().is_none());
}
