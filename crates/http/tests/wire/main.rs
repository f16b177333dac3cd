//! The engine on real sockets: what only a wire can prove.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod answers;
mod proxies;
mod server;
mod signatures;
mod tls;
mod xml;

use std::time::Duration;

use cloudkeel_http::{Backoff, Client, ClientBuilder, HttpSettings, RetryPolicy, StatusMap};

/// A client without proxies that does not wait long between attempts.
fn client(base_url: String, http: HttpSettings) -> ClientBuilder {
    Client::builder(base_url)
        .http(http)
        .error_map(StatusMap)
        .retry(RetryPolicy {
            backoff: Backoff {
                first: Duration::from_millis(1),
                longest: Duration::from_millis(1),
            },
            ..RetryPolicy::default()
        })
}
