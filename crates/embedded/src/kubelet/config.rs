//! What a kubelet is started with.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// What a kubelet is started with.
#[derive(Debug, Clone)]
#[must_use = "a configuration does nothing by itself"]
pub struct KubeletConfig {
    pub(super) name: String,
    pub(super) address: IpAddr,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) provider_id: Option<String>,
    pub(super) pod_cidr: Option<String>,
    pub(super) external_cloud: bool,
    pub(super) serves_ports: bool,
    pub(super) beats_every: Duration,
}

impl KubeletConfig {
    /// A kubelet with `--cloud-provider=external` and `--node-ip`, on a machine of this address. Each kubelet of a
    /// demo has a 127.x.y.z of its own.
    pub fn new(name: impl Into<String>, address: IpAddr) -> Self {
        Self {
            name: name.into(),
            address,
            labels: BTreeMap::new(),
            provider_id: None,
            pod_cidr: None,
            external_cloud: true,
            serves_ports: false,
            beats_every: Duration::from_secs(10),
        }
    }

    /// A label besides those of every kubelet.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// The `--provider-id`.
    pub fn provider_id(mut self, id: impl Into<String>) -> Self {
        self.provider_id = Some(id.into());
        self
    }

    /// A range for the Pods of the Node.
    pub fn pod_cidr(mut self, cidr: impl Into<String>) -> Self {
        self.pod_cidr = Some(cidr.into());
        self
    }

    /// A kubelet without a cloud: its Node is not tainted, and it writes its addresses itself.
    pub fn without_cloud(mut self) -> Self {
        self.external_cloud = false;
        self
    }

    /// Answers on the node ports of every Service, at the address of the machine, which must be of the loopback
    /// interface.
    pub fn serve_ports(mut self) -> Self {
        self.serves_ports = true;
        self
    }

    /// How often it renews its lease and reports; every 10 seconds if nothing is said.
    pub fn beat_every(mut self, interval: Duration) -> Self {
        self.beats_every = interval;
        self
    }
}
