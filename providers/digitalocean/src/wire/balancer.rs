//! Load balancers, as the API shows and takes them.

use std::collections::BTreeSet;

use cloudkeel_toolkit::{HasListenerKey, ListenerKey, json};
use serde::{Deserialize, Serialize};

use super::Region;

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LoadBalancer {
    pub(crate) id: String,
    /// Empty until it has one.
    pub(crate) ip: Option<String>,
    pub(crate) ipv6: Option<String>,
    /// `new`, `active` or `errored`.
    #[serde(default)]
    pub(crate) status: String,
    pub(crate) size: Option<String>,
    pub(crate) size_unit: Option<u32>,
    pub(crate) region: Option<Region>,
    /// The tag of its droplets, if they are chosen so.
    #[serde(default)]
    pub(crate) tag: String,
    #[serde(flatten)]
    pub(crate) settings: BalancerSettings,
}

impl LoadBalancer {
    /// How many nodes it has.
    pub(crate) fn units(&self) -> u32 {
        units(self.size_unit, self.size.as_deref())
    }

    /// What is sent to change these settings, and nothing else.
    pub(crate) fn request(&self, settings: BalancerSettings) -> BalancerRequest {
        let size_unit = self.size_unit.filter(|units| *units > 0);
        let slug = self.size.clone().filter(|size| !size.is_empty());
        BalancerRequest {
            settings,
            region: self.region.as_ref().map(|region| region.slug.clone()),
            size: slug.filter(|_| size_unit.is_none()),
            size_unit,
            ..BalancerRequest::default()
        }
    }

    /// The certificate of the first port that has one.
    pub(crate) fn certificate(&self) -> Option<&String> {
        let rules = self.settings.forwarding_rules.iter();
        let mut ids = rules.map(|rule| &rule.certificate_id);
        ids.find(|id| !id.is_empty())
    }
}

/// How many nodes a load balancer of this size has, which is a number or a name.
pub(crate) fn units(number: Option<u32>, name: Option<&str>) -> u32 {
    match (number.unwrap_or_default(), name) {
        (0, Some("lb-medium")) => 3,
        (0, Some("lb-large")) => 6,
        (number, _) => number.max(1),
    }
}

/// What can be set of a load balancer. Everything that a change leaves out is reset, so all of it is always sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct BalancerSettings {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) network: String,
    pub(crate) network_stack: String,
    pub(crate) algorithm: Option<String>,
    pub(crate) forwarding_rules: Vec<ForwardingRule>,
    pub(crate) health_check: HealthCheck,
    pub(crate) sticky_sessions: StickySessions,
    pub(crate) droplet_ids: BTreeSet<u64>,
    pub(crate) tags: Vec<String>,
    pub(crate) redirect_http_to_https: bool,
    pub(crate) enable_proxy_protocol: bool,
    pub(crate) enable_backend_keepalive: bool,
    pub(crate) disable_lets_encrypt_dns_records: bool,
    pub(crate) http_idle_timeout_seconds: Option<u32>,
    pub(crate) firewall: ClientRules,
    pub(crate) vpc_uuid: Option<String>,
    pub(crate) subnet_uuid: Option<String>,
    pub(crate) project_id: Option<String>,
    pub(crate) tls_cipher_policy: Option<String>,
}

/// How a port is passed on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ForwardingRule {
    pub(crate) entry_port: u16,
    pub(crate) entry_protocol: String,
    pub(crate) target_port: u16,
    pub(crate) target_protocol: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) certificate_id: String,
    pub(crate) tls_passthrough: bool,
}

/// HTTP/3 is UDP too.
impl HasListenerKey for ForwardingRule {
    fn listener_key(&self) -> ListenerKey {
        match self.entry_protocol.as_str() {
            "udp" | "http3" => ListenerKey::udp(self.entry_port),
            _ => ListenerKey::tcp(self.entry_port),
        }
    }
}

/// How Nodes are checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct HealthCheck {
    pub(crate) protocol: String,
    pub(crate) port: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    pub(crate) check_interval_seconds: u32,
    pub(crate) response_timeout_seconds: u32,
    pub(crate) unhealthy_threshold: u32,
    pub(crate) healthy_threshold: u32,
    pub(crate) proxy_protocol: Option<bool>,
}

/// Whether clients stay with a Node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct StickySessions {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) cookie_name: Option<String>,
    pub(crate) cookie_ttl_seconds: Option<u32>,
}

/// Who may connect.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ClientRules {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) allow: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) deny: BTreeSet<String>,
}

/// A load balancer as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct BalancerRequest {
    #[serde(flatten)]
    pub(crate) settings: BalancerSettings,
    pub(crate) region: Option<String>,
    pub(crate) size: Option<String>,
    pub(crate) size_unit: Option<u32>,
    /// Only of a new one.
    pub(crate) ip: Option<String>,
    pub(crate) validate_only: Option<bool>,
}

/// What the API shows for a health check by HTTP without a path.
const ROOT: &str = "/";
/// How long idle connections are kept if nothing is asked for.
const IDLE_SECONDS: u32 = 60;

/// What is compared of a load balancer, and its words. The rest cannot change, is not ours to change, or has a step of its
/// own.
const FIELDS: [(&str, &str); 10] = [
    ("name", "name"),
    ("forwarding_rules", PORTS),
    ("health_check", "health check"),
    ("sticky_sessions", "sticky sessions"),
    ("redirect_http_to_https", "redirect to HTTPS"),
    ("enable_proxy_protocol", "PROXY protocol"),
    ("enable_backend_keepalive", "keepalive"),
    ("disable_lets_encrypt_dns_records", "DNS records"),
    ("http_idle_timeout_seconds", "idle timeout"),
    ("firewall", "client rules"),
];
pub(crate) const PORTS: &str = "ports";

impl BalancerSettings {
    /// What differs, in words.
    pub(crate) fn differing(&self, other: &Self) -> Vec<&'static str> {
        json::differing(&self.comparable(), &other.comparable(), &FIELDS)
    }

    /// In the one spelling in which two are compared: what the API fills in is filled in.
    fn comparable(&self) -> Self {
        let mut same = self.clone();
        same.forwarding_rules.sort();
        let check = &mut same.health_check;
        check.proxy_protocol = Some(check.proxy_protocol.unwrap_or_default());
        match check.protocol.as_str() {
            "tcp" => check.path.clear(),
            _ if check.path.is_empty() => ROOT.clone_into(&mut check.path),
            _ => {}
        }
        if same.sticky_sessions.kind != "cookies" {
            same.sticky_sessions = StickySessions::default();
        }
        let idle = &mut same.http_idle_timeout_seconds;
        *idle = idle.filter(|seconds| *seconds > 0).or(Some(IDLE_SECONDS));
        same
    }
}
