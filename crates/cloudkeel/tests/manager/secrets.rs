//! The credential of each cloud appears in none of the places that people and programs read.

use std::path::PathBuf;
use std::process::Command;

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, unique_name};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::Permission;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::ListParams;

use crate::harness::{DEADLINE, Manager, World};
use crate::serving::free_port;

/// Everything that a manager may be asked for.
const PATHS: [&str; 9] = [
    "/configz",
    "/metrics",
    "/metrics/slis",
    "/status",
    "/healthz?verbose",
    "/readyz?verbose",
    "/version",
    "/page/picture",
    "/debug/flags/v",
];

fn get(port: u16, path: &str) -> Option<String> {
    let url = format!("https://127.0.0.1:{port}{path}");
    let mut curl = Command::new("curl");
    let output = curl.args(["--silent", "--insecure", "--max-time", "5", &url]);
    let text = String::from_utf8_lossy(&output.output().ok()?.stdout).into_owned();
    (!text.is_empty()).then_some(text)
}

/// A manager with full logging, whose endpoints need no authorization.
fn start_wordy(world: &World, more: &[&str]) -> (Manager, u16) {
    let port = free_port();
    let secure_port = format!("--secure-port={port}");
    let mut flags = vec![
        secure_port.as_str(),
        "--bind-address=127.0.0.1",
        "--authorization-always-allow-paths=/*",
        "--node-status-update-frequency=2s",
        "--profiling=true",
        "--page",
        "-v=10",
    ];
    flags.extend(more);
    (world.start(&flags), port)
}

/// Everything that can be read of a manager and of what it wrote, by the name of the place.
async fn everything(world: &World, manager: &Manager, port: u16) -> Vec<(String, String)> {
    let mut all = vec![("the log".to_owned(), manager.log())];
    for path in PATHS {
        let page = eventually(path, DEADLINE, || async { get(port, path) }).await;
        all.push((path.to_owned(), page));
    }
    let events: Api<Event> = Api::all(world.client.clone());
    let events = events.list(&ListParams::default()).await;
    let events = serde_json::to_string(&events.expect("events can be listed").items);
    all.push(("Events".to_owned(), events.expect("JSON")));
    let nodes: Api<Node> = Api::all(world.client.clone());
    let nodes = nodes.list(&ListParams::default()).await;
    let nodes = serde_json::to_string(&nodes.expect("nodes can be listed").items);
    all.push(("Nodes".to_owned(), nodes.expect("JSON")));
    all
}

fn assert_hidden(secrets: &[&str], shown: &[(String, String)]) {
    for (place, text) in shown {
        for secret in secrets {
            assert!(!text.contains(secret), "{place} shows {secret:?}:\n{text}");
        }
    }
}

async fn make_node(world: &World) -> String {
    let name = unique_name("node");
    let (key, value) = world.label();
    let node = NodeBuilder::new(&name).label(key, value);
    node.create(&world.client).await.expect("the node is made");
    name
}

#[tokio::test]
async fn the_token_of_the_local_cloud_is_shown_nowhere() {
    const SECRET: &str = "hunter2-of-the-local-cloud";
    let world = World::new().await;
    world.cloud.grant(SECRET, &world.id, Permission::ReadWrite);
    world.write_config(SECRET);
    let (manager, port) = start_wordy(&world, &[]);
    manager.wait_for_log("controller started").await;
    world.machine(&make_node(&world).await);
    manager.wait_for_log("DEBUG").await;
    // From now on every call fails, and failures are what people paste into tickets.
    world.cloud.revoke(SECRET);
    manager.wait_for_log("401").await;
    assert_hidden(&[SECRET], &everything(&world, &manager, port).await);
}

