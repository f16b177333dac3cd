//! The Node that a kubelet registers, and what it reports later.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::{Health, KubeletConfig};
use crate::object::put;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";

/// What a healthy machine says besides being ready: type, reason, message.
const PRESSURES: [(&str, &str, &str); 3] = [
    (
        "MemoryPressure",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        "DiskPressure",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        "PIDPressure",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
];

/// The Node as it is registered.
pub(super) fn new(config: &KubeletConfig, address: IpAddr, now: Timestamp) -> Value {
    let name = config.name.as_str();
    let mut node = json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
        }},
        "status": {
            "addresses": addresses(name, address),
            "capacity": {"cpu": "4", "memory": "16393244Ki", "pods": "110"},
            "conditions": conditions(Health::Ready, (now, now)),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": "amd64",
                "containerRuntimeVersion": "simulated://1",
                "kernelVersion": "simulated",
                "kubeletVersion": "v1.35.0",
                "operatingSystem": "linux",
                "osImage": "cloudkeel simulated kubelet",
            },
        },
    });
    for (key, value) in &config.labels {
        put(&mut node, &["metadata", "labels", key], value.as_str());
    }
    if config.external_cloud {
        let taint = json!({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
        put(&mut node, &["spec", "taints"], json!([taint]));
        put(
            &mut node,
            &["metadata", "annotations", PROVIDED_IP],
            address.to_string(),
        );
    }
    if let Some(id) = &config.provider_id {
        put(&mut node, &["spec", "providerID"], id.as_str());
    }
    if let Some(cidr) = &config.pod_cidr {
        put(&mut node, &["spec", "podCIDR"], cidr.as_str());
        put(&mut node, &["spec", "podCIDRs"], json!([cidr]));
    }
    node
}

fn addresses(name: &str, address: IpAddr) -> Value {
    json!([
        {"type": "InternalIP", "address": address.to_string()},
        {"type": "Hostname", "address": name},
    ])
}

/// A heartbeat: conditions as of now, the last change of `Ready` as of then.
pub(super) fn heartbeat(health: Health, (now, changed): (Timestamp, Timestamp)) -> Value {
    json!({"status": {"conditions": conditions(health, (now, changed))}})
}

/// What a kubelet writes when its address is another: with a cloud, only the address it was started with.
pub(super) fn moved(config: &KubeletConfig, address: IpAddr) -> Value {
    if config.external_cloud {
        return json!({"metadata": {"annotations": {PROVIDED_IP: address.to_string()}}});
    }
    json!({"status": {"addresses": addresses(&config.name, address)}})
}

/// What a Node says of being ready, and since when; `None` if that is unknown.
pub(super) fn reported_health(node: &Node) -> Option<(Health, Timestamp)> {
    let mut conditions = node.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    let health = match ready.status.as_str() {
        "True" => Health::Ready,
        "False" => Health::Unwell,
        _ => return None,
    };
    Some((health, ready.last_transition_time.as_ref()?.0))
}

fn conditions(health: Health, (now, changed): (Timestamp, Timestamp)) -> Value {
    let time = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |(kind, reason, message): (&str, &str, &str), status: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": time(now), "lastTransitionTime": time(changed),
        })
    };
    let mut all: Vec<_> = PRESSURES
        .into_iter()
        .map(|kind| condition(kind, "False"))
        .collect();
    all.push(match health {
        Health::Ready => condition(
            ("Ready", "KubeletReady", "kubelet is posting ready status"),
            "True",
        ),
        Health::Unwell | Health::Silent | Health::Off => condition(
            ("Ready", "KubeletNotReady", "container runtime is down"),
            "False",
        ),
    });
    all.into()
}
