//! Each cloud fails in turn, and a manager starts meanwhile.

use std::collections::BTreeSet;

use cloudkeel_testkit::cluster::eventually;
use cloudkeel_testkit::simulated_cloud::wire::TargetAt;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams};

use crate::harness::{DEADLINE, Manager, package};
use crate::scrape::{free_port, get};
use crate::several::{Cluster, targets_of_local};

/// Where the table is shown.
const PAGE: &str = "../../docs/several-clouds.md";

/// What is done in every cloud while one of them fails.
const WORK: [&str; 4] = [
    "a new Node is initialized",
    "a new Service gets its address",
    "a deleted Service goes",
    "a Node whose machine is gone is deleted",
];

/// What was there in a cloud before one failed.
struct Before {
    cloud: &'static str,
    /// The machine of its Node, which is lost.
    machine: String,
}

fn named(what: &str, cloud: &str, round: &str) -> String {
    format!("{what}-{cloud}-{round}")
}

/// Whether this piece of work is done in this cloud.
async fn is_done(cluster: &Cluster, work: usize, cloud: &str, round: &str) -> bool {
    match work {
        0 => cluster.is_initialized(&named("new", cloud, round)).await,
        1 => cluster.is_served(&named("new", cloud, round)).await,
        2 => cluster.service(&named("old", cloud, round)).await.is_none(),
        _ => cluster.node(&named("old", cloud, round)).await.is_none(),
    }
}

async fn all_done(cluster: &Cluster, clouds: &[&str], round: &str) {
    for cloud in clouds {
        for (work, what) in WORK.iter().enumerate() {
            let what = format!("{cloud}, while {round} fails: {what}");
            eventually(&what, DEADLINE, || is_done(cluster, work, cloud, round)).await;
        }
    }
}

/// A Node and a Service of every cloud.
async fn prepare(cluster: &Cluster, round: &str) -> Vec<Before> {
    let mut all = Vec::new();
    for cloud in cluster.names {
        let name = named("old", cloud, round);
        let machine = cluster.machine(cloud, &name).await;
        cluster.join(cloud, &name).await;
        cluster.expose(cloud, &name).await;
        all.push(Before { cloud, machine });
    }
    for cloud in cluster.names {
        let name = named("old", cloud, round);
        eventually(&format!("Node {name}"), DEADLINE, || {
            cluster.is_initialized(&name)
        })
        .await;
        eventually(&format!("Service {name}"), DEADLINE, || {
            cluster.is_served(&name)
        })
        .await;
    }
    all
}

/// Work for every cloud.
async fn ask_for_work(cluster: &Cluster, before: &[Before], round: &str) {
    for Before { cloud, machine } in before {
        let (old, new) = (named("old", cloud, round), named("new", cloud, round));
        cluster.machine(cloud, &new).await;
        cluster.join(cloud, &new).await;
        cluster.expose(cloud, &new).await;
        let deleted = cluster
            .services()
            .delete(&old, &DeleteParams::default())
            .await;
        deleted.expect("the Service is there");
        cluster.lose(cloud, &old, machine).await;
    }
}

/// What the manager says about the cloud that fails.
async fn is_reported(cluster: &Cluster, manager: &Manager, port: u16, cloud: &str) {
    manager
        .wait_for_log("cloud unavailable since the start")
        .await;
    let (code, body) = get(port, "/readyz?verbose", None).await;
    assert_eq!(code, 200, "the others work: {body}");
    let note = format!("cloud {cloud:?} is unavailable since the start");
    assert!(body.contains(&note), "{body}");
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), "kube-system");
    let unavailable = ListParams::default().fields("reason=CloudUnavailable");
    eventually("an Event that names the cloud", DEADLINE, || async {
        let found = events
            .list(&unavailable)
            .await
            .expect("Events can be listed");
        let is_it = |event: &Event| event.message.as_deref().unwrap_or_default().contains(cloud);
        found.items.iter().any(is_it)
    })
    .await;
}

/// The addresses of the targets of a local balancer.
fn targets_of(cluster: &Cluster, service: &str) -> BTreeSet<String> {
    let balancers = cluster.clouds.local.balancers();
    let is_its = |labels: &std::collections::BTreeMap<String, String>| {
        labels.values().any(|value| value.contains(service))
    };
    let balancer = balancers.into_iter().find(|it| is_its(&it.labels));
    let targets = balancer.map(|it| it.targets).unwrap_or_default();
    let addresses = targets.into_iter().map(|target| match target.at {
        TargetAt::Ip(ip) => ip.to_string(),
        TargetAt::Machine(id) => format!("machine {id}"),
    });
    addresses.collect()
}

/// Whether the newest balancer of the local cloud sends traffic to a Node of every cloud that it should, by address.
async fn targets_other_clouds(cluster: &Cluster, round: &str) -> bool {
    let targets = targets_of(cluster, &named("new", "local", round));
    for cloud in targets_of_local(cluster.names) {
        let keeper = named("old", cloud, "keeper");
        let node = cluster.node(&keeper).await;
        let addresses = node
            .and_then(|node| node.status?.addresses)
            .unwrap_or_default();
        if !addresses.iter().any(|it| targets.contains(&it.address)) {
            return false;
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cloud_fails_in_turn_while_the_others_work() {
    fails_in_turn(&Cluster::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs moto: cargo xtask test --tier aws"]
async fn each_cloud_fails_in_turn_with_aws_among_them() {
    fails_in_turn(&Cluster::with_aws().await).await;
}

/// Writes down who works while another one fails, and compares that with the page.
async fn fails_in_turn(cluster: &Cluster) {
    let mut manager = cluster.start(free_port(), &[]);
    prepare(cluster, "keeper").await;
    let mut table = format!(
        "| unavailable | {} |\n|---|{}\n",
        WORK.join(" | "),
        "---|".repeat(4)
    );
    for down in cluster.names {
        let before = prepare(cluster, down).await;
        manager.signal("TERM");
        manager.ended().await;
        cluster.set_open(down, false);
        let port = free_port();
        manager = cluster.start(port, &[]);
        ask_for_work(cluster, &before, down).await;
        let others: Vec<_> = cluster
            .names
            .into_iter()
            .filter(|cloud| *cloud != down)
            .collect();
        all_done(cluster, &others, down).await;
        is_reported(cluster, &manager, port, down).await;
        let mut cells = Vec::new();
        for work in 0..WORK.len() {
            let mut worked = Vec::new();
            for cloud in cluster.names {
                if is_done(cluster, work, cloud, down).await {
                    worked.push(cloud);
                }
            }
            cells.push(worked.join(", "));
        }
        table = format!("{table}| {down} | {} |\n", cells.join(" | "));
        if down != "local" {
            eventually("targets in other clouds", DEADLINE, || {
                targets_other_clouds(cluster, down)
            })
            .await;
        }
        cluster.set_open(down, true);
        manager.wait_for_log("cloud available").await;
        all_done(cluster, &[down], down).await;
    }
    println!("{table}");
    let page = std::fs::read_to_string(package().join(PAGE)).expect("the page is there");
    assert!(page.contains(&table), "{PAGE} should show:\n{table}");
}
