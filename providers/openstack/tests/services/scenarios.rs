//! What has to hold on the emulator and on the services.

use cloudkeel_api::{
    BalancerRef, ClusterIdentity, DesiredState, ErrorKind, Existence, Ingress, InstanceState,
    Listener, LoadBalancerSpec, NodeAddress, NodeFacts, Outcome, Protocol, Route, RouteChange,
    RouteTarget, ServiceRef, Shared, Target,
};
use cloudkeel_emulator_openstack::emulation::{CommonFault, FaultMatch};
use cloudkeel_http::Request;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::site::Site;

const ID_ANNOTATION: &str = "loadbalancer.openstack.org/load-balancer-id";

/// The Node of a server, as it is once it is initialised.
async fn node(site: &Site, name: &str, id: &str) -> NodeFacts {
    let mut node = NodeFacts {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        provider_id: format!("openstack:///{id}").parse().ok(),
        ..NodeFacts::default()
    };
    match site.provider.instances().unwrap().find(&node, None).await {
        Existence::Present(instance) => node.addresses = instance.addresses,
        other => panic!("{other:?}"),
    }
    node
}

async fn start(site: &Site, names: &[&str]) -> Vec<NodeFacts> {
    let mut nodes = Vec::new();
    for name in names {
        let id = site.start_server(name).await;
        nodes.push(node(site, name, &id).await);
    }
    nodes
}

fn id_of(node: &NodeFacts) -> String {
    node.provider_id
        .as_ref()
        .unwrap()
        .rest()
        .trim_start_matches('/')
        .to_owned()
}

async fn stop(site: &Site, nodes: &[NodeFacts]) {
    for node in nodes {
        site.destroy_server(&id_of(node)).await;
    }
}

fn spec(service: &str, nodes: &[NodeFacts]) -> LoadBalancerSpec {
    let cluster = ClusterIdentity {
        name: "kubernetes".to_owned(),
        uid: Some("c-1".to_owned()),
        pod_cidrs: vec![],
    };
    let service = ServiceRef {
        namespace: "default".to_owned(),
        name: service.to_owned(),
        uid: format!("uid-of-{service}"),
    };
    let udp = Listener {
        protocol: Protocol::Udp,
        ..Listener::tcp(53, 30_053)
    };
    LoadBalancerSpec {
        listeners: vec![Listener::tcp(80, 30_080), udp],
        targets: nodes
            .iter()
            .map(|node| (node.name.clone(), Target::machine(node.clone())))
            .collect(),
        ..LoadBalancerSpec::plain(BalancerRef::of(cluster, service))
    }
}

/// Servers are listed, found by ID and by name, seen stopped, and gone only with proof.
pub(crate) async fn nodes(site: &Site) {
    let nodes = start(site, &["node-1", "node-2"]).await;
    let instances = site.provider.instances().unwrap();
    let list = instances.list().await.unwrap();
    for node in &nodes {
        let listed = list.get(node.provider_id.as_ref().unwrap()).unwrap();
        assert_eq!(
            (&listed.name, listed.state),
            (&node.name, InstanceState::Running)
        );
        assert!(
            listed
                .addresses
                .iter()
                .any(|a| a.address.starts_with("10.6.")),
            "{:?}",
            listed.addresses
        );
        assert!(
            listed
                .instance_type
                .as_deref()
                .is_some_and(|name| name.starts_with("m1.")),
            "{listed:?}"
        );
        assert!(
            listed.zone.is_some() && listed.region.as_deref() == Some("RegionOne"),
            "{listed:?}"
        );
        let unnamed = NodeFacts {
            provider_id: None,
            ..node.clone()
        };
        let by_name = instances.find(&unnamed, None).await;
        assert!(
            matches!(&by_name, Existence::Present(found) if found.id == listed.id),
            "{by_name:?}"
        );
    }
    assert_eq!(site.mutating(), 0);
    site.stop_server(&id_of(&nodes[0])).await;
    let stopped = instances.find(&nodes[0], None).await;
    assert!(
        matches!(&stopped, Existence::Present(found) if found.state == InstanceState::ShutDown),
        "{stopped:?}"
    );
    site.destroy_server(&id_of(&nodes[0])).await;
    let list = instances.list().await.unwrap();
    let known = list.known_instance_besides(nodes[0].provider_id.as_ref().unwrap(), |_| true);
    let unproven = instances.find(&nodes[0], None).await;
    assert!(matches!(unproven, Existence::Unknown(_)), "{unproven:?}");
    let gone = instances.find(&nodes[0], known.as_ref()).await;
    assert!(matches!(gone, Existence::Gone(_)), "{gone:?}");
    stop(site, &nodes[1..]).await;
}

