//! The binary under the role of each Go CCM's own chart: it works as far as that allows, reports once what is
//! missing, and never fails over it.

use cloudkeel_testkit::cluster::{Kubelet, unique_name, wait_for_node_gone};

use crate::harness::{DEADLINE, World, package};
use crate::nodes::{
    FAST_DELETION, is_tainted_as_shut_down, join, lose, shut_down, wait_for_event,
    wait_for_initialized,
};
use crate::permissions::{Grant, documents, granted_to};
use crate::scrape::{free_port, get, listen_on};
use crate::services::Served;
use crate::trial::{Trial, warnings};

const NO_UID: &str = "failed to get the cluster UID";
const NO_WATCH_OF_THE_LEASE: &str = "not allowed to watch the lease";
const NO_DELETION: &str = "unable to delete node";
const NO_STATUS: &str = "failed to add load balancer cleanup finalizer";
const NO_TOKEN_REVIEW: &str = "TokenReview failed";
const NO_ACCESS_REVIEW: &str = "SubjectAccessReview failed";

struct Chart {
    cloud: &'static str,
    /// What the Go binary itself presets.
    flags: &'static [&'static str],
    /// What is missing, each logged once.
    warnings: &'static [&'static str],
    /// How a request for metrics with a token is answered.
    metrics: u16,
}

/// 401 without permission to review tokens; with it, 403 to a user who may not read metrics, or 500 without
/// permission to review access.
const CHARTS: [Chart; 9] = [
    chart("aws", &[NO_UID], 403),
    chart(
        "azure",
        &[NO_UID, NO_WATCH_OF_THE_LEASE, NO_TOKEN_REVIEW],
        401,
    ),
    chart(
        "cloudstack",
        &[NO_UID, NO_WATCH_OF_THE_LEASE, NO_TOKEN_REVIEW],
        401,
    ),
    Chart {
        flags: &["--authentication-skip-lookup"],
        ..chart("digitalocean", &[NO_UID, NO_TOKEN_REVIEW], 401)
    },
    chart("gce", &[NO_DELETION, NO_STATUS, NO_ACCESS_REVIEW], 500),
    chart("hetzner", &[NO_UID, NO_TOKEN_REVIEW], 401),
    chart("oci", &[NO_UID, NO_TOKEN_REVIEW], 401),
    chart(
        "openstack",
        &[NO_UID, NO_WATCH_OF_THE_LEASE, NO_TOKEN_REVIEW],
        401,
    ),
    chart("vsphere", &[NO_UID, NO_TOKEN_REVIEW], 401),
];

const fn chart(cloud: &'static str, warnings: &'static [&'static str], metrics: u16) -> Chart {
    Chart {
        cloud,
        flags: &[],
        warnings,
        metrics,
    }
}

fn grants_of(chart: &Chart) -> Vec<Grant> {
    let folder = package().join("tests/deploy/roles");
    let documents = documents(&folder.join(format!("{}.yaml", chart.cloud)));
    let account = documents
        .iter()
        .find(|document| document["kind"] == "ServiceAccount")
        .and_then(|account| account["metadata"]["name"].as_str())
        .expect("a ServiceAccount");
    let grants = granted_to(account, &documents);
    assert!(!grants.is_empty(), "{} grants nothing", chart.cloud);
    grants
}

#[tokio::test]
async fn the_role_of_each_go_chart_is_enough_to_work() {
    futures::future::join_all(CHARTS.iter().map(works)).await;
}

async fn works(chart: &Chart) {
    let trial = Trial::new(&grants_of(chart)).await;
    let world = &trial.world;
    let port = free_port();
    let mut flags = [FAST_DELETION.as_slice(), chart.flags].concat();
    let listen = listen_on(port);
    flags.extend(listen.iter().map(String::as_str));
    let mut manager = trial.start(&flags);

    let [first, second, off, stays] = ["gone", "gone", "off", "stays"].map(unique_name);
    let lost = [join(world, &first).await, join(world, &second).await];
    let off_machine = join(world, &off).await;
    join(world, &stays).await;
    for name in [&first, &second, &off, &stays] {
        wait_for_initialized(world, name).await;
        wait_for_event(world, "default", name, "Synced", 1).await;
    }
    let ready = Kubelet::new(&world.client, &stays).set_ready().await;
    ready.expect("the status is written");

    shut_down(world, &off, off_machine).await;
    lose(world, &first, lost[0]).await;
    lose(world, &second, lost[1]).await;
    is_tainted_as_shut_down(world, &off).await;
    let may_delete = trial.account.may_anywhere("delete", "", "nodes").await;
    assert_eq!(may_delete, !chart.warnings.contains(&NO_DELETION));
    for name in [&first, &second] {
        if may_delete {
            wait_for_node_gone(&world.client, name, DEADLINE).await;
        } else {
            is_kept(world, name).await;
        }
    }

    let served = Served::new(world).await;
    if chart.warnings.contains(&NO_STATUS) {
        served.wait_for_event("SyncLoadBalancerFailed").await;
    } else {
        served.address().await;
        served.wait_for_event("EnsuredLoadBalancer").await;
        served.delete().await;
    }

    for _ in 0..3 {
        let (code, body) = get(port, "/metrics", Some(&trial.account.token().await)).await;
        assert_eq!(code, chart.metrics, "{}: {body}", chart.cloud);
    }
    assert_warned_once(chart, &warnings(&manager));
    manager.signal("TERM");
    let status = manager.ended().await;
    assert_eq!(status.code(), Some(0), "{}: {}", chart.cloud, manager.log());
}

/// It was tried more than once, and the Node is still there.
async fn is_kept(world: &World, name: &str) {
    wait_for_event(world, "default", name, "DeletingNodeFailed", 2).await;
    world.node(name).await;
}

fn assert_warned_once(chart: &Chart, warnings: &[String]) {
    let cloud = chart.cloud;
    for expected in chart.warnings {
        let count = warnings
            .iter()
            .filter(|text| text.contains(expected))
            .count();
        assert_eq!(count, 1, "{cloud}: {expected:?} in {warnings:#?}");
    }
    assert_eq!(
        warnings.len(),
        chart.warnings.len(),
        "{cloud}: nothing else is logged: {warnings:#?}"
    );
}
