//! The node IPAM controller under exactly its role.

use std::collections::BTreeSet;

use cloudkeel_testkit::cluster::{unique_name, wait_for_node};

use crate::harness::DEADLINE;
use crate::nodes::member;
use crate::permissions::{permissions, without};
use crate::trial::{Trial, own_grants, warnings, warns};

const FLAGS: [&str; 3] = [
    "--controllers=node-ipam-controller",
    "--allocate-node-cidrs",
    "--cluster-cidr=10.96.0.0/12",
];
const FILES: [&str; 5] = ["cluster", "election", "events", "ipam", "serving"];

/// One after the other: it serves the Nodes of all tests, and two of it would not agree.
#[tokio::test]
async fn the_ipam_controller_needs_its_role_and_no_more() {
    let grants = own_grants(&FILES);
    let trial = Trial::new(&grants).await;
    let manager = trial.start(&FLAGS);
    let name = unique_name("node");
    member(&trial.world, &name).await;
    wait_for_node(&trial.world.client, &name, DEADLINE, |node| {
        let spec = node.spec.as_ref();
        spec.is_some_and(|spec| spec.pod_cidr.is_some())
    })
    .await;
    let quiet = warnings(&manager);
    assert!(quiet.is_empty(), "{quiet:#?}");
    drop(manager);

    let mut checked = permissions(&own_grants(&["cluster", "election", "events", "serving"]));
    for (verb, sign) in [
        ("list", "watch failed"),
        ("patch", "failed to update node PodCIDR"),
        ("watch", "watch failed"),
    ] {
        let permission = format!("cloudkeel:ipam nodes {verb}");
        let trial = Trial::new(&without(&grants, &permission)).await;
        let manager = trial.start(&FLAGS);
        member(&trial.world, &unique_name("node")).await;
        let denied = format!("cannot {verb} resource \"nodes\"");
        let warned = warns(&manager, &[sign, &denied]).await;
        assert!(warned.is_ok(), "{permission}: {warned:?}");
        checked.insert(permission);
    }
    let all: BTreeSet<_> = permissions(&grants);
    assert_eq!(all, checked, "every permission is checked");
}
