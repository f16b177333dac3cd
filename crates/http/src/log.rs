//! One log line per attempt, and the full request and response at trace level. No secrets.

use bytes::Bytes;
use cloudkeel_api::CallRecord;
use tracing::{Level, debug, enabled, trace};

use crate::redact::Redactor;
use crate::request::Request;
use crate::response::Response;

/// How much of a body is logged.
const BODY_CHARS: usize = 4000;

pub(crate) fn sending(request: &Request, wire: &http::Request<Bytes>, redactor: &Redactor) {
    if !enabled!(Level::TRACE) {
        return;
    }
    trace!(operation = request.operation(), method = %wire.method(), url = redactor.url(&wire.uri().to_string()), headers = redactor.headers(wire.headers()), body = request.shown_body(redactor, BODY_CHARS), "cloud API request");
}

pub(crate) fn answered(record: &CallRecord<'_>, url: &str, response: &Response) {
    debug!(
        operation = record.operation,
        url,
        status = record.status,
        attempt = record.attempt,
        duration_ms = record.duration.as_secs_f64() * 1000.0,
        request_id = response.request_id(),
        "cloud API request succeeded"
    );
    if enabled!(Level::TRACE) {
        trace!(
            operation = record.operation,
            headers = response.shown_headers(),
            body = response.shown_body(BODY_CHARS),
            "cloud API response"
        );
    }
}

pub(crate) fn failed(record: &CallRecord<'_>, url: &str, message: &str, request_id: Option<&str>) {
    debug!(
        operation = record.operation,
        url,
        status = record.status,
        err = record.error.map(cloudkeel_api::ErrorKind::as_str),
        attempt = record.attempt,
        duration_ms = record.duration.as_secs_f64() * 1000.0,
        request_id,
        message,
        "cloud API request failed"
    );
}
