//! Flags of delegated authentication and authorization.

use std::time::Duration;

use cloudkeel_api::FlagKey;

use super::table::{Effect, FlagRow, Group, rows};

/// `--authentication-kubeconfig`
pub const AUTHENTICATION_KUBECONFIG: FlagKey<String> = FlagKey::new(
    "authentication-kubeconfig",
    "Kubeconfig for TokenReviews; without it, the ServiceAccount of the Pod.",
);
/// `--authentication-skip-lookup`
pub const AUTHENTICATION_SKIP_LOOKUP: FlagKey<bool> = FlagKey::new(
    "authentication-skip-lookup",
    "Do not read the client CAs from the cluster.",
)
.with_default("false");
/// `--authentication-tolerate-lookup-failure`
pub const AUTHENTICATION_TOLERATE_LOOKUP_FAILURE: FlagKey<bool> = FlagKey::new(
    "authentication-tolerate-lookup-failure",
    "Start although the client CAs cannot be read from the cluster; client certificates are then rejected.",
)
.with_default("false");
/// `--authentication-token-webhook-cache-ttl`
pub const TOKEN_CACHE_TTL: FlagKey<Duration> = FlagKey::new(
    "authentication-token-webhook-cache-ttl",
    "How long the result of a TokenReview is cached.",
)
.with_default("10s");
/// `--client-ca-file`
pub const CLIENT_CA_FILE: FlagKey<String> = FlagKey::new(
    "client-ca-file",
    "CA of client certificates; without it, that of the cluster.",
);
/// `--requestheader-client-ca-file`
pub const REQUESTHEADER_CA_FILE: FlagKey<String> = FlagKey::new(
    "requestheader-client-ca-file",
    "CA of front proxies; without it, that of the cluster.",
);
/// `--requestheader-allowed-names`
pub const REQUESTHEADER_ALLOWED_NAMES: FlagKey<Vec<String>> = FlagKey::new(
    "requestheader-allowed-names",
    "Common names of front proxies; empty allows any that the CA signed.",
);
/// `--requestheader-uid-headers`
pub const REQUESTHEADER_UID_HEADERS: FlagKey<Vec<String>> =
    FlagKey::new("requestheader-uid-headers", "Headers with the user's UID.");
/// `--requestheader-username-headers`
pub const REQUESTHEADER_USERNAME_HEADERS: FlagKey<Vec<String>> = FlagKey::new(
    "requestheader-username-headers",
    "Headers with the user's name.",
)
.with_default("x-remote-user");
/// `--requestheader-group-headers`
pub const REQUESTHEADER_GROUP_HEADERS: FlagKey<Vec<String>> = FlagKey::new(
    "requestheader-group-headers",
    "Headers with the user's groups.",
)
.with_default("x-remote-group");
/// `--requestheader-extra-headers-prefix`
pub const REQUESTHEADER_EXTRA_PREFIX: FlagKey<Vec<String>> = FlagKey::new(
    "requestheader-extra-headers-prefix",
    "Prefixes of headers with extra fields of the user.",
)
.with_default("x-remote-extra-");
/// `--authorization-kubeconfig`
pub const AUTHORIZATION_KUBECONFIG: FlagKey<String> = FlagKey::new(
    "authorization-kubeconfig",
    "Kubeconfig for SubjectAccessReviews; without it, the ServiceAccount of the Pod.",
);
/// `--authorization-always-allow-paths`
pub const ALWAYS_ALLOW_PATHS: FlagKey<Vec<String>> = FlagKey::new(
    "authorization-always-allow-paths",
    "Paths that are allowed without authorization.",
)
.with_default("/healthz,/readyz,/livez");
/// `--authorization-webhook-cache-authorized-ttl`
pub const AUTHORIZED_TTL: FlagKey<Duration> = FlagKey::new(
    "authorization-webhook-cache-authorized-ttl",
    "How long an allowed SubjectAccessReview is cached.",
)
.with_default("10s");
/// `--authorization-webhook-cache-unauthorized-ttl`
pub const UNAUTHORIZED_TTL: FlagKey<Duration> = FlagKey::new(
    "authorization-webhook-cache-unauthorized-ttl",
    "How long a denied SubjectAccessReview is cached.",
)
.with_default("10s");

pub(super) fn table() -> Vec<FlagRow> {
    use Effect::Works;
    let authentication = rows(
        Group::Authentication,
        [
            (&AUTHENTICATION_KUBECONFIG, Works),
            (&AUTHENTICATION_SKIP_LOOKUP, Works),
            (&AUTHENTICATION_TOLERATE_LOOKUP_FAILURE, Works),
            (&TOKEN_CACHE_TTL, Works),
            (&CLIENT_CA_FILE, Works),
            (&REQUESTHEADER_CA_FILE, Works),
            (&REQUESTHEADER_ALLOWED_NAMES, Works),
            (&REQUESTHEADER_UID_HEADERS, Works),
            (&REQUESTHEADER_USERNAME_HEADERS, Works),
            (&REQUESTHEADER_GROUP_HEADERS, Works),
            (&REQUESTHEADER_EXTRA_PREFIX, Works),
        ],
    );
    let authorization = rows(
        Group::Authorization,
        [
            (&AUTHORIZATION_KUBECONFIG, Works),
            (&ALWAYS_ALLOW_PATHS, Works),
            (&AUTHORIZED_TTL, Works),
            (&UNAUTHORIZED_TTL, Works),
        ],
    );
    [authentication, authorization].concat()
}