/// Routes to Nodes are added in one call and removed again; those of others stay.
pub(crate) async fn routes(site: &Site) {
    let nodes = start(site, &["route-1", "route-2"]).await;
    let table = site.provider.routes().unwrap();
    let create: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(number, node)| {
            RouteChange::Create(Route {
                name: String::new(),
                destination: format!("10.244.{number}.0/24").parse().unwrap(),
                target: RouteTarget::node(node),
                blackhole: false,
                follows_addresses: false,
            })
        })
        .collect();
    let results = table.apply(&create).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(
        site.mutating(),
        1 + 2,
        "all routes at once, and the ports of both Nodes"
    );
    assert!(table.apply(&create).await.iter().all(Result::is_ok));
    assert_eq!(site.mutating(), 0);
    let shared: Vec<_> = nodes.iter().cloned().map(Shared::from).collect();
    let listed = table.list(&shared).await.unwrap();
    let mut names: Vec<_> = listed
        .iter()
        .filter_map(|route| route.target.node_name())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["route-1", "route-2"]);
    let delete: Vec<_> = listed.into_iter().map(RouteChange::Delete).collect();
    let results = table.apply(&delete).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let router = Request::get("/routers/{id}").param("id", &site.ids().router);
    assert_eq!(site.neutron(router).await["router"]["routes"], json!([]));
    stop(site, &nodes).await;
}

