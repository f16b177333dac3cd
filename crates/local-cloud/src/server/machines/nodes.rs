//! Machines from the Nodes of a cluster, for kind and k3s: there a Node is all there is of its
//! machine.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use cloudkeel_api::ProviderId;
use cloudkeel_provider_local::wire::{MachineAddress, NewMachine};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Config};
use tracing::{info, warn};

use super::sync::{Reported, Source, replace_all};
use crate::simulated_cloud::{LocalId, Refusal, SimulatedCloud};

const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";
const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// Why Nodes cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum NodesError {
    /// The file is of no use.
    #[error("--kubeconfig: {path:?}: {source}")]
    Kubeconfig {
        /// Which.
        path: PathBuf,
        /// Why.
        source: kube::config::KubeconfigError,
    },
    /// There is no way to a cluster.
    #[error("--machines-from-nodes: give --kubeconfig, or run inside the cluster: {0}")]
    NoCluster(kube::config::InferConfigError),
    /// The settings do not make a client.
    #[error("--machines-from-nodes: {0}")]
    Client(kube::Error),
}

/// Follows the Nodes of a cluster for as long as it is polled.
pub(crate) async fn follow(cloud: SimulatedCloud, client: Client) {
    let nodes: Api<Node> = Api::all(client);
    let events = watcher(nodes, watcher::Config::default()).default_backoff();
    futures::pin_mut!(events);
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => take(&cloud, event, &mut listed).await,
            Err(err) => warn!(%err, "failed to watch Nodes, retrying"),
        }
    }
}

/// A client of the cluster. Nothing is sent yet.
pub(crate) async fn connect(kubeconfig: Option<&Path>) -> Result<Client, NodesError> {
    let mut config = match kubeconfig {
        Some(path) => {
            let wrong = |source| NodesError::Kubeconfig {
                path: path.to_owned(),
                source,
            };
            let file = Kubeconfig::read_from(path).map_err(wrong)?;
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(file, &options).await;
            config.map_err(wrong)?
        }
        None => Config::infer().await.map_err(NodesError::NoCluster)?,
    };
    // A cloud on this machine reaches its cluster directly: the client would refuse a proxy, and print its password.
    config.proxy_url = None;
    Client::try_from(config).map_err(NodesError::Client)
}

async fn take(cloud: &SimulatedCloud, event: Event<Node>, listed: &mut Vec<Reported>) {
    let done = match event {
        Event::Init => {
            listed.clear();
            return;
        }
        Event::InitApply(node) => {
            listed.extend(reported(&node));
            return;
        }
        // Only a complete list says that a Node is gone.
        Event::InitDone => {
            info!(nodes = listed.len(), "machines synced with Nodes");
            replace_all(cloud, Source::Nodes, std::mem::take(listed))
        }
        Event::Apply(node) => match reported(&node) {
            Some(reported) => Source::Nodes.put(cloud, reported),
            None => Ok(()),
        },
        Event::Delete(node) => {
            let name = node.metadata.name.unwrap_or_default();
            Source::Nodes.remove(cloud, &name)
        }
    };
    let settled: Result<(), Refusal> = match done {
        Ok(()) => cloud.settle().await,
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = settled {
        warn!(err = %refusal, "failed to add a machine for a Node");
    }
}

/// The machine that a Node stands for, with the ID that it had when the Node was initialised.
fn reported(node: &Node) -> Option<Reported> {
    let id = node
        .spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_ref());
    let id: Option<ProviderId> = id.and_then(|id| id.parse().ok());
    let id = id.and_then(|id| LocalId::read(&id).ok());
    let ours = id.filter(|id| id.project == SimulatedCloud::PROJECT);
    Some(Reported {
        new: machine(node)?,
        id: ours.map(|id| id.machine),
    })
}

/// What a Node says of its machine.
fn machine(node: &Node) -> Option<NewMachine> {
    let name = node.metadata.name.clone().filter(|name| !name.is_empty())?;
    let label = |key: &str| {
        let labels = node.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(key)).cloned()
    };
    let status = node.status.as_ref();
    let hostname = addresses_of_kind(node, "Hostname").next();
    let uuid = status
        .and_then(|status| status.node_info.as_ref())
        .map(|info| info.system_uuid.clone());
    let addresses = addresses(node);
    Some(NewMachine {
        kind: label(INSTANCE_TYPE),
        zone: label(ZONE),
        uuid: uuid.filter(|uuid| !uuid.is_empty()),
        hostname: hostname
            .filter(|hostname| *hostname != name)
            .map(str::to_owned),
        // A kubelet that has just begun has none; that says nothing about the machine.
        addresses: (!addresses.is_empty()).then_some(addresses),
        name,
        ..NewMachine::default()
    })
}

