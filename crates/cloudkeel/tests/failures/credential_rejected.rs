//! The old token of a cloud is rejected before the new one is there.

use std::path::Path;
use std::process::Command;

use cloudkeel_emulator_hetzner::{HetznerCloud, Operation, Permission, ServerSpec, Settings};
use cloudkeel_testkit::cluster::{ServiceBuilder, TestNamespace, eventually, unique_name};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::Node;
use kube::Api;

use crate::cluster::{
    FAST_DELETION, events, register, report_ready, stop_reporting, wait_for_address,
    wait_for_event, wait_for_initialized, world_of,
};
use crate::harness::{DEADLINE, Manager, World};
use crate::scrape::{free_port, get};

const NEW_TOKEN: &str = "rotatedrotatedrotatedrotatedrotatedrotatedrotatedrotatedrotatedr";

/// A server of the cloud, and the Node that waits for it.
async fn join(world: &World, cloud: &HetznerCloud) -> String {
    let name = unique_name("node");
    let server = cloud.add_server(ServerSpec::named(&name));
    server.expect("a server");
    register(world, &name).await;
    name
}

/// In the place of the Go CCM, with the token in a file that a Secret is mounted as.
fn start(world: &World, endpoint: &str, token: &Path, port: u16) -> Manager {
    let mut program = Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
    let kubeconfig = world.kubeconfig.display();
    for what in ["", "authentication-", "authorization-"] {
        program.arg(format!("--{what}kubeconfig={kubeconfig}"));
    }
    program
        .args(FAST_DELETION)
        .args([
            "--cloud-provider=hcloud",
            "--allow-untagged-cloud",
            "--bind-address=127.0.0.1",
            "--authorization-always-allow-paths=/metrics",
            "--cloud-reload-period=500ms",
        ])
        .arg(format!("--leader-elect-resource-name={}", world.lease()))
        .arg(format!("--secure-port={port}"))
        .env("HCLOUD_TOKEN_FILE", token)
        .env("HCLOUD_ENDPOINT", endpoint)
        .env("HCLOUD_LOAD_BALANCERS_LOCATION", "fsn1")
        .env("HCLOUD_METRICS_ENABLED", "false");
    Manager::spawn(program, world.log_file())
}

async fn are_kept(world: &World, nodes: &[String]) {
    let all: Api<Node> = Api::all(world.client.clone());
    for name in nodes {
        let node = all.get_opt(name).await.expect("an answer");
        assert!(node.is_some(), "{name} is there");
        let events = events(&world.client, "default", name, "DeletingNode").await;
        assert_eq!(events, [], "{name}");
    }
}

#[tokio::test]
async fn a_token_that_is_refused_costs_nothing_until_the_next_one_is_there() {
    // In the place of the Go CCM, every Node belongs to this cloud.
    let plane = ControlPlane::start().await.expect("a control plane");
    let world = world_of(&plane).await;
    let cloud = HetznerCloud::new(Settings::default());
    let hetzner = cloud.serve_on_loopback().await.expect("a port on loopback");
    let token = world.write_file("token", HetznerCloud::TOKEN);
    let port = free_port();
    let mut manager = start(&world, &hetzner.api_url(), &token, port);
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(join(&world, &cloud).await);
    }
    for name in &nodes {
        wait_for_initialized(&world, name).await;
        report_ready(&world, name).await;
    }
    let namespace = TestNamespace::create(&world.client, "failures").await;
    let namespace = namespace.expect("the namespace is made");
    let web = ServiceBuilder::new(namespace.name(), "web");
    let made = web.port("main", 80).create(&world.client).await;
    made.expect("the service is made");
    wait_for_address(&world.client, namespace.name(), "web").await;
    let before = cloud.load_balancers();

    cloud.revoke(HetznerCloud::TOKEN);
    cloud.reset_calls();
    // A manager that took a rejection for "gone" would delete all of them now.
    for name in &nodes {
        stop_reporting(&world, name).await;
    }
    eventually("several questions", DEADLINE, || async {
        let calls = cloud.calls();
        calls.of(Operation::ListServers) + calls.of(Operation::GetServer) >= 4
    })
    .await;
    let late = join(&world, &cloud).await;
    let why = wait_for_event(&world.client, "default", &late, "InitializationDelayed").await;
    assert!(why.contains("unauthorized") || why.contains("401"), "{why}");
    let (_, metrics) = get(port, "/metrics", None).await;
    assert!(metrics.contains("result=\"unauthenticated\""), "{metrics}");
    are_kept(&world, &nodes).await;
    assert_eq!(cloud.load_balancers(), before, "nothing is touched");

    cloud.grant(NEW_TOKEN, HetznerCloud::PROJECT, Permission::ReadWrite);
    world.write_file("token", NEW_TOKEN);
    manager.wait_for_log("cloud settings reloaded").await;
    wait_for_event(
        &world.client,
        "kube-system",
        world.lease(),
        "CloudSettingsReloaded",
    )
    .await;
    wait_for_initialized(&world, &join(&world, &cloud).await).await;
    are_kept(&world, &nodes).await;
    let now: Vec<_> = cloud.load_balancers().into_iter().map(|it| it.id).collect();
    let then: Vec<_> = before.iter().map(|it| it.id).collect();
    assert_eq!(now, then, "the balancer of before");
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "it never restarted");
}
