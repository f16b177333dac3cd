//! Load balancers and their parts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use cloudkeel_api::Protocol;
use cloudkeel_toolkit::{HasListenerKey, ListenerKey};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// What names another resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct IdRef {
    pub(crate) id: String,
}

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LoadBalancer {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) provisioning_status: String,
    pub(crate) vip_address: Option<IpAddr>,
    pub(crate) vip_port_id: Option<String>,
    pub(crate) vip_subnet_id: Option<String>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) created_at: Option<String>,
}

/// A listener.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Listener {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) loadbalancers: Vec<IdRef>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(flatten)]
    pub(crate) settings: ListenerSettings,
}

/// What a listener is like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListenerSettings {
    pub(crate) protocol: String,
    pub(crate) protocol_port: u16,
    pub(crate) connection_limit: Option<i32>,
    pub(crate) timeout_client_data: Option<u32>,
    pub(crate) timeout_member_connect: Option<u32>,
    pub(crate) timeout_member_data: Option<u32>,
    pub(crate) timeout_tcp_inspect: Option<u32>,
    pub(crate) allowed_cidrs: Option<BTreeSet<IpNet>>,
    pub(crate) insert_headers: Option<BTreeMap<String, String>>,
    pub(crate) default_tls_container_ref: Option<String>,
}

impl HasListenerKey for ListenerSettings {
    fn listener_key(&self) -> ListenerKey {
        ListenerKey {
            protocol: match self.protocol.as_str() {
                "UDP" => Protocol::Udp,
                "SCTP" => Protocol::Sctp,
                // HTTP, HTTPS and TERMINATED_HTTPS are on TCP.
                _ => Protocol::Tcp,
            },
            port: self.protocol_port,
        }
    }
}

impl HasListenerKey for Listener {
    fn listener_key(&self) -> ListenerKey {
        self.settings.listener_key()
    }
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Pool {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) loadbalancers: Vec<IdRef>,
    #[serde(default)]
    pub(crate) listeners: Vec<IdRef>,
    pub(crate) healthmonitor_id: Option<String>,
    #[serde(flatten)]
    pub(crate) settings: PoolSettings,
}

/// What a pool is like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PoolSettings {
    pub(crate) protocol: String,
    pub(crate) lb_algorithm: String,
    pub(crate) session_persistence: Option<Persistence>,
}

/// How clients stick to a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Persistence {
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// A target.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Member {
    pub(crate) id: String,
    /// What its health monitor finds.
    pub(crate) operating_status: Option<String>,
    #[serde(flatten)]
    pub(crate) settings: MemberSettings,
}

/// What a target is like.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct MemberSettings {
    pub(crate) address: IpAddr,
    pub(crate) protocol_port: u16,
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) subnet_id: Option<String>,
    pub(crate) monitor_port: Option<u16>,
    /// Zero lets no new connections in. Without it, the default, which is one.
    pub(crate) weight: Option<u32>,
}

impl MemberSettings {
    /// What no other target of its pool has.
    pub(crate) const fn place(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.protocol_port)
    }

    /// Whether it gets no new connections.
    pub(crate) fn drains(&self) -> bool {
        self.weight == Some(0)
    }
}

/// A health monitor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Monitor {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) settings: MonitorSettings,
}

/// What a health monitor is like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MonitorSettings {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) delay: u32,
    pub(crate) timeout: u32,
    pub(crate) max_retries: u32,
    pub(crate) max_retries_down: u32,
    pub(crate) url_path: Option<String>,
    pub(crate) http_method: Option<String>,
    pub(crate) expected_codes: Option<String>,
}

/// A load balancer that is to be created with everything that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NewBalancer {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) provider: String,
    pub(crate) tags: Vec<String>,
    pub(crate) vip_subnet_id: Option<String>,
    pub(crate) vip_network_id: Option<String>,
    pub(crate) vip_port_id: Option<String>,
    pub(crate) vip_address: Option<IpAddr>,
    pub(crate) flavor_id: Option<String>,
    pub(crate) availability_zone: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) listeners: Vec<NewListener>,
}

/// A listener that is to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NewListener {
    pub(crate) name: String,
    pub(crate) loadbalancer_id: Option<String>,
    pub(crate) tags: Vec<String>,
    #[serde(flatten)]
    pub(crate) settings: ListenerSettings,
    pub(crate) default_pool: Option<NewPool>,
}

/// A pool that is to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NewPool {
    pub(crate) name: String,
    pub(crate) listener_id: Option<String>,
    #[serde(flatten)]
    pub(crate) settings: PoolSettings,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) members: Vec<MemberSettings>,
    pub(crate) healthmonitor: Option<NewMonitor>,
}

/// A health monitor that is to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct NewMonitor {
    pub(crate) name: String,
    pub(crate) pool_id: Option<String>,
    #[serde(flatten)]
    pub(crate) settings: MonitorSettings,
}

super::served! {
    LoadBalancer: "loadbalancer", "loadbalancers", Balancers, "/lbaas/loadbalancers";
    Listener: "listener", "listeners", Balancers, "/lbaas/listeners";
    Pool: "pool", "pools", Balancers, "/lbaas/pools";
    Monitor: "healthmonitor", "healthmonitors", Balancers, "/lbaas/healthmonitors";
}
