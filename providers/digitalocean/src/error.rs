//! What DigitalOcean's refusals mean.

use cloudkeel_api::ErrorKind;
use cloudkeel_http::CodeTable;

/// The table of the API. Some refusals share a code and mean different things: only their words tell them apart. Where the
/// words are others, the code decides.
pub(crate) fn refusals() -> CodeTable {
    let (forbidden, invalid) = ("forbidden", "unprocessable_entity");
    let throttled = ErrorKind::Throttled { retry_after: None };
    CodeTable::new("/id", "/message")
        .request_id("/request_id")
        .worded(forbidden, &["processes previous actions"], ErrorKind::Busy)
        .worded(forbidden, &["exceed", "limit"], ErrorKind::LimitExceeded)
        .worded(invalid, &["exceed", "limit"], ErrorKind::LimitExceeded)
        .worded(invalid, &["not unique"], ErrorKind::AlreadyExists)
        .not_found("not_found")
        .on("unauthorized", ErrorKind::Unauthenticated)
        .on(forbidden, ErrorKind::Denied)
        .on("conflict", ErrorKind::Conflict)
        .all(&[invalid, "bad_request"], ErrorKind::Invalid)
        .on("too_many_requests", throttled)
        .on("server_error", ErrorKind::Unavailable)
        .on("service_unavailable", ErrorKind::Unavailable)
}
