use super::*;

#[test]
fn every_status_has_a_meaning() {
    for (status, kind) in [
        (301, ErrorKind::Invalid),
        (400, ErrorKind::Invalid),
        (401, ErrorKind::Unauthenticated),
        (403, ErrorKind::Denied),
        (404, ErrorKind::NotFound),
        (408, ErrorKind::Timeout),
        (409, ErrorKind::Conflict),
        (410, ErrorKind::Other),
        (412, ErrorKind::Conflict),
        (418, ErrorKind::Other),
        (422, ErrorKind::Invalid),
        (423, ErrorKind::Busy),
        (429, ErrorKind::Throttled { retry_after: None }),
        (500, ErrorKind::Unavailable),
        (501, ErrorKind::Unsupported),
        (502, ErrorKind::Unavailable),
        (503, ErrorKind::Unavailable),
        (504, ErrorKind::Timeout),
        (599, ErrorKind::Unavailable),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(StatusMap::kind_of(status), kind, "{status}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn the_vendors_code_comes_before_the_status() {
    let table = CodeTable::new("/error/code", "/error/message")
        .on("not_found", ErrorKind::NotFound)
        .on("locked", ErrorKind::Busy)
        .row("conflict", ErrorKind::Conflict, RetryHint::Safe);
    for (case, status, body, kind, code, retry_hint) in [
        (
            "known code",
            422,
            r#"{"error":{"code":"locked","message":"m"}}"#,
            ErrorKind::Busy,
            Some("locked"),
            RetryHint::ByKind,
        ),
        (
            "code with advice",
            409,
            r#"{"error":{"code":"conflict"}}"#,
            ErrorKind::Conflict,
            Some("conflict"),
            RetryHint::Safe,
        ),
        (
            "no such thing",
            404,
            r#"{"error":{"code":"not_found"}}"#,
            ErrorKind::NotFound,
            Some("not_found"),
            RetryHint::ByKind,
        ),
        (
            "no such path",
            404,
            r#"{"error":{"code":"unknown_path"}}"#,
            ErrorKind::Malformed,
            Some("unknown_path"),
            RetryHint::ByKind,
        ),
        (
            "unknown code",
            409,
            r#"{"error":{"code":"odd"}}"#,
            ErrorKind::Conflict,
            Some("odd"),
            RetryHint::ByKind,
        ),
        (
            "number as code",
            403,
            r#"{"error":{"code":12}}"#,
            ErrorKind::Denied,
            Some("12"),
            RetryHint::ByKind,
        ),
        (
            "no JSON",
            503,
            "<html>locked</html>",
            ErrorKind::Unavailable,
            None,
            RetryHint::ByKind,
        ),
        (
            "a proxy's 404",
            404,
            "<html>not_found</html>",
            ErrorKind::Malformed,
            None,
            RetryHint::ByKind,
        ),
        (
            "other shape",
            503,
            r#"["locked"]"#,
            ErrorKind::Unavailable,
            None,
            RetryHint::ByKind,
        ),
        (
            "code only in the text",
            400,
            r#"{"error":{"message":"locked"}}"#,
            ErrorKind::Invalid,
            None,
            RetryHint::ByKind,
        ),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let problem = table.classify(status, &HeaderMap::new(), body.as_bytes());
        assert_eq!(problem.kind, kind, "{case}");
        assert_eq!(problem.code.as_deref(), code, "{case}");
        assert_eq!(problem.retry_hint, retry_hint, "{case}");
    }
}

#[test]
fn a_code_for_what_does_not_exist_counts_only_with_a_404() {
    let table = CodeTable::new("/code", "/message")
        .not_found("not_found")
        .all(&["locked", "busy"], ErrorKind::Busy);
    for (status, code, expected) in [
        (404, "not_found", ErrorKind::NotFound),
        (403, "not_found", ErrorKind::Denied),
        (500, "not_found", ErrorKind::Unavailable),
        (404, "gone", ErrorKind::Malformed),
        (409, "busy", ErrorKind::Busy),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let body = format!(r#"{{"code":"{code}"}}"#);
        let problem = table.classify(status, &HeaderMap::new(), body.as_bytes());
        assert_eq!(problem.kind, expected, "{status} {code}");
    }
    assert_eq!(table.kind("locked"), Some(ErrorKind::Busy));
    assert_eq!(table.kind("gone"), None);
}
