//! Routes of the private network.

use std::time::Duration;

use cloudkeel_api::{ErrorKind, Existence, NodeFacts, Route, RouteChange, RouteTarget, Shared};
use cloudkeel_emulator_hetzner::{Fault, Operation, ServerSpec};

use crate::lab::{Lab, instances, node, routes};

fn wanted(node: &NodeFacts, destination: &str) -> Route {
    Route {
        name: String::new(),
        destination: destination.parse().unwrap(),
        target: RouteTarget::node(node),
        blackhole: false,
        follows_addresses: true,
    }
}

fn create(node: &NodeFacts, destination: &str) -> RouteChange {
    RouteChange::Create(wanted(node, destination))
}

#[tokio::test(start_paused = true)]
async fn routes_are_made_listed_and_removed() {
    let lab = Lab::new(3);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let changes: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(n, node)| create(node, &format!("10.244.{n}.0/24")))
        .collect();
    let results = routes(&provider).apply(&changes).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(lab.mutations(), 3);
    assert_eq!(lab.cloud.calls().of(Operation::GetNetwork), 1);
    assert_eq!(
        lab.cloud.calls().of(Operation::ListServers),
        0,
        "the list serves"
    );

    let listed = routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap();
    assert_eq!(listed.len(), 3);
    for (route, node) in listed.iter().zip(&nodes) {
        assert_eq!(route.target.node_name(), Some(node.name.as_str()));
        let gateway = node.addresses.last().unwrap();
        let name = format!("{}-{}", gateway.address, route.destination);
        assert_eq!(route.name, name);
        assert!(!route.blackhole && route.follows_addresses);
    }

    lab.cloud.reset_calls();
    let again = routes(&provider).apply(&changes).await;
    assert!(again.iter().all(Result::is_ok));
    assert_eq!(lab.mutations(), 0, "what is there is not made again");

    let deletions: Vec<_> = listed.into_iter().map(RouteChange::Delete).collect();
    let results = routes(&provider).apply(&deletions).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(lab.cloud.networks()[0].routes, []);
    lab.cloud.reset_calls();
    let results = routes(&provider).apply(&deletions).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(lab.mutations(), 0, "what is gone is not removed again");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_joined_after_the_last_list_gets_its_route_at_once() {
    let lab = Lab::new(1);
    let provider = lab.networked().await;
    lab.nodes(&provider).await;
    let young = ServerSpec::named("young").in_network(lab.network);
    lab.cloud.add_server(young).unwrap();
    let unknown = NodeFacts {
        name: "young".to_owned(),
        ..NodeFacts::default()
    };
    // So does the node controller when the Node appears.
    let found = instances(&provider).find(&unknown, None).await;
    let Existence::Present(machine) = found else {
        panic!("{found:?}");
    };
    let changes = [create(&node(&machine), "10.244.9.0/24")];
    let results = routes(&provider).apply(&changes).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(lab.cloud.networks()[0].routes.len(), 1);
    assert_eq!(
        lab.cloud.calls().of(Operation::ListServers),
        1,
        "one look by its name"
    );
}

#[tokio::test(start_paused = true)]
async fn a_route_that_leads_elsewhere_is_replaced_only_if_its_deletion_is_asked_for_too() {
    let lab = Lab::new(2);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let first = [create(&nodes[0], "10.244.0.0/24")];
    routes(&provider).apply(&first).await.remove(0).unwrap();
    let before = lab.cloud.networks()[0].routes.clone();
    let second = create(&nodes[1], "10.244.0.0/24");
    let refused = routes(&provider)
        .apply(std::slice::from_ref(&second))
        .await
        .remove(0);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(lab.cloud.networks()[0].routes, before);
    let old = routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap()
        .remove(0);
    let both = [second, RouteChange::Delete(old)];
    let results = routes(&provider).apply(&both).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let listed = routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].target.node_name(), Some("node-001"));
}

