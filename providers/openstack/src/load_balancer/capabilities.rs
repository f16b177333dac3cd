//! What this Octavia can do. Its root lists the versions of its API, and each of them brought something.

use cloudkeel_api::CloudError;
use serde_json::Value;

/// The first version with tags, by which load balancers are recognised. Octavia has it since 2019.
const OLDEST: u32 = 5;

/// The provider whose load balancers can do less.
const OVN: &str = "ovn";

/// What this Octavia, and the configured provider of it, can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Capabilities {
    pub(crate) is_ovn: bool,
    pub(crate) timeouts: bool,
    pub(crate) flavors: bool,
    pub(crate) allowed_cidrs: bool,
    pub(crate) availability_zones: bool,
    pub(crate) udp_by_http: bool,
}

impl Capabilities {
    /// From the list of versions, of which the last counts.
    pub(crate) fn of(versions: &Value, provider: &str) -> Result<Self, CloudError> {
        let last = versions.pointer("/versions").and_then(Value::as_array);
        let last = last.and_then(|versions| versions.last()?.get("id")?.as_str());
        let minor = last.and_then(|id| id.strip_prefix("v2.")?.parse().ok());
        let minor: u32 = minor.unwrap_or_default();
        if minor < OLDEST {
            let shown = last.unwrap_or("none");
            let message = format!(
                "Octavia's newest version is {shown}: expected v2.{OLDEST}, which has tags, or a later one"
            );
            return Err(CloudError::unsupported("read versions of Octavia", message));
        }
        let is_ovn = provider == OVN;
        let since = |version| !is_ovn && minor >= version;
        Ok(Self {
            is_ovn,
            timeouts: since(1),
            flavors: since(6),
            allowed_cidrs: since(12),
            availability_zones: since(14),
            udp_by_http: since(16),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_version_counts_and_ovn_can_do_less() {
        let versions = |last: &str| json!({"versions": [{"id": "v2.0"}, {"id": last}]});
        let old = Capabilities::of(&versions("v2.5"), "amphora").unwrap();
        assert!(old.timeouts && !old.flavors && !old.allowed_cidrs);
        let new = Capabilities::of(&versions("v2.30"), "amphora").unwrap();
        assert!(new.udp_by_http && new.availability_zones);
        let ovn = Capabilities::of(&versions("v2.30"), "ovn").unwrap();
        assert!(ovn.is_ovn && !ovn.timeouts && !ovn.allowed_cidrs);
        for too_old in [versions("v2.4"), Value::Null] {
            assert!(Capabilities::of(&too_old, "amphora").is_err(), "{too_old}");
        }
    }
}
