//! Cipher suites and TLS versions by their Go names.

use rustls::crypto::ring::ALL_CIPHER_SUITES;
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

use crate::log_messages::{INSECURE_CIPHER_SUITE, INSECURE_TLS_VERSION};
use crate::serving::ServingError;

/// Former Go names of today's suites.
const RENAMED_SUITES: [(&str, &str); 2] = [
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    ),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    ),
];

/// Suites that Go still knows, but that are insecure: no forward secrecy, broken ciphers, or a mode with timing side
/// channels.
const WEAK_SUITES: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// The suites to serve with. As in Go, the list restricts TLS 1.2 only: those of TLS 1.3 are always enabled.
/// Insecure ones are ignored with a warning, so that a command line written for Go keeps working.
pub(super) fn cipher_suites(names: &[String]) -> Result<Vec<SupportedCipherSuite>, ServingError> {
    if names.is_empty() {
        return Ok(ALL_CIPHER_SUITES.to_vec());
    }
    let mut wanted = Vec::new();
    for name in names {
        match look_up(name) {
            Some(suite) => wanted.push(suite.suite()),
            None if WEAK_SUITES.contains(&name.as_str()) => {
                tracing::warn!(suite = name, "{INSECURE_CIPHER_SUITE}");
            }
            None => {
                return Err(ServingError::UnknownCipherSuite {
                    name: name.clone(),
                    possible: possible_names(),
                });
            }
        }
    }
    if wanted.is_empty() {
        return Err(ServingError::NoCipherSuite {
            given: names.join(", "),
            possible: possible_names(),
        });
    }
    let is_wanted =
        |suite: &SupportedCipherSuite| suite.tls13().is_some() || wanted.contains(&suite.suite());
    Ok(ALL_CIPHER_SUITES
        .iter()
        .copied()
        .filter(is_wanted)
        .collect())
}

fn look_up(name: &str) -> Option<SupportedCipherSuite> {
    let renamed = RENAMED_SUITES.iter().find(|(old, _)| *old == name);
    let name = renamed.map_or(name, |(_, new)| new);
    ALL_CIPHER_SUITES
        .iter()
        .copied()
        .find(|suite| go_name(*suite) == name)
}

/// Go uses the registered names; the library's differ for TLS 1.3 only.
fn go_name(suite: SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.strip_prefix("TLS13_")
        .map_or_else(|| name.to_owned(), |rest| format!("TLS_{rest}"))
}

fn possible_names() -> String {
    let mut names: Vec<_> = ALL_CIPHER_SUITES.iter().copied().map(go_name).collect();
    names.sort_unstable();
    names.join(", ")
}

/// This version and all later ones.
pub(super) fn versions_from(
    name: &str,
) -> Result<Vec<&'static SupportedProtocolVersion>, ServingError> {
    match name {
        "" | "VersionTLS12" => Ok(vec![&TLS13, &TLS12]),
        "VersionTLS13" => Ok(vec![&TLS13]),
        "VersionTLS10" | "VersionTLS11" => {
            tracing::warn!(version = name, "{INSECURE_TLS_VERSION}");
            Ok(vec![&TLS13, &TLS12])
        }
        _ => Err(ServingError::UnknownTlsVersion {
            name: name.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Result<Vec<String>, String> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        cipher_suites(&names)
            .map(|suites| suites.into_iter().map(go_name).collect())
            .map_err(|error| error.to_string())
    }

    const TLS13_SUITES: [&str; 3] = [
        "TLS_AES_256_GCM_SHA384",
        "TLS_AES_128_GCM_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
    ];

    #[test]
    fn no_names_stand_for_all_suites() {
        assert_eq!(chosen(&[]).unwrap().len(), ALL_CIPHER_SUITES.len());
    }

    #[test]
    fn names_restrict_the_suites_of_tls_12_only() {
        for (case, names, tls12) in [
            (
                "one",
                vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
                vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            ),
            (
                "an old name",
                vec!["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"],
                vec!["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"],
            ),
            (
                "a weak one beside a safe one",
                vec![
                    "TLS_RSA_WITH_AES_128_CBC_SHA",
                    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                ],
                vec!["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"],
            ),
            ("only of TLS 1.3", vec!["TLS_AES_128_GCM_SHA256"], vec![]),
        ] {
            let expected: Vec<_> = TLS13_SUITES.into_iter().chain(tls12).collect();
            assert_eq!(chosen(&names).unwrap(), expected, "{case}");
        }
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_what_can() {
        for (names, expected) in [
            (vec!["TLS_FANCY"], "\"TLS_FANCY\" is unknown"),
            (
                vec!["TLS_RSA_WITH_RC4_128_SHA"],
                "TLS_RSA_WITH_RC4_128_SHA is secure",
            ),
        ] {
            let error = chosen(&names).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(
                error.contains("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_suite_is_either_secure_or_weak() {
        for name in WEAK_SUITES {
            assert!(look_up(name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_lowest_version_is_tls_12() {
        for (name, versions) in [
            ("", 2),
            ("VersionTLS10", 2),
            ("VersionTLS11", 2),
            ("VersionTLS12", 2),
            ("VersionTLS13", 1),
        ] {
            assert_eq!(versions_from(name).unwrap().len(), versions, "{name}");
        }
        let error = versions_from("VersionTLS14").unwrap_err().to_string();
        assert!(error.contains("VersionTLS14") && error.contains("VersionTLS13"));
    }
}
