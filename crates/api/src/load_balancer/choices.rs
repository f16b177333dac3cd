//! The words that neutral annotations of Services may say.

use serde::Serialize;

use super::{Algorithm, IpMode, ProxyProtocol};
use crate::KeyValue;

/// What happens to a balancer that another client has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DriftPolicy {
    /// It is reported and repaired.
    #[default]
    Repair,
    /// It is reported.
    Report,
    /// It is not checked.
    Off,
}

/// The protocol of a health check, as a Service asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckProtocol {
    /// A connection.
    Tcp,
    /// A request.
    Http,
    /// A request over TLS.
    Https,
}

/// The PROXY protocol that a Service asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyProtocolChoice {
    /// This version.
    Version(ProxyProtocol),
    /// None.
    Off,
}

impl ProxyProtocolChoice {
    /// The version, if it is not switched off.
    pub const fn version(self) -> Option<ProxyProtocol> {
        match self {
            Self::Version(version) => Some(version),
            Self::Off => None,
        }
    }
}

/// Reads a type from one of a few words, exactly as they are written.
macro_rules! choices {
    ($type:ty: $type_name:literal, $expected:literal, { $($word:literal => $value:expr),+ $(,)? }) => {
        impl KeyValue for $type {
            const TYPE: &'static str = $type_name;
            const CHOICES: &'static [&'static str] = &[$($word),+];

            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok($value),)+
                    _ => Err($expected.to_owned()),
                }
            }
        }
    };
}

choices!(DriftPolicy: "repair, report or off", "`repair`, `report` or `off`", {
    "repair" => Self::Repair,
    "report" => Self::Report,
    "off" => Self::Off,
});
choices!(CheckProtocol: "tcp, http or https", "`tcp`, `http` or `https`", {
    "tcp" => Self::Tcp,
    "http" => Self::Http,
    "https" => Self::Https,
});
choices!(ProxyProtocolChoice: "v1, v2 or off", "`v1`, `v2` or `off`", {
    "v1" => Self::Version(ProxyProtocol::V1),
    "v2" => Self::Version(ProxyProtocol::V2),
    "off" => Self::Off,
});
choices!(IpMode: "vip or proxy", "`vip` or `proxy`", {
    "vip" => Self::Vip,
    "proxy" => Self::Proxy,
});
choices!(
    Algorithm: "round-robin, least-connections or source-ip",
    "`round-robin`, `least-connections` or `source-ip`",
    {
        "round-robin" => Self::RoundRobin,
        "least-connections" => Self::LeastConnections,
        "source-ip" => Self::SourceIp,
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: KeyValue>() {
        for word in T::CHOICES {
            assert!(T::parse(word).is_ok(), "{word}");
            assert!(T::TYPE.contains(word), "{word} is missing in {}", T::TYPE);
            let wrong = T::parse(&word.to_uppercase()).err().unwrap_or_default();
            assert!(wrong.contains(&format!("`{word}`")), "{word}: {wrong}");
        }
    }

    #[test]
    fn every_word_is_read_named_and_offered_when_another_is_written() {
        check::<DriftPolicy>();
        check::<CheckProtocol>();
        check::<ProxyProtocolChoice>();
        check::<Algorithm>();
        check::<IpMode>();
    }
}
