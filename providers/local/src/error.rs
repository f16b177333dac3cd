//! What the cloud's refusals mean.

use cloudkeel_api::ErrorKind;
use cloudkeel_http::{ApiProblem, ErrorMap, StatusMap};
use http::{HeaderMap, StatusCode};

use crate::wire::{ErrorBody, ErrorCode};

/// The table from refusals to meanings.
///
/// Only a 404 that carries the cloud's own code says that a thing does not exist. Any other 404 comes
/// from something on the way, such as a proxy or a wrong base URL.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Refusals;

impl ErrorMap for Refusals {
    fn classify(&self, status: StatusCode, _headers: &HeaderMap, body: &[u8]) -> ApiProblem {
        let Ok(ErrorBody { error }) = serde_json::from_slice(body) else {
            return ApiProblem::foreign(status);
        };
        let message = match &error.field {
            Some(field) => format!("{field}: {}", error.message),
            None => error.message,
        };
        ApiProblem {
            code: Some(error.code.as_str().to_owned()),
            message: Some(message),
            ..ApiProblem::new(meaning(status, error.code))
        }
    }
}

const fn meaning(status: StatusCode, code: ErrorCode) -> ErrorKind {
    match code {
        ErrorCode::NotFound => StatusMap::kind_of(status),
        ErrorCode::Unauthorized => ErrorKind::Unauthenticated,
        ErrorCode::Forbidden | ErrorCode::Protected => ErrorKind::Denied,
        ErrorCode::Conflict => ErrorKind::Conflict,
        ErrorCode::Locked => ErrorKind::Busy,
        ErrorCode::RateLimited => ErrorKind::Throttled { retry_after: None },
        ErrorCode::Invalid => ErrorKind::Invalid,
        ErrorCode::LimitExceeded => ErrorKind::LimitExceeded,
        ErrorCode::AlreadyExists => ErrorKind::AlreadyExists,
        // The cloud's word for every trouble; the status tells a timeout apart.
        ErrorCode::Unavailable => match StatusMap::kind_of(status) {
            ErrorKind::Timeout => ErrorKind::Timeout,
            _ => ErrorKind::Unavailable,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, body: &str) -> ErrorKind {
        let status = StatusCode::from_u16(status).unwrap();
        let problem = Refusals.classify(status, &HeaderMap::new(), body.as_bytes());
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
        let problem = Refusals.classify(status, &HeaderMap::new(), body);
        assert_eq!(problem.message.as_deref(), Some("name: expected a name"));
    }
}
