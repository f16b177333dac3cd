//! What Hetzner's refusals mean.

use std::time::Duration;

use cloudkeel_api::ErrorKind;
use cloudkeel_http::{CodeTable, Refusal, RetryHint};
use serde_json::Value;

/// The code, and the message with what is wrong with each field.
fn read(body: &[u8]) -> Option<Refusal> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?;
    let code = error.get("code")?.as_str()?.to_owned();
    let message = error.get("message").and_then(Value::as_str);
    let message = message.unwrap_or_default().to_owned();
    let fields = error.pointer("/details/fields").and_then(Value::as_array);
    let fields = fields.into_iter().flatten().filter_map(|field| {
        let messages = field.get("messages")?.as_array()?.iter();
        let messages: Vec<_> = messages.filter_map(Value::as_str).collect();
        let name = field.get("name")?.as_str()?;
        (!messages.is_empty()).then(|| format!("{name}: {}", messages.join(", ")))
    });
    let fields: Vec<_> = fields.collect();
    Some(Refusal {
        code: Some(code),
        message: Some(match fields.as_slice() {
            [] => message,
            fields => format!("{message}: [{}]", fields.join("; ")),
        }),
        request_id: None,
    })
}

/// The table of the Cloud API, also for the errors of actions.
pub(crate) fn cloud_refusals() -> CodeTable {
    CodeTable::read_by(read)
        .not_found("not_found")
        .on("unauthorized", ErrorKind::Unauthenticated)
        .all(&["forbidden", "token_readonly", "protected"], ErrorKind::Denied)
        .all(&["locked", "resource_locked", "maintenance"], ErrorKind::Busy)
        // The cloud did nothing and asks for the same once more.
        .row("conflict", ErrorKind::Conflict, RetryHint::Safe)
        // What was observed has changed.
        .all(
            &["source_port_already_used", "target_already_defined", "load_balancer_already_attached"],
            ErrorKind::Conflict,
        )
        .on("uniqueness_error", ErrorKind::AlreadyExists)
        .on("resource_limit_exceeded", ErrorKind::LimitExceeded)
        .on("rate_limit_exceeded", ErrorKind::Throttled { retry_after: None })
        .on("timeout", ErrorKind::Timeout)
        .all(&["bad_gateway", "unavailable", "service_error"], ErrorKind::Unavailable)
        // A shortage that an immediate repetition does not end.
        .row("resource_unavailable", ErrorKind::Unavailable, RetryHint::Never)
        .row("robot_unavailable", ErrorKind::Unavailable, RetryHint::Never)
        .all(&["unsupported_error", "deprecated_api_endpoint"], ErrorKind::Unsupported)
        .all(INVALID, ErrorKind::Invalid)
}

const INVALID: &[&str] = &[
    "invalid_input",
    "json_error",
    "method_not_allowed",
    "cloud_resource_ip_not_allowed",
    "ip_not_owned",
    "ip_not_available",
    "ip_not_in_vswitch_subnet",
    "network_has_no_vswitch_subnet",
    "no_subnet_available",
    "missing_ipv4",
    "server_not_attached_to_network",
    "load_balancer_not_attached_to_network",
    "targets_without_use_private_ip",
    "invalid_load_balancer_type",
];

/// The table of the Robot web service. `wait` is how long to hold back after "too many requests"; nothing is up
/// to the engine.
pub(crate) fn robot_refusals(wait: Duration) -> CodeTable {
    let retry_after = (!wait.is_zero()).then_some(wait);
    CodeTable::read_by(read)
        .not_found("SERVER_NOT_FOUND")
        .on("RATE_LIMIT_EXCEEDED", ErrorKind::Throttled { retry_after })
        .on("RESET_NOT_AVAILABLE", ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests;