#[tokio::test(start_paused = true)]
async fn a_node_under_another_name_than_its_server_keeps_its_route() {
    let lab = Lab::new(1);
    let provider = lab.networked().await;
    let mut nodes = lab.nodes(&provider).await;
    nodes[0].name = "renamed".to_owned();
    let changes = [create(&nodes[0], "10.244.0.0/24")];
    routes(&provider).apply(&changes).await.remove(0).unwrap();
    let listed = routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap();
    assert_eq!(listed[0].target.node_name(), Some("renamed"));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_address_leads_nowhere_and_a_foreign_one_elsewhere() {
    let lab = Lab::new(2);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let changes = [
        create(&nodes[0], "10.244.0.0/24"),
        create(&nodes[1], "10.244.1.0/24"),
    ];
    routes(&provider).apply(&changes).await;
    lab.cloud.destroy_server(lab.cloud.servers()[0].id).unwrap();
    tokio::time::sleep(Duration::from_mins(3)).await;
    let listed = routes(&provider)
        .list(&Shared::of_each(&nodes[..1]))
        .await
        .unwrap();
    assert!(listed[0].blackhole);
    assert!(!listed[1].blackhole);
    let elsewhere = RouteTarget::Elsewhere {
        hop: "node-001".to_owned(),
    };
    assert_eq!(listed[1].target, elsewhere);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_routed_is_reported_without_a_change() {
    let lab = Lab::new(1);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let mut metal = nodes[0].clone();
    metal.provider_id = Some("hrobot://321".parse().unwrap());
    let mut stranger = nodes[0].clone();
    stranger.provider_id = Some("hcloud://1".parse().unwrap());
    let mut moved = nodes[0].clone();
    moved.addresses.pop();
    for (case, change, kind) in [
        (
            "IPv6",
            create(&nodes[0], "fd00::/64"),
            ErrorKind::Unsupported,
        ),
        (
            "a dedicated server",
            create(&metal, "10.244.0.0/24"),
            ErrorKind::Unsupported,
        ),
        (
            "no such server",
            create(&stranger, "10.244.0.0/24"),
            ErrorKind::NotFound,
        ),
        (
            "not the Node's address",
            create(&moved, "10.244.0.0/24"),
            ErrorKind::Invalid,
        ),
    ] {
        tokio::time::sleep(Duration::from_secs(30)).await;
        lab.cloud.reset_calls();
        let result = routes(&provider).apply(&[change]).await.remove(0);
        assert_eq!(result.unwrap_err().kind(), kind, "{case}");
        assert_eq!(lab.mutations(), 0, "{case}");
        // A server that is not found may only be too young for the last list.
        let listed = lab.cloud.calls().of(Operation::ListServers) > 0;
        assert_eq!(listed, kind != ErrorKind::Unsupported, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_locked_network_is_busy_for_all_and_asked_once() {
    let lab = Lab::new(3);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    lab.cloud
        .faults()
        .once(Operation::AddRoute, Fault::code("locked"));
    let changes: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(n, node)| create(node, &format!("10.244.{n}.0/24")))
        .collect();
    let results = routes(&provider).apply(&changes).await;
    for result in results {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Busy);
    }
    assert_eq!(lab.mutations(), 1);
    let results = routes(&provider).apply(&changes).await;
    assert!(results.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_full_table_and_a_network_outside_of_the_clusters_are_reported() {
    let lab = Lab::new(2);
    lab.cloud
        .change_settings(|settings| settings.limits.routes = 1);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap();
    let changes = [
        create(&nodes[0], "10.99.0.0/24"),
        create(&nodes[1], "10.244.1.0/24"),
    ];
    let results = routes(&provider).apply(&changes).await;
    assert!(results[0].is_ok());
    let error = results[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(lab.reasons(), ["ClusterCIDRMisconfigured"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_address_in_another_network_is_another_machine() {
    let lab = Lab::new(1);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let other = lab
        .cloud
        .add_network("other", "10.0.0.0/16".parse().unwrap())
        .unwrap();
    let ip = lab.cloud.servers()[0].private_net[0].ip;
    let twin = ServerSpec::named("aaa-twin").in_network_as(other.id, ip);
    lab.cloud.add_server(twin).unwrap();
    let changes = [create(&nodes[0], "10.244.0.0/24")];
    routes(&provider).apply(&changes).await.remove(0).unwrap();
    tokio::time::sleep(Duration::from_mins(3)).await;
    let listed = routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap();
    assert_eq!(listed[0].target.node_name(), Some("node-000"));
}
