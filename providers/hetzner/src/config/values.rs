//! Types of settings.

use cloudkeel_api::{IpFamily, KeyValue};

/// Which public addresses Nodes get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressFamily {
    /// IPv4 only.
    #[default]
    Ipv4,
    /// IPv6 only.
    Ipv6,
    /// Both.
    DualStack,
}

impl AddressFamily {
    /// Whether addresses of this family are among them.
    pub const fn has(self, family: IpFamily) -> bool {
        match family {
            IpFamily::V4 => matches!(self, Self::Ipv4 | Self::DualStack),
            IpFamily::V6 => matches!(self, Self::Ipv6 | Self::DualStack),
        }
    }
}

impl KeyValue for AddressFamily {
    const TYPE: &'static str = "ipv4, ipv6 or dualstack";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "ipv4" => Ok(Self::Ipv4),
            "ipv6" => Ok(Self::Ipv6),
            "dualstack" => Ok(Self::DualStack),
            _ => Err("`ipv4`, `ipv6` or `dualstack`".to_owned()),
        }
    }
}

/// How connections are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// One after the other.
    RoundRobin,
    /// To the one with the fewest.
    LeastConnections,
}

impl Algorithm {
    /// As the API spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::LeastConnections => "least_connections",
        }
    }
}

impl KeyValue for Algorithm {
    const TYPE: &'static str = "round_robin or least_connections";

    fn parse(text: &str) -> Result<Self, String> {
        match text.trim().to_lowercase().as_str() {
            "round_robin" => Ok(Self::RoundRobin),
            "least_connections" => Ok(Self::LeastConnections),
            _ => Err("`round_robin` or `least_connections`".to_owned()),
        }
    }
}

/// How the Go CCM keeps servers. Read so that a wrong one is still told, and not used: one sweep
/// serves everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheMode;

impl KeyValue for CacheMode {
    const TYPE: &'static str = "all, one or off";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "all" | "one" | "off" => Ok(Self),
            _ => Err("`all`, `one` or `off`".to_owned()),
        }
    }
}
