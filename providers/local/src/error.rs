//! What the cloud's refusals mean.

use cloudkeel_api::ErrorKind;
use cloudkeel_http::{CodeTable, Refusal};

use crate::wire::ErrorBody;

/// The table from codes to meanings. `unavailable` goes by its status, which tells a timeout apart.
pub(crate) fn refusals() -> CodeTable {
    CodeTable::read_by(read)
        .not_found("not_found")
        .on("unauthorized", ErrorKind::Unauthenticated)
        .all(&["forbidden", "protected"], ErrorKind::Denied)
        .on("conflict", ErrorKind::Conflict)
        .on("locked", ErrorKind::Busy)
        .on("rate_limited", ErrorKind::Throttled { retry_after: None })
        .on("invalid", ErrorKind::Invalid)
        .on("limit_exceeded", ErrorKind::LimitExceeded)
        .on("already_exists", ErrorKind::AlreadyExists)
}

fn read(body: &[u8]) -> Option<Refusal> {
    let ErrorBody { error } = serde_json::from_slice(body).ok()?;
    Some(Refusal {
        code: Some(error.code.as_str().to_owned()),
        message: Some(match &error.field {
            Some(field) => format!("{field}: {}", error.message),
            None => error.message,
        }),
        request_id: None,
    })
}

#[cfg(test)]
mod tests;
