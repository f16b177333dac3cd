use cloudkeel_http::ErrorMap as _;
use http::{HeaderMap, StatusCode};

use super::*;
use crate::wire::ErrorCode;

fn kind(status: u16, body: &str) -> ErrorKind {
    let status = StatusCode::from_u16(status).unwrap();
    let problem = refusals().classify(status, &HeaderMap::new(), body.as_bytes());
    problem.kind
}

fn coded(status: u16, code: ErrorCode) -> ErrorKind {
    let code = code.as_str();
    kind(
        status,
        &format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#),
    )
}

#[test]
fn every_code_has_its_meaning() {
    for (status, code, expected) in [
        (404, ErrorCode::NotFound, ErrorKind::NotFound),
        (401, ErrorCode::Unauthorized, ErrorKind::Unauthenticated),
        (403, ErrorCode::Forbidden, ErrorKind::Denied),
        (412, ErrorCode::Conflict, ErrorKind::Conflict),
        (423, ErrorCode::Locked, ErrorKind::Busy),
        (
            429,
            ErrorCode::RateLimited,
            ErrorKind::Throttled { retry_after: None },
        ),
        (422, ErrorCode::Invalid, ErrorKind::Invalid),
        (422, ErrorCode::LimitExceeded, ErrorKind::LimitExceeded),
        (409, ErrorCode::AlreadyExists, ErrorKind::AlreadyExists),
        (503, ErrorCode::Unavailable, ErrorKind::Unavailable),
        (504, ErrorCode::Unavailable, ErrorKind::Timeout),
        (403, ErrorCode::Protected, ErrorKind::Denied),
    ] {
        assert_eq!(coded(status, code), expected, "{status} {}", code.as_str());
    }
}

#[test]
fn nothing_but_a_404_with_the_right_code_says_that_a_thing_does_not_exist() {
    for (case, found) in [
        ("a proxy's 404", kind(404, "<html>not_found</html>")),
        ("an empty 404", kind(404, "")),
        (
            "an unknown code",
            kind(404, r#"{"error":{"code":"gone","message":""}}"#),
        ),
        ("a wrong path", coded(404, ErrorCode::Invalid)),
        ("the code with a 500", coded(500, ErrorCode::NotFound)),
        ("the code with a 403", coded(403, ErrorCode::NotFound)),
        ("a bare 410", kind(410, "")),
    ] {
        assert_ne!(found, ErrorKind::NotFound, "{case}");
    }
}

#[test]
fn the_wrong_field_is_named() {
    let body = br#"{"error":{"code":"invalid","message":"expected a name","field":"name"}}"#;
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    let problem = refusals().classify(status, &HeaderMap::new(), body);
    assert_eq!(problem.message.as_deref(), Some("name: expected a name"));
}
