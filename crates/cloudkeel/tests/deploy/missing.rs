//! What happens without a permission: for each one of our roles, something that shows. A permission
//! without a row here would be one too many.

use std::collections::BTreeSet;

use cloudkeel_testkit::cluster::unique_name;
use futures::StreamExt as _;

use crate::contention::Contended;
use crate::harness::Manager;
use crate::nodes::{
    FAST_DELETION, create_uninitialized, join, lose, member, shut_down, stop_reporting,
    wait_for_initialized,
};
use crate::permissions::{manifests, permissions, without};
use crate::scrape::{free_port, get, listen_on};
use crate::services::Served;
use crate::trial::{Trial, own_grants, warns};

/// For so many Nodes, all leases are listed.
const POOL: usize = 25;

/// How many managers run at the same time.
const AT_ONCE: usize = 4;

/// What is done so that the permission matters.
#[derive(Clone, Copy, Debug)]
enum Trigger {
    /// The manager starts.
    Start,
    /// It leads, with a lease that is soon to be renewed.
    Lead,
    /// A Node joins.
    Join,
    /// A Node joins, and joins again.
    JoinTwice,
    /// A Node joins that others keep changing.
    Contend,
    /// A Service wants a load balancer.
    Serve,
    /// A Service wants a load balancer, and then another port.
    ServeTwice,
    /// A machine is shut down.
    ShutDown,
    /// A machine is gone.
    Lose,
    /// So many machines are gone that the leases of all kubelets are listed.
    LoseMany,
    /// A client requests metrics with a token.
    Scrape,
}

/// What shows.
#[derive(Clone, Copy, Debug)]
enum Sign {
    /// A warning with all these parts.
    Warns(&'static [&'static str]),
    /// The manager ends, with this in its log.
    Ends(&'static str),
    /// The request is answered like this.
    Answers(u16),
}

use Sign::{Answers, Ends, Warns};
use Trigger::{
    Contend, Join, JoinTwice, Lead, Lose, LoseMany, Scrape, Serve, ServeTwice, ShutDown, Start,
};

