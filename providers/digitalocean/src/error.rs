//! What DigitalOcean's refusals mean.

use cloudkeel_api::ErrorKind;
use cloudkeel_http::{CodeTable, Refusal};
use serde::Deserialize;

#[derive(Deserialize)]
struct Body {
    id: String,
    #[serde(default)]
    message: String,
    request_id: Option<String>,
}

/// Refusals that share a code and mean different things: only their words tell them apart. Where the words are others,
/// the code decides.
const WORDS: [(&str, &[&str], &str); 4] = [
    ("forbidden", &["processes previous actions"], "busy"),
    ("forbidden", &["exceed", "limit"], "limit_exceeded"),
    (
        "unprocessable_entity",
        &["exceed", "limit"],
        "limit_exceeded",
    ),
    ("unprocessable_entity", &["not unique"], "name_not_unique"),
];

fn read(body: &[u8]) -> Option<Refusal> {
    let body: Body = serde_json::from_slice(body).ok()?;
    let has = |words: &[&str]| words.iter().all(|word| body.message.contains(word));
    let mut worded = WORDS.iter();
    let worded = worded.find(|(id, words, _)| *id == body.id && has(words));
    let code = worded.map_or(body.id, |(.., code)| (*code).to_owned());
    Some(Refusal {
        code: Some(code),
        message: Some(body.message),
        request_id: body.request_id,
    })
}

/// The table of the API.
pub(crate) fn refusals() -> CodeTable {
    CodeTable::read_by(read)
        .not_found("not_found")
        .on("unauthorized", ErrorKind::Unauthenticated)
        .on("forbidden", ErrorKind::Denied)
        .on("busy", ErrorKind::Busy)
        .on("limit_exceeded", ErrorKind::LimitExceeded)
        .on("name_not_unique", ErrorKind::AlreadyExists)
        .on("conflict", ErrorKind::Conflict)
        .on("unprocessable_entity", ErrorKind::Invalid)
        .on("bad_request", ErrorKind::Invalid)
        .on(
            "too_many_requests",
            ErrorKind::Throttled { retry_after: None },
        )
        .on("server_error", ErrorKind::Unavailable)
        .on("service_unavailable", ErrorKind::Unavailable)
}
