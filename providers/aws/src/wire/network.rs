//! What the API of network load balancers shows.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::HealthState;
use cloudkeel_toolkit::has_id;
use cloudkeel_toolkit::xml::Element;

use super::{text, texts};
use crate::client::FromXml;

has_id!(
    NetworkBalancer.arn: String,
    NetworkListener.arn: String,
    TargetGroup.arn: String,
);

/// A load balancer of version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkBalancer {
    pub(crate) arn: String,
    pub(crate) name: String,
    pub(crate) dns_name: String,
    pub(crate) is_internal: bool,
    /// `network`; others are never touched.
    pub(crate) balancer_type: String,
    /// `provisioning`, `active`, `failed`.
    pub(crate) state: String,
    pub(crate) subnets: BTreeSet<String>,
    pub(crate) groups: BTreeSet<String>,
}

impl FromXml for NetworkBalancer {
    fn from_xml(element: &Element) -> Result<Self, String> {
        Ok(Self {
            arn: element.value_at("LoadBalancerArn")?,
            name: element.value_at("LoadBalancerName")?,
            dns_name: text(element, "DNSName").unwrap_or_default(),
            is_internal: element.text_at("Scheme") == Some("internal"),
            balancer_type: text(element, "Type").unwrap_or_default(),
            state: text(element, "State/Code").unwrap_or_default(),
            subnets: texts(element, "AvailabilityZones/member/SubnetId"),
            groups: texts(element, "SecurityGroups/member"),
        })
    }
}

/// A port of a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetworkListener {
    pub(crate) arn: String,
    pub(crate) port: u16,
    pub(crate) protocol: String,
    pub(crate) ssl_policy: Option<String>,
    pub(crate) certificate: Option<String>,
    /// The target group that connections go to.
    pub(crate) group: Option<String>,
}

impl FromXml for NetworkListener {
    fn from_xml(element: &Element) -> Result<Self, String> {
        Ok(Self {
            arn: element.value_at("ListenerArn")?,
            port: element.value_at("Port")?,
            protocol: element.value_at("Protocol")?,
            ssl_policy: text(element, "SslPolicy"),
            certificate: text(element, "Certificates/member/CertificateArn"),
            group: text(element, "DefaultActions/member/TargetGroupArn"),
        })
    }
}

/// How the targets of a group are checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NetworkCheck {
    pub(crate) protocol: String,
    /// A number or `traffic-port`.
    pub(crate) port: String,
    pub(crate) path: Option<String>,
    pub(crate) interval: u32,
    pub(crate) healthy: u32,
    pub(crate) unhealthy: u32,
}

/// A target group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetGroup {
    pub(crate) arn: String,
    pub(crate) name: String,
    /// `instance`, `ip` or another, for life.
    pub(crate) target_type: String,
    pub(crate) protocol: String,
    pub(crate) port: u16,
    pub(crate) check: NetworkCheck,
    /// The balancers whose listeners lead to it.
    pub(crate) balancers: BTreeSet<String>,
}

impl TargetGroup {
    /// The port that is asked whether a target is healthy.
    pub(crate) fn checked_port(&self) -> u16 {
        self.check.port.parse().unwrap_or(self.port)
    }
}

impl FromXml for TargetGroup {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let number = |path: &str| element.value_at(path);
        Ok(Self {
            arn: element.value_at("TargetGroupArn")?,
            name: element.value_at("TargetGroupName")?,
            target_type: text(element, "TargetType").unwrap_or_default(),
            protocol: text(element, "Protocol").unwrap_or_default(),
            port: element.value_at("Port").unwrap_or_default(),
            check: NetworkCheck {
                protocol: text(element, "HealthCheckProtocol").unwrap_or_default(),
                port: text(element, "HealthCheckPort").unwrap_or_default(),
                path: text(element, "HealthCheckPath"),
                interval: number("HealthCheckIntervalSeconds").unwrap_or_default(),
                healthy: number("HealthyThresholdCount").unwrap_or_default(),
                unhealthy: number("UnhealthyThresholdCount").unwrap_or_default(),
            },
            balancers: texts(element, "LoadBalancerArns/member"),
        })
    }
}

/// The zone of targets that are outside the VPC: they get traffic from all zones.
pub(crate) const ALL_ZONES: &str = "all";

/// A target of a group: an instance, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupTarget {
    pub(crate) id: String,
    /// Whether it was registered for all zones.
    pub(crate) is_for_all_zones: bool,
    /// Whether it is on its way out.
    pub(crate) is_draining: bool,
    pub(crate) health: HealthState,
}

impl FromXml for GroupTarget {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let state = element.text_at("TargetHealth/State").unwrap_or_default();
        Ok(Self {
            id: element.value_at("Target/Id")?,
            is_for_all_zones: element.text_at("Target/AvailabilityZone") == Some(ALL_ZONES),
            is_draining: state == "draining",
            health: match state {
                "healthy" => HealthState::Healthy,
                "unhealthy" | "unhealthy.draining" => HealthState::Unhealthy,
                _ => HealthState::Unknown,
            },
        })
    }
}

/// Attributes by key.
pub(crate) fn attributes(element: &Element) -> BTreeMap<String, String> {
    let pair = |member: &Element| {
        let value = text(member, "Value").unwrap_or_default();
        Some((text(member, "Key")?, value))
    };
    element
        .all_at("Attributes/member")
        .filter_map(pair)
        .collect()
}