type Row = (&'static str, Trigger, Sign);

/// With the node controller.
const WITHOUT_IN_NODE: &[Row] = &[
    (
        "cloudkeel:cluster namespaces get",
        Start,
        Warns(&["failed to get the cluster UID"]),
    ),
    (
        "cloudkeel:election leases create",
        Start,
        Warns(&[
            "failed to acquire lease",
            "cannot create resource \"leases\"",
        ]),
    ),
    (
        "cloudkeel:election leases get",
        Start,
        Warns(&["failed to acquire lease", "cannot get resource \"leases\""]),
    ),
    (
        "cloudkeel:election leases update",
        Lead,
        Ends("leaderelection lost"),
    ),
    (
        "cloudkeel:election leases watch",
        Start,
        Warns(&[
            "not allowed to watch the lease",
            "cannot watch resource \"leases\"",
        ]),
    ),
    (
        "cloudkeel:election events create",
        Start,
        Warns(&["not allowed to record leader election events"]),
    ),
    (
        "cloudkeel:node-events events create",
        Join,
        Warns(&[
            "not allowed to write events",
            "cannot create resource \"events\"",
        ]),
    ),
    (
        "cloudkeel:node-events events patch",
        JoinTwice,
        Warns(&[
            "not allowed to write events",
            "cannot patch resource \"events\"",
        ]),
    ),
    (
        "cloudkeel:node nodes list",
        Start,
        Warns(&["watch failed", "cannot list resource \"nodes\""]),
    ),
    (
        "cloudkeel:node nodes watch",
        Start,
        Warns(&["watch failed", "cannot watch resource \"nodes\""]),
    ),
    (
        "cloudkeel:node nodes get",
        Contend,
        Warns(&[
            "failed to initialize node with cloud provider",
            "cannot get resource \"nodes\"",
        ]),
    ),
    (
        "cloudkeel:node nodes patch",
        Contend,
        Warns(&[
            "failed to initialize node with cloud provider",
            "cannot patch resource \"nodes\"",
        ]),
    ),
    (
        "cloudkeel:node nodes update",
        Join,
        Warns(&[
            "not allowed to update nodes by PUT, patching them",
            "cannot update resource \"nodes\"",
        ]),
    ),
    (
        "cloudkeel:node nodes/status patch",
        Join,
        Warns(&[
            "failed to initialize node with cloud provider",
            "cannot patch resource \"nodes/status\"",
        ]),
    ),
    (
        "cloudkeel:serving tokenreviews create",
        Scrape,
        Answers(401),
    ),
    (
        "cloudkeel:serving subjectaccessreviews create",
        Scrape,
        Answers(500),
    ),
    (
        "extension-apiserver-authentication-reader",
        Scrape,
        Ends("grant the role kube-system/extension-apiserver-authentication-reader"),
    ),
];

/// With the lifecycle controller.
const WITHOUT_IN_LIFECYCLE: &[Row] = &[
    (
        "cloudkeel:lifecycle nodes list",
        Start,
        Warns(&["watch failed", "cannot list resource \"nodes\""]),
    ),
    (
        "cloudkeel:lifecycle nodes watch",
        Start,
        Warns(&["watch failed", "cannot watch resource \"nodes\""]),
    ),
    (
        "cloudkeel:lifecycle nodes get",
        Lose,
        Warns(&[
            "failed to get node, not deleting it",
            "cannot get resource \"nodes\"",
        ]),
    ),
    (
        "cloudkeel:lifecycle nodes patch",
        ShutDown,
        Warns(&[
            "error patching node taints",
            "cannot patch resource \"nodes\"",
        ]),
    ),
    (
        "cloudkeel:lifecycle nodes delete",
        Lose,
        Warns(&["unable to delete node", "cannot delete resource \"nodes\""]),
    ),
    (
        "cloudkeel:heartbeats leases get",
        Lose,
        Warns(&["not allowed to get node leases"]),
    ),
    (
        "cloudkeel:heartbeats leases list",
        LoseMany,
        Warns(&["not allowed to list node leases"]),
    ),
];

/// With the service controller.
const WITHOUT_IN_SERVICE: &[Row] = &[
    (
        "cloudkeel:service services list",
        Start,
        Warns(&["watch failed", "cannot list resource \"services\""]),
    ),
    (
        "cloudkeel:service services watch",
        Start,
        Warns(&["watch failed", "cannot watch resource \"services\""]),
    ),
    (
        "cloudkeel:service services/status patch",
        Serve,
        Warns(&[
            "failed to add load balancer cleanup finalizer",
            "cannot patch resource \"services/status\"",
        ]),
    ),
    (
        "cloudkeel:service nodes list",
        Start,
        Warns(&["watch failed", "cannot list resource \"nodes\""]),
    ),
    (
        "cloudkeel:service nodes watch",
        Start,
        Warns(&["watch failed", "cannot watch resource \"nodes\""]),
    ),
    (
        "cloudkeel:service events create",
        Serve,
        Warns(&[
            "not allowed to write events",
            "cannot create resource \"events\"",
        ]),
    ),
    (
        "cloudkeel:service events patch",
        ServeTwice,
        Warns(&[
            "not allowed to write events",
            "cannot patch resource \"events\"",
        ]),
    ),
];

const COMMON: [&str; 4] = ["cluster", "election", "events", "serving"];

#[tokio::test]
async fn without_any_permission_of_the_node_controller_something_shows() {
    every_row_shows("node", WITHOUT_IN_NODE, &["--controllers=cloud-node"]).await;
}

#[tokio::test]
async fn without_any_permission_of_the_lifecycle_controller_something_shows() {
    let mut flags = FAST_DELETION.to_vec();
    flags.push("--controllers=cloud-node-lifecycle");
    every_row_shows("lifecycle", WITHOUT_IN_LIFECYCLE, &flags).await;
}

#[tokio::test]
async fn without_any_permission_of_the_service_controller_something_shows() {
    every_row_shows("service", WITHOUT_IN_SERVICE, &["--controllers=service"]).await;
}

#[test]
fn every_permission_of_the_default_roles_has_a_row() {
    let all = own_grants(&[&COMMON[..], &["node", "lifecycle", "service"]].concat());
    let rows = WITHOUT_IN_NODE.iter().chain(WITHOUT_IN_LIFECYCLE);
    let rows: BTreeSet<_> = rows
        .chain(WITHOUT_IN_SERVICE)
        .map(|(permission, ..)| (*permission).to_owned())
        .collect();
    assert_eq!(permissions(&all), rows);
}

/// A role that is not bound by default says so.
#[test]
fn every_role_is_bound_by_default_or_says_that_it_is_not() {
    let folder = manifests().join("rbac");
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).expect("a file");
    let listed = text("kustomization.yaml");
    let mut left_out = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let file = entry.expect("an entry").file_name();
        let file = file.to_str().expect("UTF-8").to_owned();
        if file != "kustomization.yaml" && !listed.contains(&format!("- {file}")) {
            assert!(text(&file).contains("not bound by default"), "{file}");
            left_out.push(file);
        }
    }
    assert_eq!(left_out, ["ipam.yaml"]);
}

