//! The leader is killed while Nodes and Services are in flight.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace, eventually};
use cloudkeel_testkit::simulated_cloud::Operation;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::cluster::{SHORT_LEASE, events, join, wait_for_address, wait_for_initialized};
use crate::harness::{DEADLINE, World};
use crate::scrape::{free_port, get, listen_on};
use crate::simulated::Simulated;

const NOT_FOUND: &str = "the load balancer is not found, which has to be confirmed";
const MINUTE: Duration = Duration::from_mins(1);
const NODES: usize = 6;
const SERVICES: usize = 20;
const LEAVING: usize = 5;

async fn make_nodes(world: &World, count: usize) -> Vec<String> {
    let made = futures::future::join_all((0..count).map(|_| join(world))).await;
    made.into_iter().map(|(name, _)| name).collect()
}

async fn make_services(world: &World, namespace: &str, what: &str, count: usize) -> Vec<Service> {
    let make = |number: usize| async move {
        let service = ServiceBuilder::new(namespace, format!("{what}-{number}"));
        let service = service.class(world.class()).port("main", 80);
        let made = service.create(&world.client).await;
        made.expect("the service is made")
    };
    futures::future::join_all((0..count).map(make)).await
}

fn names(services: &[Service]) -> Vec<String> {
    let names = services.iter().map(|it| it.metadata.name.clone());
    names.map(Option::unwrap_or_default).collect()
}

fn uids(services: &[Service]) -> BTreeSet<String> {
    let uids = services.iter().map(|it| it.metadata.uid.clone());
    uids.map(Option::unwrap_or_default).collect()
}

/// The Services of the load balancers, in order, each as often as it has one.
fn owners(world: &World) -> Vec<String> {
    let balancers = world.cloud.balancers_of(&world.id);
    let mut owners: Vec<_> = balancers
        .iter()
        .filter_map(|balancer| balancer.labels.get("cloudkeel.dev/service-uid").cloned())
        .collect();
    owners.sort();
    owners
}

/// What is in flight.
struct Load<'a> {
    world: &'a World,
    namespace: &'a str,
    nodes: Vec<String>,
    services: Vec<Service>,
    leaving: Vec<Service>,
}

impl Load<'_> {
    /// Nodes and Services as they should be, each of them once.
    async fn is_carried(&self) {
        let (world, client) = (self.world, &self.world.client);
        for name in names(&self.services) {
            wait_for_address(client, self.namespace, &name).await;
        }
        for name in names(&self.leaving) {
            self.is_on_its_way_out(&name).await;
        }
        for name in &self.nodes {
            wait_for_initialized(world, name).await;
            let synced = events(client, "default", name, "Synced").await;
            let times: i32 = synced.iter().filter_map(|event| event.count).sum();
            assert!(times <= 1, "{name} was initialised {times} times");
        }
        let expected: Vec<_> = uids(&self.services).into_iter().collect();
        assert_eq!(owners(world), expected, "one each, and no other");
        eventually("all Nodes behind all balancers", DEADLINE, || async {
            let balancers = world.cloud.balancers_of(&world.id);
            let wanted = self.nodes.len();
            balancers.iter().all(|it| it.targets.len() == wanted)
        })
        .await;
    }

    async fn is_on_its_way_out(&self, name: &str) {
        let client = &self.world.client;
        let api: Api<Service> = Api::namespaced(client.clone(), self.namespace);
        let what = "it is gone, or says what it waits for";
        eventually(what, DEADLINE, || async {
            let events = events(client, self.namespace, name, "PendingLoadBalancer").await;
            let mut said = events.into_iter().filter_map(|event| event.message);
            let is_gone = api.get_opt(name).await?.is_none();
            Ok::<_, kube::Error>(is_gone || said.any(|said| said.contains(NOT_FOUND)))
        })
        .await;
    }
}

