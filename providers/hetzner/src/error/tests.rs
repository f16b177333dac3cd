use cloudkeel_http::{ApiProblem, ErrorMap as _};
use http::{HeaderMap, StatusCode};

use super::*;

const THROTTLED: ErrorKind = ErrorKind::Throttled { retry_after: None };

fn classify(status: u16, body: &str) -> ApiProblem {
    let status = StatusCode::from_u16(status).unwrap();
    cloud_refusals().classify(status, &HeaderMap::new(), body.as_bytes())
}

fn coded(status: u16, code: &str) -> ErrorKind {
    let body = format!(r#"{{"error":{{"code":"{code}","message":"m","details":null}}}}"#);
    classify(status, &body).kind
}

#[test]
fn every_code_has_its_meaning() {
    for (status, code, kind) in [
        (401, "unauthorized", ErrorKind::Unauthenticated),
        (401, "token_readonly", ErrorKind::Denied),
        (403, "forbidden", ErrorKind::Denied),
        (423, "protected", ErrorKind::Denied),
        (404, "not_found", ErrorKind::NotFound),
        (400, "json_error", ErrorKind::Invalid),
        (422, "invalid_input", ErrorKind::Invalid),
        (423, "locked", ErrorKind::Busy),
        (423, "resource_locked", ErrorKind::Busy),
        (403, "maintenance", ErrorKind::Busy),
        (409, "conflict", ErrorKind::Conflict),
        (409, "uniqueness_error", ErrorKind::AlreadyExists),
        (403, "resource_limit_exceeded", ErrorKind::LimitExceeded),
        (429, "rate_limit_exceeded", THROTTLED),
        (412, "resource_unavailable", ErrorKind::Unavailable),
        (503, "robot_unavailable", ErrorKind::Unavailable),
        (502, "bad_gateway", ErrorKind::Unavailable),
        (503, "unavailable", ErrorKind::Unavailable),
        (504, "timeout", ErrorKind::Timeout),
        (500, "server_error", ErrorKind::Unavailable),
        (410, "deprecated_api_endpoint", ErrorKind::Unsupported),
        (422, "unsupported_error", ErrorKind::Unsupported),
        (412, "source_port_already_used", ErrorKind::Conflict),
        (422, "target_already_defined", ErrorKind::Conflict),
        (422, "load_balancer_already_attached", ErrorKind::Conflict),
        (422, "cloud_resource_ip_not_allowed", ErrorKind::Invalid),
        (422, "ip_not_owned", ErrorKind::Invalid),
        (422, "missing_ipv4", ErrorKind::Invalid),
        (422, "server_not_attached_to_network", ErrorKind::Invalid),
        (422, "targets_without_use_private_ip", ErrorKind::Invalid),
        (422, "no_subnet_available", ErrorKind::Invalid),
        (422, "ip_not_available", ErrorKind::Invalid),
        (422, "invalid_load_balancer_type", ErrorKind::Invalid),
    ] {
        assert_eq!(coded(status, code), kind, "{status} {code}");
    }
}

#[test]
fn nothing_but_a_404_with_the_right_code_says_that_a_thing_does_not_exist() {
    for (case, found) in [
        (
            "a proxy's 404",
            classify(404, "<html>not_found</html>").kind,
        ),
        ("an empty 404", classify(404, "").kind),
        ("an unknown code", coded(404, "gone")),
        ("another code", coded(404, "invalid_input")),
        ("the code with a 500", coded(500, "not_found")),
        ("the code with a 403", coded(403, "not_found")),
        ("a retired endpoint", coded(410, "deprecated_api_endpoint")),
    ] {
        assert_ne!(found, ErrorKind::NotFound, "{case}");
    }
}

#[test]
fn wrong_fields_are_named_with_what_is_wrong_with_them() {
    let problem = classify(
        422,
        r#"{"error":{"code":"invalid_input","message":"invalid input","details":{"fields":[
            {"name":"location","messages":["unknown","too far"]},{"name":"x"}]}}}"#,
    );
    assert_eq!(
        problem.message.as_deref(),
        Some("invalid input: [location: unknown, too far]")
    );
}

#[test]
fn robots_codes_have_their_own_meaning() {
    let table = |wait| robot_refusals(Duration::from_secs(wait));
    let kind = |table: CodeTable, status: u16, code: &str| {
        let body = format!(r#"{{"error":{{"status":{status},"code":"{code}","message":"m"}}}}"#);
        let status = StatusCode::from_u16(status).unwrap();
        let problem = table.classify(status, &HeaderMap::new(), body.as_bytes());
        problem.kind
    };
    let five_minutes = Some(Duration::from_mins(5));
    for (wait, status, code, expected) in [
        (0, 403, "RATE_LIMIT_EXCEEDED", THROTTLED),
        (
            300,
            403,
            "RATE_LIMIT_EXCEEDED",
            ErrorKind::Throttled {
                retry_after: five_minutes,
            },
        ),
        (0, 401, "UNAUTHORIZED", ErrorKind::Unauthenticated),
        (0, 403, "FORBIDDEN", ErrorKind::Denied),
        (0, 404, "SERVER_NOT_FOUND", ErrorKind::NotFound),
        (0, 404, "NOT_FOUND", ErrorKind::Malformed),
        (0, 404, "RESET_NOT_AVAILABLE", ErrorKind::Unsupported),
        (0, 500, "INTERNAL_ERROR", ErrorKind::Unavailable),
    ] {
        assert_eq!(kind(table(wait), status, code), expected, "{code} {wait}");
    }
}