fn addresses(node: &Node) -> Vec<MachineAddress> {
    let parsed =
        |kind| addresses_of_kind(node, kind).filter_map(|text| text.parse::<IpAddr>().ok());
    let mut addresses: Vec<_> = parsed("InternalIP").map(MachineAddress::private).collect();
    addresses.extend(parsed("ExternalIP").map(MachineAddress::public));
    if addresses.is_empty() {
        let annotations = node.metadata.annotations.as_ref();
        let provided = annotations.and_then(|annotations| annotations.get(PROVIDED_IP));
        let provided = provided.map(String::as_str).unwrap_or_default().split(',');
        let provided = provided.filter_map(|text| text.trim().parse().ok());
        addresses.extend(provided.map(MachineAddress::private));
    }
    addresses
}

fn addresses_of_kind<'a>(node: &'a Node, kind: &'a str) -> impl Iterator<Item = &'a str> {
    let addresses = node
        .status
        .iter()
        .flat_map(|status| status.addresses.iter());
    addresses
        .flatten()
        .filter(move |address| address.type_ == kind)
        .map(|address| address.address.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(value: serde_json::Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_node_becomes_its_machine() {
        let kind = node(json!({
            "metadata": {"name": "kind-worker", "labels": {ZONE: "attic", INSTANCE_TYPE: "box"}},
            "status": {
                "addresses": [
                    {"type": "InternalIP", "address": "172.18.0.3"},
                    {"type": "InternalIP", "address": "fc00::3"},
                    {"type": "Hostname", "address": "kind-worker"}
                ],
                "nodeInfo": {"systemUUID": "U-1", "architecture": "", "bootID": "",
                    "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
                    "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": ""}
            }
        }));
        let machine = machine(&kind).unwrap();
        assert_eq!(machine.name, "kind-worker");
        assert_eq!(machine.hostname, None);
        assert_eq!(machine.uuid.as_deref(), Some("U-1"));
        assert_eq!(machine.zone.as_deref(), Some("attic"));
        assert_eq!(machine.kind.as_deref(), Some("box"));
        let ips: Vec<_> = machine.addresses.unwrap().iter().map(|a| a.ip).collect();
        let expected: [IpAddr; 2] = ["172.18.0.3".parse().unwrap(), "fc00::3".parse().unwrap()];
        assert_eq!(ips, expected);
    }

    #[test]
    fn a_node_without_addresses_says_nothing_about_them() {
        let young = node(json!({"metadata": {"name": "young"}}));
        assert_eq!(machine(&young).unwrap().addresses, None);
        let provided = node(json!({
            "metadata": {"name": "young", "annotations": {PROVIDED_IP: "10.0.0.7,fd00::7"}}
        }));
        assert_eq!(machine(&provided).unwrap().addresses.unwrap().len(), 2);
    }

    #[test]
    fn a_node_remembers_the_id_of_its_machine() {
        for (id, expected) in [
            ("local://demo/7", Some(7)),
            ("local://elsewhere/7", None),
            ("kind://docker/kind/kind-worker", None),
            ("nonsense", None),
        ] {
            let node = node(json!({"metadata": {"name": "n"}, "spec": {"providerID": id}}));
            assert_eq!(reported(&node).unwrap().id, expected, "{id}");
        }
    }

    #[tokio::test]
    async fn only_a_complete_list_says_that_a_node_is_gone() {
        let cloud = SimulatedCloud::new(crate::simulated_cloud::Settings::default());
        let named = |name: &str| node(json!({"metadata": {"name": name}}));
        let mut listed = Vec::new();
        let names = || {
            cloud
                .machines()
                .into_iter()
                .map(|m| m.name)
                .collect::<Vec<_>>()
        };
        for (case, event, expected) in [
            ("begin", Event::Init, vec![]),
            ("one", Event::InitApply(named("a")), vec![]),
            ("two", Event::InitApply(named("b")), vec![]),
            ("complete", Event::InitDone, vec!["a", "b"]),
            ("more", Event::Apply(named("c")), vec!["a", "b", "c"]),
            ("again", Event::Init, vec!["a", "b", "c"]),
            ("listed", Event::InitApply(named("c")), vec!["a", "b", "c"]),
            ("complete again", Event::InitDone, vec!["c"]),
            ("deleted", Event::Delete(named("c")), vec![]),
        ] {
            take(&cloud, event, &mut listed).await;
            assert_eq!(names(), expected, "{case}");
        }
    }
}