#[cfg(all(feature = "emulators", feature = "hetzner"))]
#[tokio::test]
async fn the_token_and_the_password_of_hetzner_are_shown_nowhere() {
    use cloudkeel_emulator_hetzner::{HetznerCloud, Settings};
    const TOKEN: &str = "hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2h";
    const PASSWORD: &str = "pa55word-of-robot";
    let world = World::new().await;
    let cloud = HetznerCloud::new(Settings::default());
    let grant = |cloud: &HetznerCloud| {
        use cloudkeel_emulator_hetzner::Permission;
        cloud.grant(TOKEN, HetznerCloud::PROJECT, Permission::ReadWrite);
    };
    grant(&cloud);
    cloud.set_robot_login("user", PASSWORD);
    let served = cloud.serve_on_loopback().await.expect("a port on loopback");
    let (key, value) = world.label();
    let config = format!(
        "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: {value}\n  provider: hcloud\n  \
         nodes: {{selector: \"{key}={value}\"}}\n  loadBalancers: {{default: false, class: {value}}}\n  \
         config:\n    token: {TOKEN}\n    endpoint: {}\n    debug: true\n    \
         robot: {{enabled: true, user: user, password: {PASSWORD}, endpoint: \"{}\"}}\n",
        served.api_url(),
        served.robot_url(),
    );
    let config = world.write_file("hetzner.yaml", &config);
    let config = format!("--cloud-config={}", config.display());
    let (manager, port) = start_wordy(&world, &[&config]);
    manager.wait_for_log("controller started").await;
    make_node(&world).await;
    manager.wait_for_log("/servers").await;
    manager.wait_for_log("/robot/").await;
    cloud.revoke(TOKEN);
    manager.wait_for_log("401").await;
    let shown = everything(&world, &manager, port).await;
    assert_hidden(&[TOKEN, PASSWORD], &shown);
}

/// A kubeconfig with the token of a ServiceAccount that may do everything.
async fn kubeconfig_with_token() -> PathBuf {
    let plane = ControlPlane::shared().await;
    let name = unique_name("account");
    let made = plane.make_administrator("default", &name).await;
    made.expect("the account is made");
    let written = plane.service_account_kubeconfig("default", &name);
    written.await.expect("the account is there")
}

#[tokio::test]
async fn tokens_for_the_kubernetes_api_are_shown_nowhere() {
    /// What every token of a ServiceAccount begins with.
    const TOKEN: &str = "eyJhbGciOi";
    let mut world = World::new().await;
    world.kubeconfig = kubeconfig_with_token().await;
    let kubeconfig = std::fs::read_to_string(&world.kubeconfig).expect("the file is there");
    assert!(kubeconfig.contains(TOKEN), "there is something to hide");
    // With accounts for the controllers there are tokens in answers, too.
    let (manager, port) = start_wordy(&world, &["--use-service-account-credentials"]);
    manager.wait_for_log("controller started").await;
    let name = make_node(&world).await;
    world.machine(&name);
    eventually("the node is initialised", DEADLINE, || async {
        let spec = world.node(&name).await.spec;
        spec.is_some_and(|spec| spec.provider_id.is_some())
    })
    .await;
    assert_hidden(&[TOKEN], &everything(&world, &manager, port).await);
}

#[test]
fn mistakes_and_help_show_no_credential() {
    const SECRET: &str = "hunter2-in-the-clear";
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let file = folder.path().join("clouds.yaml");
    let text = format!(
        "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: a\n  provider: hcloud\n  \
         config: {{token: [{SECRET}], robot: {{password: {{a: {SECRET}}}}}}}\n- name: b\n  provider: local\n  \
         config: {{token: {{x: {SECRET}}}, timeout: soon}}\n"
    );
    std::fs::write(&file, &text).expect("the file is written");
    let config = format!("--cloud-config={}", file.display());
    let broken = folder.path().join("broken.yaml");
    std::fs::write(&broken, text + "]").expect("the file is written");
    let broken = format!("--cloud-config={}", broken.display());
    for arguments in [
        &[config.as_str(), "--leader-elect=false"][..],
        &[broken.as_str(), "--leader-elect=false"],
        &["--help"],
        &["--cloud-provider=hcloud", "--leader-elect=maybe"],
        &["providers"],
        &["docs", "config"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_cloudkeel"))
            .args(arguments)
            .env("HCLOUD_TOKEN", SECRET)
            .env("ROBOT_PASSWORD", SECRET)
            .output()
            .expect("the program runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(!said.is_empty(), "{arguments:?}");
        assert!(!said.contains(SECRET), "{arguments:?}: {said}");
    }
}
