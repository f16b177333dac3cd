//! What the refusals of OpenStack's services mean.

use cloudkeel_api::ErrorKind;
use cloudkeel_http::{CodeTable, Refusal, RetryHint};
use serde_json::Value;

/// Octavia's faults have no code, so their fixed words are read as one.
const OCTAVIA: [(&str, &str); 5] = [
    ("is immutable and cannot be updated", "Immutable"),
    ("Quota has been met", "OverQuota"),
    ("not found.", "NotFound"),
    ("Another Listener on this Load Balancer", "Duplicate"),
    ("already has a", "Duplicate"),
];

/// Neutron's ways of saying that there is no such thing.
const NOT_FOUND: [&str; 7] = [
    "PortNotFound",
    "NetworkNotFound",
    "SubnetNotFound",
    "RouterNotFound",
    "FloatingIPNotFound",
    "SecurityGroupNotFound",
    "SecurityGroupRuleNotFound",
];

/// Code and message, wherever a service puts them.
fn read(body: &[u8]) -> Option<Refusal> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = |place: &str| {
        body.pointer(place)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let (code, message) = if body.get("NeutronError").is_some() {
        (text("/NeutronError/type"), text("/NeutronError/message"))
    } else if let Some(fault) = text("/faultstring") {
        let code = OCTAVIA.iter().find(|(words, _)| fault.contains(words));
        let code = code.map_or("Fault", |(_, code)| code);
        (Some(code.to_owned()), Some(fault))
    } else if body.get("error").is_some() {
        (text("/error/title"), text("/error/message"))
    } else if body.get("title").is_some() {
        (text("/title"), text("/description"))
    } else {
        // Nova and Cinder: {"itemNotFound": {"code": 404, "message": …}}
        let (code, fault) = body
            .as_object()
            .filter(|fields| fields.len() == 1)?
            .iter()
            .next()?;
        let message = fault.get("message")?.as_str()?.to_owned();
        (Some(code.clone()), Some(message))
    };
    Some(Refusal {
        code,
        message,
        request_id: None,
    })
}

/// The table of all services: none uses a code for something else than another.
pub(crate) fn refusals() -> CodeTable {
    let table = CodeTable::read_by(read)
        .not_found("itemNotFound")
        .not_found("NotFound")
        .not_found("Not Found");
    let table = NOT_FOUND
        .iter()
        .fold(table, |table, code| table.not_found(code));
    table
        // The load balancer is being changed: the same request is good later.
        .row("Immutable", ErrorKind::Busy, RetryHint::Never)
        .row("Duplicate", ErrorKind::Conflict, RetryHint::Never)
        .all(&["overLimit", "OverQuota", "IpAddressGenerationFailure", "ExternalIpAddressExhausted"], ErrorKind::LimitExceeded)
        .all(&["SecurityGroupRuleExists"], ErrorKind::AlreadyExists)
        // Another client is changing the same rows.
        .all(&["SecurityGroupInUse", "RetryRequest"], ErrorKind::Busy)
        .all(&["ExternalGatewayForFloatingIPNotFound", "SubnetMismatchForPort"], ErrorKind::Invalid)
        .on("Unauthorized", ErrorKind::Unauthenticated)
}

#[cfg(test)]
mod tests {
    use cloudkeel_http::ErrorMap as _;
    use http::{HeaderMap, StatusCode};

    use super::*;
    use ErrorKind::{
        AlreadyExists, Busy, Conflict, Denied, Invalid, LimitExceeded, Malformed, NotFound,
        Unauthenticated, Unavailable,
    };

    /// What each service answers, and what it means.
    const ANSWERS: &[(&str, u16, &str, ErrorKind)] = &[
        (
            "nova",
            404,
            r#"{"itemNotFound": {"code": 404, "message": "Instance x could not be found."}}"#,
            NotFound,
        ),
        (
            "nova",
            403,
            r#"{"forbidden": {"code": 403, "message": "Policy"}}"#,
            Denied,
        ),
        (
            "nova",
            500,
            r#"{"computeFault": {"code": 500, "message": "Unexpected"}}"#,
            Unavailable,
        ),
        ("a proxy", 404, "<html>", Malformed),
        (
            "neutron",
            404,
            r#"{"NeutronError": {"type": "PortNotFound", "message": "x", "detail": ""}}"#,
            NotFound,
        ),
        (
            "neutron",
            404,
            r#"{"message": "The resource could not be found."}"#,
            Malformed,
        ),
        (
            "neutron",
            409,
            r#"{"NeutronError": {"type": "OverQuota", "message": "x", "detail": ""}}"#,
            LimitExceeded,
        ),
        (
            "neutron",
            409,
            r#"{"NeutronError": {"type": "SecurityGroupRuleExists", "message": "x"}}"#,
            AlreadyExists,
        ),
        (
            "octavia",
            409,
            r#"{"faultcode": "Client", "faultstring": "Load Balancer x is immutable and cannot be updated."}"#,
            Busy,
        ),
        (
            "octavia",
            409,
            r#"{"faultcode": "Client", "faultstring": "Another Listener on this Load Balancer is"}"#,
            Conflict,
        ),
        (
            "octavia",
            403,
            r#"{"faultcode": "Client", "faultstring": "Quota has been met for resources: Load Balancer"}"#,
            LimitExceeded,
        ),
        (
            "octavia",
            404,
            r#"{"faultcode": "Client", "faultstring": "Load Balancer x not found."}"#,
            NotFound,
        ),
        (
            "octavia",
            400,
            r#"{"faultcode": "Client", "faultstring": "Validation failure: x"}"#,
            Invalid,
        ),
        (
            "keystone",
            401,
            r#"{"error": {"code": 401, "title": "Unauthorized", "message": "x"}}"#,
            Unauthenticated,
        ),
        (
            "barbican",
            404,
            r#"{"code": 404, "title": "Not Found", "description": "x"}"#,
            NotFound,
        ),
    ];

    #[test]
    fn each_service_is_understood() {
        for (service, status, body, expected) in ANSWERS {
            let status = StatusCode::from_u16(*status).unwrap();
            let problem = refusals().classify(status, &HeaderMap::new(), body.as_bytes());
            assert_eq!(problem.kind, *expected, "{service}: {body}");
        }
    }
}