/// A Service gets a load balancer through an outage, keeps it without a mutating call, follows its Nodes in one call,
/// shares it, and leaves nothing behind.
pub(crate) async fn load_balancers(site: &Site) {
    let nodes = start(site, &["lb-1", "lb-2"]).await;
    let mut web = spec("web", &nodes[..1]);
    site.mutating();
    let refused = FaultMatch::any().mutating();
    site.interposer.once(refused, CommonFault::status(503));
    let error = site.apply(DesiredState::Present(&web)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let outcome = site.apply(DesiredState::Present(&web)).await.unwrap();
    let Outcome::Settled { status, .. } = outcome else {
        panic!("{outcome:?}");
    };
    let id = status.id.clone().unwrap();
    assert!(
        matches!(status.ingress.as_slice(), [Ingress::Ip { ip, .. }] if ip.to_string().starts_with("203.0.113.")),
        "{status:?}"
    );
    assert_eq!(
        site.mutating(),
        1 + 2,
        "the refused call, the load balancer with all its parts, its floating IP"
    );
    assert_eq!(site.octavia_all("/lbaas/healthmonitors").await.len(), 2);
    site.apply(DesiredState::Present(&web)).await.unwrap();
    assert_eq!(site.mutating(), 0);
    web.targets = spec("web", &nodes).targets;
    site.apply(DesiredState::Present(&web)).await.unwrap();
    assert_eq!(site.mutating(), 2, "one call for each pool");
    let mut other = spec("other", &nodes);
    other.listeners = vec![Listener::tcp(8080, 30_808)];
    other
        .balancer_ref
        .annotations
        .insert(ID_ANNOTATION.to_owned(), id.clone());
    let outcome = site.apply(DesiredState::Present(&other)).await.unwrap();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
    assert_eq!(site.octavia_all("/lbaas/listeners").await.len(), 3);
    site.mutating();
    site.apply(DesiredState::Present(&web)).await.unwrap();
    assert_eq!(site.mutating(), 0, "both Services leave each other alone");
    for balancer_ref in [&other.balancer_ref, &web.balancer_ref] {
        let outcome = site
            .apply(DesiredState::Absent(balancer_ref))
            .await
            .unwrap();
        assert!(matches!(outcome, Outcome::Gone { .. }), "{outcome:?}");
    }
    nothing_is_left(site).await;
    stop(site, &nodes).await;
}

async fn nothing_is_left(site: &Site) {
    for path in [
        "/lbaas/loadbalancers",
        "/lbaas/listeners",
        "/lbaas/pools",
        "/lbaas/healthmonitors",
    ] {
        assert_eq!(site.octavia_all(path).await, [] as [Value; 0], "{path}");
    }
    let floating = site.neutron(Request::get("/floatingips")).await;
    assert_eq!(floating["floatingips"], json!([]));
}

/// What the Go CCM sends for a Service is taken over as the services show it, without a mutating call.
pub(crate) async fn swap(site: &Site) {
    let nodes = start(site, &["swap-1", "swap-2"]).await;
    let mut web = spec("web", &nodes);
    web.listeners.truncate(1);
    let name = "kube_service_kubernetes_default_web";
    let members: Vec<_> = nodes.iter().map(|node| json!({
        "address": node.addresses[0].address, "protocol_port": 30_080, "name": node.name, "subnet_id": site.ids().subnet,
    })).collect();
    let monitor = json!({
        "name": format!("monitor_0_{name}"), "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1,
        "max_retries_down": 3,
    });
    let pool = json!({
        "name": format!("pool_0_{name}"), "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": members,
        "healthmonitor": monitor,
    });
    let listener = json!({
        "name": format!("listener_0_{name}"), "protocol": "TCP", "protocol_port": 80, "connection_limit": -1,
        "tags": [name], "timeout_client_data": 50_000, "timeout_member_connect": 5_000, "timeout_member_data": 50_000,
        "timeout_tcp_inspect": 0, "allowed_cidrs": ["0.0.0.0/0"], "default_pool": pool,
    });
    let balancer = json!({"loadbalancer": {
        "name": name, "description": "Kubernetes external service default/web from cluster kubernetes",
        "provider": "amphora", "tags": [name], "vip_subnet_id": site.ids().subnet, "listeners": [listener],
    }});
    let made = site
        .octavia(Request::post("/lbaas/loadbalancers").json(balancer))
        .await;
    let id = made["loadbalancer"]["id"].as_str().unwrap().to_owned();
    site.until_active(&id).await;
    let floating = json!({"floatingip": {
        "floating_network_id": site.ids().public, "port_id": made["loadbalancer"]["vip_port_id"],
        "description": "Floating IP for Kubernetes external service default/web from cluster kubernetes",
    }});
    site.neutron(Request::post("/floatingips").json(floating))
        .await;
    web.balancer_ref
        .annotations
        .insert(ID_ANNOTATION.to_owned(), id.clone());
    site.mutating();
    let outcome = site.apply(DesiredState::Present(&web)).await.unwrap();
    assert!(
        matches!(&outcome, Outcome::Settled { done, .. } if done.is_empty()),
        "{outcome:?}"
    );
    assert_eq!(site.mutating(), 0);
    let outcome = site
        .apply(DesiredState::Absent(&web.balancer_ref))
        .await
        .unwrap();
    assert!(matches!(outcome, Outcome::Gone { .. }), "{outcome:?}");
    nothing_is_left(site).await;
    stop(site, &nodes).await;
}

/// Fifty Nodes are two calls that change something. How long they take is printed beside what one call for each takes.
pub(crate) async fn fifty_members(site: &Site) {
    let node = |number: u8| NodeFacts {
        name: format!("member-{number}"),
        uid: format!("uid-{number}"),
        provider_id: format!("openstack:///00000000-0000-4000-8000-0000000002{number:02}")
            .parse()
            .ok(),
        addresses: vec![NodeAddress::internal([10, 6, 200, number].into())],
        ..NodeFacts::default()
    };
    let nodes: Vec<_> = (1..=50).map(node).collect();
    let mut many = spec("many", &nodes);
    many.listeners.truncate(1);
    site.mutating();
    let began = Instant::now();
    let outcome = site.apply(DesiredState::Present(&many)).await.unwrap();
    let took = began.elapsed();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
    assert_eq!(site.mutating(), 2, "everything at once, and a floating IP");
    println!(
        "a Service with 50 members was ready after {:.1} s, with 2 calls that change something",
        took.as_secs_f64()
    );
    let pool = site.octavia_all("/lbaas/pools").await.remove(0);
    let balancer = pool["loadbalancers"][0]["id"].as_str().unwrap().to_owned();
    let began = Instant::now();
    for number in 51..=55 {
        let member =
            json!({"member": {"address": format!("10.6.200.{number}"), "protocol_port": 30_080}});
        let add = Request::post("/lbaas/pools/{id}/members")
            .param("id", pool["id"].as_str().unwrap())
            .json(member);
        site.octavia(add).await;
        site.until_active(&balancer).await;
    }
    println!(
        "one call for each member took {:.1} s for 5 of them, so 50 would take ten times as long",
        began.elapsed().as_secs_f64()
    );
    let outcome = site.apply(DesiredState::Present(&many)).await.unwrap();
    assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
    assert_eq!(
        site.mutating(),
        1,
        "one call puts all 50 in place of all 55"
    );
    site.apply(DesiredState::Absent(&many.balancer_ref))
        .await
        .unwrap();
    nothing_is_left(site).await;
}
