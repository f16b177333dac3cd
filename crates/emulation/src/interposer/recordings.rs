//! Answers that were given, so that a stale one can be given again.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tokio::time::Instant;

/// Answers that are kept for one request.
const PER_REQUEST: usize = 64;

/// Requests that answers are kept for.
const REQUESTS: usize = 4096;

/// The answers to each request, oldest first.
#[derive(Debug, Default)]
pub(super) struct Recordings(BTreeMap<String, VecDeque<(Instant, Response<Bytes>)>>);

/// What makes two requests the same: method, address and body. Headers carry times and signatures.
pub(super) fn key_of(request: &Request<Bytes>) -> String {
    let (method, uri) = (request.method(), request.uri());
    format!("{method} {uri} {}", String::from_utf8_lossy(request.body()))
}

impl Recordings {
    pub(super) fn add(&mut self, key: String, answer: Response<Bytes>, now: Instant) {
        if self.0.len() >= REQUESTS && !self.0.contains_key(&key) {
            return;
        }
        let answers = self.0.entry(key).or_default();
        answers.push_back((now, answer));
        if answers.len() > PER_REQUEST {
            answers.pop_front();
        }
    }

    /// The answer as it was this long ago. If the first is younger than that, it is the first.
    pub(super) fn stale(&self, key: &str, by: Duration, now: Instant) -> Option<Response<Bytes>> {
        let answers = self.0.get(key)?;
        let old_enough = |(given, _): &&(Instant, _)| now.saturating_duration_since(*given) >= by;
        let found = answers.iter().rev().find(old_enough);
        found
            .or_else(|| answers.front())
            .map(|(_, answer)| answer.clone())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
