//! Flags of the secure port and of the webhook port.

use cloudkeel_api::FlagKey;

use super::table::{Effect, FlagRow, Group, rows};

/// The flags of one TLS listener. Upstream has the same set twice, the second time with a prefix.
#[derive(Debug)]
pub struct ListenerFlags {
    /// Address.
    pub bind_address: FlagKey<String>,
    /// Port.
    pub secure_port: FlagKey<u16>,
    /// No HTTP/2.
    pub disable_http2: FlagKey<bool>,
    /// Directory for certificates.
    pub cert_dir: FlagKey<String>,
    /// Certificate file.
    pub cert_file: FlagKey<String>,
    /// Key file.
    pub key_file: FlagKey<String>,
    /// Cipher suites.
    pub cipher_suites: FlagKey<Vec<String>>,
    /// Curves.
    pub curves: FlagKey<Vec<String>>,
    /// Lowest TLS version.
    pub min_version: FlagKey<String>,
    /// Certificates by server name.
    pub sni: FlagKey<String>,
}

const BIND_HELP: &str = "Address to listen on.";
const PORT_HELP: &str = "Port to serve HTTPS on; 0 disables it.";
const HTTP2_HELP: &str = "Serve HTTP/1.1 only.";
const DIR_HELP: &str =
    "Directory in which a self-signed certificate is saved; empty keeps it in memory.";
const CERT_HELP: &str = "File with the certificate chain; reloaded when it changes.";
const KEY_HELP: &str = "File with the certificate's key; reloaded when it changes.";
const CIPHER_HELP: &str =
    "Cipher suites for TLS 1.2 by their Go names; empty means all secure ones.";
const CURVE_HELP: &str = "Key exchange groups by their Go numbers.";
const MIN_HELP: &str = "Lowest TLS version: VersionTLS12 or VersionTLS13. Older ones are insecure and mean \
                        VersionTLS12.";
const SNI_HELP: &str =
    "Certificate and key for some server names: `file.crt,file.key:name,…`. Repeatable.";

/// The secure port of the manager.
pub const SECURE: ListenerFlags = ListenerFlags {
    bind_address: FlagKey::new("bind-address", BIND_HELP).with_default("0.0.0.0"),
    secure_port: FlagKey::new("secure-port", PORT_HELP).with_default("10258"),
    disable_http2: FlagKey::new("disable-http2-serving", HTTP2_HELP).with_default("false"),
    cert_dir: FlagKey::new("cert-dir", DIR_HELP).with_default(""),
    cert_file: FlagKey::new("tls-cert-file", CERT_HELP),
    key_file: FlagKey::new("tls-private-key-file", KEY_HELP),
    cipher_suites: FlagKey::new("tls-cipher-suites", CIPHER_HELP),
    curves: FlagKey::new("tls-curve-preferences", CURVE_HELP),
    min_version: FlagKey::new("tls-min-version", MIN_HELP).with_default("VersionTLS12"),
    sni: FlagKey::new("tls-sni-cert-key", SNI_HELP),
};

/// The port of the webhooks.
pub const WEBHOOK: ListenerFlags = ListenerFlags {
    bind_address: FlagKey::new("webhook-bind-address", BIND_HELP).with_default("0.0.0.0"),
    secure_port: FlagKey::new("webhook-secure-port", PORT_HELP).with_default("10260"),
    disable_http2: FlagKey::new("webhook-disable-http2-serving", HTTP2_HELP).with_default("false"),
    cert_dir: FlagKey::new("webhook-cert-dir", DIR_HELP).with_default(""),
    cert_file: FlagKey::new("webhook-tls-cert-file", CERT_HELP),
    key_file: FlagKey::new("webhook-tls-private-key-file", KEY_HELP),
    cipher_suites: FlagKey::new("webhook-tls-cipher-suites", CIPHER_HELP),
    curves: FlagKey::new("webhook-tls-curve-preferences", CURVE_HELP),
    min_version: FlagKey::new("webhook-tls-min-version", MIN_HELP).with_default("VersionTLS12"),
    sni: FlagKey::new("webhook-tls-sni-cert-key", SNI_HELP),
};

/// `--webhooks`
pub const WEBHOOKS: FlagKey<Vec<String>> = FlagKey::new(
    "webhooks",
    "Which webhooks are served: `*`, `name`, or `-name`; none by default.",
);
/// `--http2-max-streams-per-connection`
pub const HTTP2_MAX_STREAMS: FlagKey<u32> = FlagKey::new(
    "http2-max-streams-per-connection",
    "Streams that a client may open on one connection; 0 means 100.",
)
.with_default("0");
/// `--permit-port-sharing`
pub const PERMIT_PORT_SHARING: FlagKey<bool> = FlagKey::new(
    "permit-port-sharing",
    "Listen with SO_REUSEPORT, so that two processes can share the port.",
)
.with_default("false");
/// `--permit-address-sharing`
pub const PERMIT_ADDRESS_SHARING: FlagKey<bool> = FlagKey::new(
    "permit-address-sharing",
    "Listen with SO_REUSEADDR, so that a port in TIME_WAIT can be used.",
)
.with_default("false");

fn listener(group: Group, flags: &ListenerFlags) -> Vec<FlagRow> {
    use Effect::{None, Works};
    rows(
        group,
        [
            (&flags.bind_address, Works),
            (&flags.secure_port, Works),
            (&flags.disable_http2, Works),
            (&flags.cert_dir, Works),
            (&flags.cert_file, Works),
            (&flags.key_file, Works),
            (&flags.cipher_suites, Works),
            (
                &flags.curves,
                None("the TLS library chooses among secure groups"),
            ),
            (&flags.min_version, Works),
            (&flags.sni, Works),
        ],
    )
}

pub(super) fn table() -> Vec<FlagRow> {
    use Effect::{None, Works};
    let shared = rows(
        Group::SecureServing,
        [
            (&HTTP2_MAX_STREAMS, Works),
            (&PERMIT_PORT_SHARING, Works),
            (&PERMIT_ADDRESS_SHARING, None("it is always on")),
        ],
    );
    [
        rows(Group::Webhook, [(&WEBHOOKS, Works)]),
        listener(Group::WebhookServing, &WEBHOOK),
        listener(Group::SecureServing, &SECURE),
        shared,
    ]
    .concat()
}
