//! A manager without a configured cloud.

use std::fs::File;

use cloudkeel_testkit::cluster::{NodeBuilder, unique_name, wait_for_node};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::Node;
use kube::Client;

use crate::home::{DEADLINE, Home, Process};

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

fn manager(home: &Home, kubeconfig: &std::path::Path, name: &str) -> Process {
    let log = File::create(home.path(name)).expect("a log file");
    let kubeconfig = kubeconfig.display();
    let child = home
        .cloudkeel(&["--cloud-provider=local", "--leader-elect=false"])
        .args(["--secure-port=0".to_owned(), "-v=2".to_owned()])
        .arg(format!("--kubeconfig={kubeconfig}"))
        .arg(format!("--authentication-kubeconfig={kubeconfig}"))
        .arg(format!("--authorization-kubeconfig={kubeconfig}"))
        .stdout(log.try_clone().expect("a second handle"))
        .stderr(log)
        .spawn();
    Process(child.expect("the manager starts"))
}

/// A Node that the manager has initialised.
async fn wait_for_initialized(client: &Client, last: u8) -> Node {
    let name = unique_name("local");
    let node = NodeBuilder::new(&name).node_ip([10, 0, 0, last].into());
    node.create(client).await.expect("the node is made");
    wait_for_node(client, &name, DEADLINE, |node| {
        let spec = node.spec.clone().unwrap_or_default();
        let taints = spec.taints.unwrap_or_default();
        spec.provider_id.is_some() && taints.iter().all(|taint| taint.key != UNINITIALIZED)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_starts_the_cloud_and_the_next_one_finds_it_again() {
    let home = Home::new();
    let control_plane = ControlPlane::shared().await;
    let kubeconfig = control_plane.kubeconfig_for("local-cloud", &["system:masters"]);
    let client = control_plane.client();
    let mut first = manager(&home, &kubeconfig, "first.log");
    let cloud = home.running().await;
    let node = wait_for_initialized(&client, 1).await;
    let id = node.spec.and_then(|spec| spec.provider_id).expect("an ID");
    assert!(id.starts_with("local://demo/"), "{id}");
    first.0.kill().expect("the manager dies");
    first.ended().await;

    let left = home.running().await;
    assert_eq!(
        left["contact"], cloud["contact"],
        "the cloud goes on without a manager"
    );
    let mut second = manager(&home, &kubeconfig, "second.log");
    wait_for_initialized(&client, 2).await;
    assert_eq!(
        home.running().await["contact"],
        cloud["contact"],
        "it is the same cloud"
    );
    assert_eq!(home.status().len(), 1, "and the only one");
    second.signal("TERM");
    assert_eq!(second.ended().await, Some(0));
    home.running().await;
    let stopped = home.run(&["local-cloud", "stop"]);
    assert!(stopped.status.success(), "{stopped:?}");
}