async fn every_row_shows(controller: &str, rows: &[Row], flags: &[&str]) {
    let files = [&COMMON[..], &[controller]].concat();
    let failures: Vec<_> = futures::stream::iter(rows)
        .map(|row| check(row, &files, flags))
        .buffer_unordered(AT_ONCE)
        .filter_map(|failure| async { failure })
        .collect()
        .await;
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs a row; `Some` says how it failed.
async fn check(row: &Row, files: &[&str], flags: &[&str]) -> Option<String> {
    let (permission, trigger, sign) = *row;
    let trial = Trial::new(&without(&own_grants(files), permission)).await;
    let port = free_port();
    let mut flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
    if matches!(trigger, Scrape) {
        flags.extend(listen_on(port));
    }
    if matches!(trigger, Lead) {
        flags.extend(SHORT_LEASE.map(str::to_owned));
    }
    let (mut manager, _contended) = pull(trigger, &trial, &flags).await;
    let seen = match sign {
        Warns(parts) => warns(&manager, parts)
            .await
            .map_err(|unmet| unmet.to_string()),
        Ends(text) => ends(&mut manager, text).await,
        Answers(expected) => {
            let token = trial.account.token().await;
            match get(port, "/metrics", Some(&token)).await {
                (code, _) if code == expected => Ok(()),
                (code, body) => Err(format!("answered {code}: {body}")),
            }
        }
    };
    let failure = seen.err()?;
    Some(format!(
        "without {permission}: {failure}\n{}",
        manager.log()
    ))
}

const SHORT_LEASE: [&str; 3] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
];

/// Does what makes the permission matter. Nodes of old are there before the manager is.
async fn pull(trigger: Trigger, trial: &Trial, flags: &[String]) -> (Manager, Option<Contended>) {
    let world = &trial.world;
    let name = unique_name("node");
    let machine = match trigger {
        ShutDown | Lose => {
            member(world, &unique_name("stays")).await;
            member(world, &name).await
        }
        _ => 0,
    };
    let mut pool = Vec::new();
    if matches!(trigger, LoseMany) {
        member(world, &unique_name("stays")).await;
        for _ in 0..POOL {
            let name = unique_name("pool");
            pool.push((member(world, &name).await, name));
        }
    }
    let manager = trial.start(flags);
    match trigger {
        Start | Lead | Scrape => {}
        Join => {
            join(world, &name).await;
        }
        JoinTwice => {
            join(world, &name).await;
            wait_for_initialized(world, &name).await;
            create_uninitialized(world, &name).await;
        }
        Contend => return (manager, Some(Contended::new(world).await)),
        Serve => {
            Served::new(world).await;
        }
        ServeTwice => {
            let served = Served::new(world).await;
            served.address().await;
            served.change_port().await;
        }
        ShutDown => shut_down(world, &name, machine).await,
        Lose => lose(world, &name, machine).await,
        LoseMany => {
            // While they are Ready, so many machines that are gone stop all deletions: none goes before all
            // are silent.
            for (machine, _) in &pool {
                world.cloud.destroy(*machine).expect("it is there");
            }
            for (_, name) in &pool {
                stop_reporting(world, name).await;
            }
        }
    }
    (manager, None)
}

async fn ends(manager: &mut Manager, text: &str) -> Result<(), String> {
    let status = manager.ended().await;
    match status.code() {
        Some(1) if manager.log().contains(text) => Ok(()),
        other => Err(format!("ended with {other:?} and without {text:?}")),
    }
}
