//! The live page of the real process, and what `/status` says of the same.

use cloudkeel_testkit::cluster::{
    NodeBuilder, ServiceBuilder, TestNamespace, eventually, unique_name,
};
use cloudkeel_testkit::simulated_cloud::Operation;
use serde_json::{Value, json};

use crate::harness::{DEADLINE, World};
use crate::serving::{free_port, get};

#[tokio::test]
async fn the_page_shows_what_the_leader_sees_to_those_who_may() {
    let world = World::new().await;
    let port = free_port();
    let secure_port = format!("--secure-port={port}");
    let bind = "--bind-address=127.0.0.1";
    let open = "--authorization-always-allow-paths=/page/*";
    let closed_port = free_port();
    let closed = format!("--secure-port={closed_port}");
    let often = "--node-status-update-frequency=2s";
    let manager = world.start(&[&secure_port, bind, open, often, "--page"]);
    manager.wait_for_log("controller started").await;
    let standby = world.start(&[&closed, bind, "--page"]);
    standby.wait_for_log("serving securely").await;
    let name = unique_name("node");
    world.machine(&name);
    let (key, value) = world.label();
    let node = NodeBuilder::new(&name).label(key, value);
    node.create(&world.client).await.expect("the node is made");
    let row = eventually("the Node on the page", DEADLINE, || async {
        // Other tests have Nodes in this cluster, too.
        let (_, picture) = get(port, &format!("/page/picture?nodes={name}"))?;
        let picture: Value = serde_json::from_str(&picture).ok()?;
        let mut nodes = picture["nodes"].as_array()?.iter();
        let row = nodes.find(|row| row["name"] == name.as_str())?;
        (row["machineState"] == "running").then(|| row.clone())
    })
    .await;
    assert_eq!(row["cloud"], world.id.as_str(), "{row}");
    assert_eq!(row["actions"], json!([]), "it only shows");
    let (code, page) = get(port, "/page/").expect("an answer");
    assert_eq!((code, page.contains("page.js")), (200, true), "{page}");
    assert_eq!(get(port, "/page/press").map(|(code, _)| code), Some(404));
    let refused = get(closed_port, "/page/picture").map(|(code, _)| code);
    assert_eq!(refused, Some(403), "not allowed without a role");
}

/// What is at a path, in JSON.
fn read(port: u16, path: &str) -> Option<Value> {
    let (code, body) = get(port, path)?;
    let read = || serde_json::from_str(&body).expect("JSON");
    (code == 200).then(read)
}

/// The rows of a list that are like this.
fn rows(list: &Value, is_meant: impl Fn(&Value) -> bool) -> Vec<&Value> {
    let all = list.as_array().expect("a list");
    all.iter().filter(|row| is_meant(row)).collect()
}

#[tokio::test]
async fn targets_routes_and_events_are_shown_as_they_come_without_a_call_for_them() {
    let world = World::new().await;
    let port = free_port();
    let secure_port = format!("--secure-port={port}");
    let open = "--authorization-always-allow-paths=/page/*,/status";
    let namespace = TestNamespace::create(&world.client, "page").await;
    let namespace = namespace.expect("the namespace is made");
    let name = unique_name("node");
    world.machine(&name);
    let (key, value) = world.label();
    let node = NodeBuilder::new(&name).label(key, value);
    let node = node.pod_cidr("10.134.1.0/24");
    node.create(&world.client).await.expect("the node is made");
    let service = ServiceBuilder::new(namespace.name(), "web").class(world.class());
    let service = service.port("main", 80).create(&world.client).await;
    service.expect("the service is made");
    let flags = [
        "--bind-address=127.0.0.1",
        "--cluster-cidr=10.134.0.0/16",
        "--page",
        open,
        &secure_port,
    ];
    let _manager = world.start(&flags);
    let web = format!("{}/web", namespace.name());
    let whole = eventually("a whole picture", DEADLINE, || async {
        let picture = read(port, &format!("/page/picture?balancers={web}"))?;
        let balancers = rows(&picture["balancers"], |row| row["service"] == web.as_str());
        let is_target = |row: &Value| row["node"] == name.as_str() && row["state"] == "serving";
        let serves = balancers.iter().any(|row| {
            row["state"] == "in service" && !rows(&row["targets"], is_target).is_empty()
        });
        let routes = rows(&picture["routes"], |row| {
            row["destination"] == "10.134.1.0/24"
        });
        let leads_there = |row: &&Value| row["to"] == name.as_str() && row["state"] == "ours";
        let has_event = |reason: &str, object: String| {
            let like = |row: &Value| row["reason"] == reason && row["object"] == object.as_str();
            !rows(&picture["events"], like).is_empty()
        };
        let is_whole = serves
            && routes.iter().any(leads_there)
            && has_event("EnsuredLoadBalancer", format!("Service/{web}"))
            && has_event("Synced", format!("Node/{name}"));
        is_whole.then_some(picture)
    })
    .await;
    let status = read(port, "/status").expect("an answer");
    let shown = &whole["balancers"][0]["service"];
    assert_eq!(&status["balancers"][0]["service"], shown, "{status}");
    assert_eq!(status["routes"][0]["use"], "serving", "{status}");
    assert_eq!(status["balancers"][0]["targets"][0]["node"], name.as_str());

    world.cloud.reset_calls();
    for _ in 0..20 {
        read(port, "/page/picture").expect("an answer");
    }
    let calls = world.cloud.calls();
    let looks = [Operation::ListRoutes, Operation::ListBalancers].map(|it| calls.of(it));
    assert_eq!(looks, [0, 0], "the page makes no cloud requests");
}
