//! The commands that run a manager, on a real API server.

use std::path::Path;

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, wait_for_node};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Permission, Settings, SimulatedCloud};
use k8s_openapi::api::core::v1::Node;
use tempfile::TempDir;

use crate::shell::{DEADLINE, Running, printed, shell};

pub(crate) const WITH_CLOUDS: &str =
    "cloudkeel --kubeconfig ~/.kube/config --cloud-config clouds.yaml";
pub(crate) const LOCAL: &str = "cloudkeel --cloud-provider=local --kubeconfig ~/.kube/config";
pub(crate) const STOP: &str = "cloudkeel local-cloud stop";

/// So that it does not take the one port that every manager has.
const WITHOUT_PORT: &str = "--secure-port=0";

/// A home with the kubeconfig of a cluster in its place. No local cloud outlives it.
struct Home(TempDir);

impl Home {
    fn of(control_plane: &ControlPlane) -> Self {
        let home = TempDir::new().expect("a folder");
        let folder = home.path().join(".kube");
        std::fs::create_dir(&folder).expect("a folder for the kubeconfig");
        let kubeconfig = control_plane.kubeconfig_for("me", &["system:masters"]);
        std::fs::copy(kubeconfig, folder.join("config")).expect("a kubeconfig");
        Self(home)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Nothing to stop is no failure.
        let _ = shell(STOP, self.path()).output();
    }
}

fn start(line: &str, home: &Path) -> Running {
    let command = shell(&format!("{line} {WITHOUT_PORT}"), home);
    Running::start_with_log(command, &home.join("log"))
}

async fn wait_for_log(home: &Path, text: &str) {
    let log = home.join("log");
    eventually(&format!("{text:?} in the log"), DEADLINE, || async {
        let written = std::fs::read_to_string(&log).unwrap_or_default();
        if written.contains(text) {
            Ok(Some(()))
        } else {
            Err(written)
        }
    })
    .await;
}

fn is_initialized(node: &Node) -> bool {
    let id = node
        .spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_ref());
    id.is_some_and(|id| id.starts_with("local://"))
}

#[tokio::test]
async fn a_manager_with_a_file_of_clouds_initialises_nodes() {
    let control_plane = ControlPlane::start().await.expect("a control plane");
    let home = Home::of(&control_plane);
    let cloud = SimulatedCloud::new(Settings::default());
    let served = cloud.serve_on_loopback().await.expect("a port on loopback");
    cloud.grant("token", SimulatedCloud::PROJECT, Permission::ReadWrite);
    let machine = cloud.add_machine(MachineSpec::named("node-1"));
    machine.expect("a machine");
    let clouds = format!(
        "apiVersion: cloudkeel.dev/v1\nkind: CloudConfig\nclouds:\n- name: home\n  provider: local\n  \
         config: {{endpoint: \"{}\", token: token}}\n",
        served.url()
    );
    std::fs::write(home.path().join("clouds.yaml"), clouds).expect("the file is written");
    let client = control_plane.client();
    let node = NodeBuilder::new("node-1");
    node.create(&client).await.expect("the node is made");
    let mut manager = start(WITH_CLOUDS, home.path());
    wait_for_node(&client, "node-1", DEADLINE, is_initialized).await;
    assert_eq!(manager.end("TERM").await, Some(0));
}

#[tokio::test]
async fn a_manager_with_the_local_cloud_starts_it_and_leaves_it_to_be_stopped() {
    let control_plane = ControlPlane::start().await.expect("a control plane");
    let home = Home::of(&control_plane);
    let client = control_plane.client();
    let node = NodeBuilder::new("node-1").node_ip([10, 0, 0, 1].into());
    node.create(&client).await.expect("the node is made");
    let mut manager = start(LOCAL, home.path());
    wait_for_node(&client, "node-1", DEADLINE, is_initialized).await;
    wait_for_log(home.path(), "using the local cloud of this machine").await;
    assert_eq!(manager.end("TERM").await, Some(0));
    let text = printed(shell(STOP, home.path()));
    assert!(text.starts_with("Stopped the local cloud"), "{text}");
}
