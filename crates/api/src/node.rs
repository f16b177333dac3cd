//! What a provider sees of a Node.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{AddressKind, IpFamily, NodeAddress, ProviderId};

/// The facts of a Node that providers see in place of the Kubernetes object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFacts {
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`; a Node recreated under the same name has another one.
    pub uid: String,
    /// `spec.providerID`, once it has one.
    pub provider_id: Option<ProviderId>,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// `status.addresses`, in their order.
    pub addresses: Vec<NodeAddress>,
    /// `status.nodeInfo.systemUUID`, as the kubelet reports it.
    pub system_uuid: Option<String>,
    /// `spec.podCIDRs`
    pub pod_cidrs: Vec<IpNet>,
    /// `metadata.creationTimestamp`
    pub created: Option<Timestamp>,
}

impl NodeFacts {
    /// The first address of a kind and family that is an IP.
    pub fn ip(&self, kind: AddressKind, family: IpFamily) -> Option<IpAddr> {
        self.addresses
            .iter()
            .filter(|address| address.kind == kind)
            .filter_map(NodeAddress::ip)
            .find(|ip| IpFamily::of(*ip) == family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ip_of_a_kind_and_family_is_chosen() {
        let node = NodeFacts {
            addresses: vec![
                NodeAddress::hostname("n"),
                NodeAddress::internal("fd00::1".parse().unwrap()),
                NodeAddress::internal("10.0.0.1".parse().unwrap()),
                NodeAddress::internal("10.0.0.2".parse().unwrap()),
            ],
            ..NodeFacts::default()
        };
        let internal = |family| node.ip(AddressKind::InternalIp, family);
        assert_eq!(internal(IpFamily::V4), "10.0.0.1".parse().ok());
        assert_eq!(internal(IpFamily::V6), "fd00::1".parse().ok());
        assert_eq!(node.ip(AddressKind::ExternalIp, IpFamily::V4), None);
    }
}
