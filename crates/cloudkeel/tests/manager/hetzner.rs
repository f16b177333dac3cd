//! In the place of hcloud-cloud-controller-manager: its name, its arguments, its environment.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use cloudkeel_testkit::cluster::{NodeBuilder, eventually, wait_for_node};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::hetzner::{HetznerCloud, Operation, Served, ServerSpec, Settings};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use tempfile::TempDir;

use crate::harness::DEADLINE;

/// The arguments of the Go chart with one replica.
const CHART: [&str; 6] = [
    "--allow-untagged-cloud",
    "--cloud-provider=hcloud",
    "--feature-gates=CloudControllerManagerWatchBasedRoutesReconciliation=true",
    "--leader-elect=false",
    "--route-reconciliation-period=30s",
    "--webhook-secure-port=0",
];

/// A cluster of its own: whoever runs in the Go CCM's place takes every Node for its own.
struct Swap {
    control_plane: ControlPlane,
    cloud: HetznerCloud,
    served: Served,
    folder: TempDir,
}

/// A process that ends with the test.
struct Ccm(Child);

impl Drop for Ccm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ccm {
    /// Asks it to finish what it does, and waits until it has.
    async fn finish(mut self) {
        let sent = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(sent.expect("kill runs").success());
        let child = &mut self.0;
        eventually("the end of the process", DEADLINE, || {
            let ended = child.try_wait().expect("the process can be asked");
            async move { ended.is_some() }
        })
        .await;
    }
}

impl Swap {
    async fn new() -> Self {
        let control_plane = ControlPlane::start().await.expect("a control plane");
        let cloud = HetznerCloud::new(Settings::default());
        let range = "10.0.0.0/16".parse().expect("a network");
        let network = cloud.add_network("kube", range).expect("a network");
        for name in ["node-1", "node-2"] {
            let spec = ServerSpec::named(name).in_network(network.id);
            cloud.add_server(spec).expect("a server");
        }
        let served = cloud.serve_on_loopback().await.expect("a port on loopback");
        Self {
            control_plane,
            cloud,
            served,
            folder: TempDir::new().expect("a temporary folder"),
        }
    }

    /// Starts the program under the name of the Go binary.
    fn start(&self) -> Ccm {
        let program = self.folder.path().join("hcloud-cloud-controller-manager");
        if !program.exists() {
            symlink(env!("CARGO_BIN_EXE_cloudkeel"), &program).expect("a link");
        }
        let kubeconfig = self
            .control_plane
            .kubeconfig_for("hccm", &["system:masters"]);
        let log = File::create(self.folder.path().join("log")).expect("a log");
        let flags = ["", "authentication-", "authorization-"]
            .map(|what| format!("--{what}kubeconfig={}", kubeconfig.display()));
        let child = Command::new(program)
            .args(CHART)
            .args(flags)
            .arg("--secure-port=0")
            .env("HCLOUD_TOKEN", HetznerCloud::TOKEN)
            .env("HCLOUD_ENDPOINT", self.served.api_url())
            .env("HCLOUD_NETWORK", "kube")
            .env("HCLOUD_NETWORK_DISABLE_ATTACHED_CHECK", "true")
            .env("HCLOUD_METRICS_ENABLED", "false")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn();
        Ccm(child.expect("the program starts"))
    }

    async fn versions(&self) -> BTreeMap<String, String> {
        let nodes: Api<Node> = Api::all(self.control_plane.client());
        let nodes = nodes.list(&ListParams::default()).await;
        let nodes = nodes.expect("nodes can be listed").into_iter();
        nodes
            .map(|node| {
                let meta = node.metadata;
                (
                    meta.name.unwrap_or_default(),
                    meta.resource_version.unwrap_or_default(),
                )
            })
            .collect()
    }
}

fn is_initialised(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let taints = taints.into_iter().flatten();
    !taints
        .into_iter()
        .any(|taint| taint.key.ends_with("/uninitialized"))
}

#[tokio::test]
async fn nodes_become_what_the_go_ccm_makes_of_them_and_the_next_start_writes_nothing() {
    let swap = Swap::new().await;
    let client = swap.control_plane.client();
    for server in swap.cloud.servers() {
        let private = server.private_net.first().expect("a private address");
        let node = NodeBuilder::new(&server.name).node_ip(private.ip.into());
        node.create(&client).await.expect("the node is made");
    }
    let first = swap.start();
    for server in swap.cloud.servers() {
        let node = wait_for_node(&client, &server.name, DEADLINE, is_initialised).await;
        let id = node.spec.and_then(|spec| spec.provider_id);
        assert_eq!(id, Some(format!("hcloud://{}", server.id)));
        let labels = node.metadata.labels.unwrap_or_default();
        for (key, value) in [
            ("node.kubernetes.io/instance-type", "cx22"),
            ("topology.kubernetes.io/region", "fsn1"),
            ("topology.kubernetes.io/zone", "fsn1-dc14"),
            ("instance.hetzner.cloud/provided-by", "cloud"),
        ] {
            assert_eq!(labels.get(key).map(String::as_str), Some(value), "{key}");
        }
        let addresses = node.status.and_then(|status| status.addresses);
        let addresses: BTreeMap<_, _> = addresses
            .unwrap_or_default()
            .into_iter()
            .map(|address| (address.type_, address.address))
            .collect();
        let public = server.ipv4.map(|ip| ip.to_string());
        assert_eq!(addresses.get("ExternalIP").cloned(), public);
        assert_eq!(addresses.get("Hostname"), Some(&server.name));
    }
    first.finish().await;

    let before = swap.versions().await;
    swap.cloud.reset_calls();
    let second = swap.start();
    eventually("a look at all servers", DEADLINE, || {
        let seen = swap.cloud.calls().of(Operation::ListServers);
        async move { seen > 0 }
    })
    .await;
    second.finish().await;
    assert_eq!(swap.versions().await, before, "no Node is written");
    assert_eq!(swap.cloud.calls().mutations(), 0);
}
