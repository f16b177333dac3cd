//! The documented log messages of cloud clients; `docs/reference/logs.md` is printed from this table.

cloudkeel_api::log_messages! {
    TLS_NOT_VERIFIED: Warn "TLS certificate verification is disabled",
        "A setting turns off the check of the server's certificate: anyone on the path can read the credential.",
        "Remove the setting and give the cloud's CA instead.";
    NO_TRUSTED_CA: Warn "no trusted CA certificates found",
        "Neither the system nor the settings have a CA certificate, so every TLS connection to the cloud fails.",
        "Mount the system's CA bundle, or give the cloud's CA in its settings.";
    LOGIN_FAILED: Warn "failed to log in to the cloud",
        "The cloud gave no token. Requests fail until a login succeeds; the next attempt is after `retry_after`.",
        "Correct the credential or the endpoint, as `err` says.";
}
