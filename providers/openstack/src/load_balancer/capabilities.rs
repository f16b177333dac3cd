//! What this Octavia can do. Its root lists the versions of its API, and each of them brought something.

use serde_json::Value;

/// The provider whose load balancers can do less.
const OVN: &str = "ovn";

/// What this Octavia, and the configured provider of it, can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Capabilities {
    pub(crate) is_ovn: bool,
    pub(crate) tags: bool,
    pub(crate) timeouts: bool,
    pub(crate) flavors: bool,
    pub(crate) allowed_cidrs: bool,
    pub(crate) availability_zones: bool,
    pub(crate) udp_by_http: bool,
}

impl Capabilities {
    /// From the list of versions, of which the last counts.
    pub(crate) fn of(versions: &Value, provider: &str) -> Self {
        let last = versions.pointer("/versions").and_then(Value::as_array);
        let last = last.and_then(|versions| versions.last()?.get("id")?.as_str());
        let minor = last.and_then(|id| id.strip_prefix("v2.")?.parse().ok());
        let minor: u32 = minor.unwrap_or_default();
        let is_ovn = provider == OVN;
        let since = |version| !is_ovn && minor >= version;
        Self {
            is_ovn,
            tags: minor >= 5,
            timeouts: since(1),
            flavors: since(6),
            allowed_cidrs: since(12),
            availability_zones: since(14),
            udp_by_http: since(16),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_version_counts_and_ovn_can_do_less() {
        let versions = |last: &str| json!({"versions": [{"id": "v2.0"}, {"id": last}]});
        let old = Capabilities::of(&versions("v2.5"), "amphora");
        assert!(old.tags && old.timeouts && !old.flavors && !old.allowed_cidrs);
        let new = Capabilities::of(&versions("v2.30"), "amphora");
        assert!(new.tags && new.udp_by_http && new.availability_zones);
        let ovn = Capabilities::of(&versions("v2.30"), "ovn");
        assert!(ovn.is_ovn && ovn.tags && !ovn.timeouts && !ovn.allowed_cidrs);
        assert_eq!(Capabilities::of(&Value::Null, "amphora"), Capabilities::default());
    }
}
