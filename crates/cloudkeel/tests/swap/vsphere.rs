//! The program itself in the place of vsphere-cloud-controller-manager, with simulated vCenters.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use cloudkeel_testkit::cluster::{NodeBuilder, wait_for_node};
use cloudkeel_testkit::control_plane::ControlPlane;
use cloudkeel_testkit::vcsim::{NewVm, SimulatedVCenter, VCenterSpec};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::account::Account;
use crate::charts::account;
use crate::cluster::is_initialized;
use crate::harness::{DEADLINE, Manager};
use crate::pod;

/// The arguments of the release's manifest, but for the place of the file.
const ARGUMENTS: [&str; 2] = ["--cloud-provider=vsphere", "--v=2"];

struct Swap {
    plane: ControlPlane,
    client: Client,
    vcenters: [SimulatedVCenter; 2],
    account: Account,
    folder: TempDir,
}

impl Swap {
    /// A cluster on two vCenters, with a Secret and Nodes as the Go CCM leaves them.
    async fn new() -> Self {
        let plane = ControlPlane::start_audited()
            .await
            .expect("a control plane");
        let client = plane.client();
        let vcenter = || SimulatedVCenter::new(VCenterSpec::default());
        let vcenters = [vcenter().await, vcenter().await].map(|made| made.expect("a vCenter"));
        for vcenter in &vcenters {
            for (category, name, path) in [
                ("k8s-zone", "z1", "/DC0/host/DC0_C0"),
                ("k8s-region", "r1", "/DC0"),
            ] {
                let tagged = vcenter.tag(category, name, path).await;
                tagged.expect("a tag");
            }
        }
        let swap = Self {
            account: account(&client, "vsphere").await,
            folder: TempDir::new().expect("a temporary folder"),
            plane,
            client,
            vcenters,
        };
        swap.write_secret().await;
        for (vcenter, name, ip) in [(0, "node-1", "10.0.0.1"), (1, "node-2", "10.0.0.2")] {
            let vm = swap.vm(vcenter, name, ip).await;
            swap.node(name, ip, &vm.uuid).await;
        }
        swap
    }

    async fn vm(&self, vcenter: usize, name: &str, ip: &str) -> NewVm {
        let vm = self.vcenters[vcenter].add_vm(name, &[ip]).await;
        vm.expect("a virtual machine")
    }

