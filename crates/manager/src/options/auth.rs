//! Options of delegated authentication and authorization.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::reader::OptionReader;
use crate::flags;

/// Delegated authentication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticationOptions {
    /// `--authentication-kubeconfig`
    pub kubeconfig: Option<PathBuf>,
    /// `--authentication-skip-lookup`
    pub skip_lookup: bool,
    /// `--authentication-tolerate-lookup-failure`
    pub tolerate_lookup_failure: bool,
    /// `--authentication-token-webhook-cache-ttl`
    pub token_cache_ttl: Duration,
    /// `--client-ca-file`
    pub client_ca_file: Option<PathBuf>,
    /// `--requestheader-client-ca-file`
    pub proxy_ca_file: Option<PathBuf>,
    /// `--requestheader-allowed-names`
    pub proxy_allowed_names: Vec<String>,
    /// `--requestheader-username-headers`
    pub username_headers: Vec<String>,
    /// `--requestheader-uid-headers`
    pub uid_headers: Vec<String>,
    /// `--requestheader-group-headers`
    pub group_headers: Vec<String>,
    /// `--requestheader-extra-headers-prefix`
    pub extra_header_prefixes: Vec<String>,
}

impl AuthenticationOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let kubeconfig = reader.text(&flags::AUTHENTICATION_KUBECONFIG);
        let skip_lookup = reader.value(&flags::AUTHENTICATION_SKIP_LOOKUP);
        let tolerate = reader.value(&flags::AUTHENTICATION_TOLERATE_LOOKUP_FAILURE);
        let token_cache_ttl = reader.value(&flags::TOKEN_CACHE_TTL);
        let client_ca_file = reader.text(&flags::CLIENT_CA_FILE);
        let proxy_ca_file = reader.text(&flags::REQUESTHEADER_CA_FILE);
        let proxy_allowed_names = reader.list(&flags::REQUESTHEADER_ALLOWED_NAMES);
        let username_headers = reader.list(&flags::REQUESTHEADER_USERNAME_HEADERS);
        let uid_headers = reader.list(&flags::REQUESTHEADER_UID_HEADERS);
        let group_headers = reader.list(&flags::REQUESTHEADER_GROUP_HEADERS);
        let extra_header_prefixes = reader.list(&flags::REQUESTHEADER_EXTRA_PREFIX);
        Some(Self {
            kubeconfig: kubeconfig?.map(PathBuf::from),
            skip_lookup: skip_lookup?,
            tolerate_lookup_failure: tolerate?,
            token_cache_ttl: token_cache_ttl?,
            client_ca_file: client_ca_file?.map(PathBuf::from),
            proxy_ca_file: proxy_ca_file?.map(PathBuf::from),
            proxy_allowed_names: proxy_allowed_names?,
            username_headers: username_headers?,
            uid_headers: uid_headers?,
            group_headers: group_headers?,
            extra_header_prefixes: extra_header_prefixes?,
        })
    }
}

/// Delegated authorization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationOptions {
    /// `--authorization-kubeconfig`
    pub kubeconfig: Option<PathBuf>,
    /// `--authorization-always-allow-paths`
    pub always_allow_paths: Vec<String>,
    /// `--authorization-webhook-cache-authorized-ttl`
    pub authorized_ttl: Duration,
    /// `--authorization-webhook-cache-unauthorized-ttl`
    pub unauthorized_ttl: Duration,
}

impl AuthorizationOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let kubeconfig = reader.text(&flags::AUTHORIZATION_KUBECONFIG);
        let always_allow_paths = reader.list(&flags::ALWAYS_ALLOW_PATHS);
        let authorized_ttl = reader.value(&flags::AUTHORIZED_TTL);
        let unauthorized_ttl = reader.value(&flags::UNAUTHORIZED_TTL);
        Some(Self {
            kubeconfig: kubeconfig?.map(PathBuf::from),
            always_allow_paths: always_allow_paths?,
            authorized_ttl: authorized_ttl?,
            unauthorized_ttl: unauthorized_ttl?,
        })
    }
}
