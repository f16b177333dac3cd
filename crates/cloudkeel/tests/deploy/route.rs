//! The route controller under exactly its role, and under the account that every cluster has for it.

use std::collections::BTreeSet;

use cloudkeel_testkit::cluster::{unique_name, wait_for_node};

use crate::credentials::installed;
use crate::harness::{DEADLINE, World};
use crate::nodes::builder;
use crate::permissions::{permissions, without};
use crate::trial::{Trial, own_grants, warnings, warns};

const FLAGS: [&str; 2] = ["--controllers=route", "--cluster-cidr=10.140.0.0/14"];
const FILES: [&str; 5] = ["cluster", "election", "events", "route", "serving"];

/// A machine and its Node, with a network.
async fn member(world: &World, network: &str) -> String {
    let name = unique_name("node");
    let machine = world.machine(&name);
    let node = builder(world, &name)
        .provider_id(format!("local://{}/{machine}", world.id))
        .pod_cidr(network)
        .initialized();
    node.create(&world.client).await.expect("the node is made");
    name
}

async fn has_its_network(world: &World, name: &str) {
    wait_for_node(&world.client, name, DEADLINE, |node| {
        let conditions = node.status.as_ref().and_then(|s| s.conditions.as_deref());
        let mut conditions = conditions.unwrap_or_default().iter();
        conditions.any(|c| c.type_ == "NetworkUnavailable" && c.status == "False")
    })
    .await;
    assert_eq!(world.cloud.routes_of(&world.id).len(), 1);
}

#[tokio::test]
async fn the_route_controller_needs_its_role_and_no_more() {
    let grants = own_grants(&FILES);
    let trial = Trial::new(&grants).await;
    let manager = trial.start(&FLAGS);
    let name = member(&trial.world, "10.140.1.0/24").await;
    has_its_network(&trial.world, &name).await;
    let quiet = warnings(&manager);
    assert!(quiet.is_empty(), "{quiet:#?}");
    drop(manager);

    let mut checked = permissions(&own_grants(&["cluster", "election", "events", "serving"]));
    for (resource, verb, network, sign) in [
        ("nodes", "list", "10.140.2.0/24", "watch failed"),
        ("nodes", "watch", "10.140.3.0/24", "watch failed"),
        (
            "nodes/status",
            "patch",
            "10.140.4.0/24",
            "failed to update node condition NetworkUnavailable",
        ),
    ] {
        let permission = format!("cloudkeel:route {resource} {verb}");
        let trial = Trial::new(&without(&grants, &permission)).await;
        let manager = trial.start(&FLAGS);
        member(&trial.world, network).await;
        let denied = format!("cannot {verb} resource \"{resource}\"");
        let warned = warns(&manager, &[sign, &denied]).await;
        assert!(warned.is_ok(), "{permission}: {warned:?}");
        checked.insert(permission);
    }
    let all: BTreeSet<_> = permissions(&grants);
    assert_eq!(all, checked, "every permission is checked");
}

#[tokio::test]
async fn with_an_account_of_its_own_the_built_in_role_is_enough() {
    let trial = Trial::new(&installed().await).await;
    let flags = [&FLAGS[..], &["--use-service-account-credentials"]].concat();
    let manager = trial.start(&flags);
    let name = member(&trial.world, "10.141.1.0/24").await;
    has_its_network(&trial.world, &name).await;
    let quiet = warnings(&manager);
    assert!(quiet.is_empty(), "{quiet:#?}");
}