    /// `vsphere-cloud-secret`, as its users make it.
    async fn write_secret(&self) {
        let host = self.vcenters[0].host();
        let pairs = [("username", SimulatedVCenter::USER), ("password", "pass")];
        let data = pairs.map(|(key, value)| (format!("{host}.{key}"), ByteString(value.into())));
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some("vsphere-cloud-secret".to_owned()),
                ..ObjectMeta::default()
            },
            data: Some(data.into()),
            ..Secret::default()
        };
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "kube-system");
        let made = secrets.create(&PostParams::default(), &secret).await;
        made.expect("the Secret is made");
    }

    /// A Node that the Go CCM has initialized.
    async fn node(&self, name: &str, ip: &str, uuid: &str) {
        let kind = "vsphere-vm.cpu-2.mem-4gb.os-ubuntu";
        let node = NodeBuilder::new(name)
            .initialized()
            .provider_id(format!("vsphere://{uuid}"))
            .label("beta.kubernetes.io/instance-type", kind)
            .label("node.kubernetes.io/instance-type", kind)
            .label("failure-domain.beta.kubernetes.io/region", "r1")
            .label("topology.kubernetes.io/region", "r1")
            .label("failure-domain.beta.kubernetes.io/zone", "z1")
            .label("topology.kubernetes.io/zone", "z1");
        node.create(&self.client).await.expect("the node is made");
        let address = |kind: &str, address: &str| json!({"type": kind, "address": address});
        let addresses = [
            address("Hostname", name),
            address("InternalIP", ip),
            address("ExternalIP", ip),
        ];
        let nodes: Api<Node> = Api::all(self.client.clone());
        let addresses = Patch::Merge(json!({"status": {"addresses": addresses}}));
        let written = nodes
            .patch_status(name, &PatchParams::default(), &addresses)
            .await;
        written.expect("the addresses are written");
    }

    fn ini(&self) -> String {
        let global = "[Global]\nsecret-name = \"vsphere-cloud-secret\"\nsecret-namespace = \"kube-system\"\n\
                      insecure-flag = \"1\"\n[Labels]\nzone = k8s-zone\nregion = k8s-region\n";
        let sections = self.vcenters.iter().enumerate().map(|(tenant, vcenter)| {
            let (host, port) = (vcenter.host(), vcenter.port());
            format!(
                "[VirtualCenter \"tenant-{tenant}\"]\nserver = \"{host}\"\nport = \"{port}\"\ndatacenters = \"DC0\"\n"
            )
        });
        let texts = std::iter::once(global.to_owned()).chain(sections);
        texts.collect()
    }

    fn yaml(&self) -> String {
        let entry = |vcenter: &SimulatedVCenter| {
            let [sha1, _] = vcenter.thumbprints();
            let port: u16 = vcenter.port().parse().expect("a port");
            json!({"server": vcenter.host(), "port": port, "datacenters": ["DC0"], "thumbprint": sha1})
        };
        let [a, b] = &self.vcenters;
        let file: Value = json!({
            "global": {"secretName": "vsphere-cloud-secret", "secretNamespace": "kube-system"},
            "vcenter": {"tenant-a": entry(a), "tenant-b": entry(b)},
            "labels": {"zone": "k8s-zone", "region": "k8s-region"},
        });
        file.to_string()
    }

    /// As the manifest starts it, by the name of the Go program.
    async fn start(&self, config: &str) -> Manager {
        let file = self.folder.path().join("vsphere.conf");
        std::fs::write(&file, config).expect("the file is written");
        let program: PathBuf = self.folder.path().join("vsphere-cloud-controller-manager");
        if !program.exists() {
            symlink(env!("CARGO_BIN_EXE_cloudkeel"), &program).expect("a link");
        }
        let mut container =
            pod::container(&self.plane, &self.account, self.folder.path(), program).await;
        container
            .args(ARGUMENTS)
            .arg(format!("--cloud-config={}", file.display()))
            .arg("--secure-port=0");
        Manager::spawn(container, self.folder.path().join("log"))
    }

    /// What managers wrote besides Events and the lease, in words.
    fn written(&self) -> BTreeSet<String> {
        let writes = self.plane.writes_of(&self.account.user());
        let writes = writes.expect("a record").into_iter();
        let writes = writes.filter(|it| it.resource != "events" && it.resource != "leases");
        let in_words = writes.map(|it| format!("{} {}", it.resource, it.name));
        in_words.collect()
    }

    /// Calls of a method to both vCenters.
    async fn calls(&self, method: &str) -> u64 {
        let mut total = 0;
        for vcenter in &self.vcenters {
            let calls = vcenter.calls().await.expect("calls");
            total += calls.get(method).copied().unwrap_or_default();
        }
        total
    }
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn a_cluster_of_the_go_cpi_is_taken_over_without_a_write_and_then_followed() {
    let swap = Swap::new().await;
    let mut expected = BTreeSet::new();
    for (number, config) in [swap.ini(), swap.yaml()].into_iter().enumerate() {
        let mut manager = swap.start(&config).await;
        // A new Node shows that everything was seen before; it is all that is written.
        let (name, ip) = (format!("new-{number}"), format!("10.0.1.{number}"));
        let vm = swap.vm(number, &name, &ip).await;
        let node = NodeBuilder::new(&name).create(&swap.client).await;
        node.expect("the node is made");
        let node = wait_for_node(&swap.client, &name, DEADLINE, is_initialized).await;
        let spec = node.spec.clone().unwrap_or_default();
        assert_eq!(spec.provider_id, Some(format!("vsphere://{}", vm.uuid)));
        let labels = node.labels();
        assert_eq!(labels["topology.kubernetes.io/zone"], "z1");
        assert_eq!(labels["topology.kubernetes.io/region"], "r1");
        assert_eq!(
            labels["node.kubernetes.io/instance-type"],
            "vsphere-vm.cpu-2.mem-4gb.os-ubuntu"
        );
        expected.extend([format!("nodes {name}"), format!("nodes/status {name}")]);
        manager.signal("TERM");
        assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
        let errors = pod::lines(&manager, &["ERROR"]);
        assert!(errors.is_empty(), "{errors:#?}");
        let (logins, logouts) = (swap.calls("Login").await, swap.calls("Logout").await);
        assert_eq!(logins, logouts, "every session is ended");
        assert!(logins > 0);
    }
    assert_eq!(swap.written(), expected);
}