#[tokio::test]
async fn a_leader_that_is_killed_under_load_doubles_nothing_and_loses_nothing() {
    let world = World::new().await;
    let namespace = TestNamespace::create(&world.client, "failures").await;
    let namespace = namespace.expect("the namespace is made");
    let namespace = namespace.name();
    let mut first = world.start(&SHORT_LEASE);
    let holder = world.another_holder("").await;
    let port = free_port();
    let [secure_port, bind] = listen_on(port);
    let open = "--authorization-always-allow-paths=/metrics";
    let second = world.start(&[&SHORT_LEASE[..], &[&secure_port, &bind, open]].concat());
    second
        .wait_for_log("lease is held by another replica")
        .await;
    let nodes = make_nodes(&world, NODES).await;
    for name in &nodes {
        wait_for_initialized(&world, name).await;
    }
    let leaving = make_services(&world, namespace, "leaving", LEAVING).await;
    for name in names(&leaving) {
        wait_for_address(&world.client, namespace, &name).await;
    }

    // Every change takes a while from now on, so that the kill interrupts many of them.
    let slow = Duration::from_millis(700);
    world.cloud.change_settings(|it| it.action_duration = slow);
    world.cloud.reset_calls();
    let mut load = Load {
        world: &world,
        namespace,
        nodes,
        services: make_services(&world, namespace, "web", SERVICES).await,
        leaving,
    };
    let api: Api<Service> = Api::namespaced(world.client.clone(), namespace);
    for name in names(&load.leaving) {
        let deleted = api.delete(&name, &DeleteParams::default()).await;
        deleted.expect("the service is there");
    }
    load.nodes.extend(make_nodes(&world, NODES).await);
    eventually("orders under way", DEADLINE, || async {
        world.cloud.calls().of(Operation::CreateBalancer) >= 3
    })
    .await;
    first.signal("KILL");
    assert_eq!(first.ended().await.code(), None, "it was killed");
    let late = make_services(&world, namespace, "late", LEAVING).await;
    load.services.extend(late);
    load.nodes.extend(make_nodes(&world, NODES).await);

    let leader = world.another_holder(&holder).await;
    second.wait_for_log("successfully acquired lease").await;
    eventually("an event about the new leader", DEADLINE, || async {
        let events = events(
            &world.client,
            "kube-system",
            world.lease(),
            "LeaderElection",
        )
        .await;
        let mut messages = events.into_iter().filter_map(|event| event.message);
        messages.any(|message| message == format!("{leader} became leader"))
    })
    .await;
    load.is_carried().await;
    let (_, metrics) = get(port, "/metrics", None).await;
    let lease = world.lease();
    let leads = format!("leader_election_master_status{{name=\"{lease}\"}} 1");
    assert!(metrics.contains(&leads), "{metrics}");
}

/// The successor of a leader that had started a deletion finds nothing to delete, and accepts that after two
/// minutes.
#[tokio::test(start_paused = true)]
async fn a_removal_that_a_killed_leader_began_is_finished_by_the_next() {
    let mut simulated = Simulated::new();
    simulated.join("node");
    let first = simulated.start("first", &[]);
    simulated.advance(MINUTE * 2).await;
    simulated.serve("web", &json!({}));
    simulated.advance(MINUTE * 5).await;
    assert!(simulated.address("web").is_some());
    let second = simulated.start("second", &[]);
    let slow = Duration::from_secs(5);
    simulated
        .cloud
        .change_settings(|it| it.action_duration = slow);
    simulated.unserve("web");
    simulated.advance(Duration::from_secs(2)).await;
    assert_eq!(simulated.cloud.calls().of(Operation::DeleteBalancer), 1);
    drop(first);
    simulated.advance(MINUTE).await;
    assert_eq!(simulated.leader().0, "second");
    assert!(simulated.cloud.balancers().is_empty());
    let waits = &simulated.events("web", "PendingLoadBalancer")[0]["message"];
    let waits = waits.as_str().unwrap_or_default();
    assert!(waits.contains(NOT_FOUND), "{waits}");
    simulated.advance(MINUTE * 3).await;
    assert!(!simulated.is_service("web"), "it is let go");
    assert_eq!(simulated.cloud.calls().of(Operation::DeleteBalancer), 1);
    drop(second);
}
