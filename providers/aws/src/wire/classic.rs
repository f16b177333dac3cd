//! What the classic load balancing API shows.

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::HealthState;
use cloudkeel_toolkit::has_id;
use cloudkeel_toolkit::xml::Element;

use super::{text, texts};
use crate::client::FromXml;

has_id!(ClassicBalancer.name: String);

/// A port of a balancer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassicListener {
    pub(crate) port: u16,
    /// In upper case, as the API shows it.
    pub(crate) protocol: String,
    pub(crate) instance_port: u16,
    pub(crate) instance_protocol: String,
    pub(crate) certificate: Option<String>,
}

impl ClassicListener {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let upper = |path: &str| -> Result<String, String> {
            element
                .value_at::<String>(path)
                .map(|text| text.to_uppercase())
        };
        Ok(Self {
            port: element.value_at("LoadBalancerPort")?,
            protocol: upper("Protocol")?,
            instance_port: element.value_at("InstancePort")?,
            instance_protocol: upper("InstanceProtocol").or_else(|_| upper("Protocol"))?,
            certificate: text(element, "SSLCertificateId"),
        })
    }
}

/// How targets are checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClassicCheck {
    /// Such as `TCP:30080` or `HTTP:32100/healthz`.
    pub(crate) target: String,
    pub(crate) interval: u64,
    pub(crate) timeout: u64,
    pub(crate) healthy: u32,
    pub(crate) unhealthy: u32,
}

/// A classic load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClassicBalancer {
    pub(crate) name: String,
    pub(crate) dns_name: String,
    pub(crate) is_internal: bool,
    pub(crate) listeners: Vec<ClassicListener>,
    /// The policies that each port has.
    pub(crate) listener_policies: BTreeMap<u16, BTreeSet<String>>,
    /// The policies that each port of the targets has.
    pub(crate) backend_policies: BTreeMap<u16, BTreeSet<String>>,
    /// All that were made.
    pub(crate) policies: BTreeSet<String>,
    pub(crate) subnets: BTreeSet<String>,
    pub(crate) groups: BTreeSet<String>,
    pub(crate) instances: BTreeSet<String>,
    pub(crate) check: Option<ClassicCheck>,
}

impl FromXml for ClassicBalancer {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let mut listeners = Vec::new();
        let mut listener_policies = BTreeMap::new();
        for description in element.all_at("ListenerDescriptions/member") {
            let listener = description
                .at("Listener")
                .ok_or("a listener without a port")?;
            let listener = ClassicListener::from_xml(listener)?;
            listener_policies.insert(listener.port, texts(description, "PolicyNames/member"));
            listeners.push(listener);
        }
        let backends = element.all_at("BackendServerDescriptions/member");
        let backends: Result<BTreeMap<_, _>, String> = backends
            .map(|backend| {
                let policies = texts(backend, "PolicyNames/member");
                Ok((backend.value_at("InstancePort")?, policies))
            })
            .collect();
        let check = element
            .at("HealthCheck")
            .filter(|c| c.at("Target").is_some());
        let check = check.map(|check| {
            Ok::<_, String>(ClassicCheck {
                target: check.value_at("Target")?,
                interval: check.value_at("Interval")?,
                timeout: check.value_at("Timeout")?,
                healthy: check.value_at("HealthyThreshold")?,
                unhealthy: check.value_at("UnhealthyThreshold")?,
            })
        });
        Ok(Self {
            name: element.value_at("LoadBalancerName")?,
            dns_name: text(element, "DNSName").unwrap_or_default(),
            is_internal: element.text_at("Scheme") == Some("internal"),
            listeners,
            listener_policies,
            backend_policies: backends?,
            policies: texts(element, "Policies/OtherPolicies/member"),
            subnets: texts(element, "Subnets/member"),
            groups: texts(element, "SecurityGroups/member"),
            instances: texts(element, "Instances/member/InstanceId"),
            check: check.transpose()?,
        })
    }
}

/// Whether an instance answers the check of its balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstanceHealth {
    pub(crate) id: String,
    pub(crate) state: HealthState,
}

impl FromXml for InstanceHealth {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let state = element.text_at("State").unwrap_or_default();
        // While it is being registered, the balancer itself is the reason.
        let is_failing = element.text_at("ReasonCode") != Some("ELB");
        Ok(Self {
            id: element.value_at("InstanceId")?,
            state: match state {
                "InService" => HealthState::Healthy,
                "OutOfService" if is_failing => HealthState::Unhealthy,
                _ => HealthState::Unknown,
            },
        })
    }
}

/// What can be set of a balancer beside its parts. `None` is not asked for, or not shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClassicAttributes {
    pub(crate) access_log: bool,
    pub(crate) access_log_bucket: Option<String>,
    pub(crate) access_log_prefix: Option<String>,
    pub(crate) access_log_interval: Option<u32>,
    pub(crate) draining: bool,
    pub(crate) draining_timeout: Option<u32>,
    pub(crate) cross_zone: bool,
    pub(crate) idle_timeout: u32,
}

impl FromXml for ClassicAttributes {
    fn from_xml(element: &Element) -> Result<Self, String> {
        let all = element.at("LoadBalancerAttributes");
        let all = all.ok_or("it has no <LoadBalancerAttributes>")?;
        let is_on = |path: &str| all.text_at(path) == Some("true");
        Ok(Self {
            access_log: is_on("AccessLog/Enabled"),
            access_log_bucket: text(all, "AccessLog/S3BucketName"),
            access_log_prefix: text(all, "AccessLog/S3BucketPrefix"),
            access_log_interval: all.value_at("AccessLog/EmitInterval").ok(),
            draining: is_on("ConnectionDraining/Enabled"),
            draining_timeout: all.value_at("ConnectionDraining/Timeout").ok(),
            cross_zone: is_on("CrossZoneLoadBalancing/Enabled"),
            idle_timeout: all.value_at("ConnectionSettings/IdleTimeout").unwrap_or(60),
        })
    }
}
