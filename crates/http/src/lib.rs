//! One REST engine for every hand-written cloud client.
//!
//! A provider builds [`Request`] values and says what its cloud's errors mean; the [`Client`] does the
//! rest: credentials, signatures and their renewal, retries with jittered pauses, `Retry-After`, the request
//! budget of the credential, pages, long-running operations, request IDs, logs without secrets, metrics.
//!
//! ```
//! # use std::sync::Arc;
//! # use cloudkeel_api::{CloudError, ErrorKind, Priority, Secret};
//! # use serde::Deserialize;
//! # #[derive(Deserialize)] struct Server { id: u64 }
//! # #[derive(Deserialize)] struct Servers { servers: Vec<Server>, next_page: Option<u64>, total: u64 }
//! # #[derive(Deserialize)] struct Action { status: String }
//! use cloudkeel_http::*;
//!
//! fn list_servers() -> Request {
//!     Request::get("/servers").query("page", 1).priority(Priority::Background)
//! }
//! fn reboot(server: u64) -> Request {
//!     Request::post("/servers/{id}/actions/reboot").param("id", server)
//! }
//!
//! # async fn example(transport: Arc<dyn Transport>) -> Result<(), CloudError> {
//! let client = Client::builder("https://api.example.com/v1")
//! #   .transport(transport)
//!     .authorizer(HeaderAuth::bearer(Secret::new("token")))
//!     .error_map(CodeTable::new("/error/code", "/error/message").on("locked", ErrorKind::Busy))
//!     .limiter(Limiter::default())
//!     .build()?;
//! let servers = client.pages(list_servers()).collect(|server: &Server| server.id, |response| {
//!     let page: Servers = response.json()?;
//!     Ok(Page { items: page.servers, next: Next::page(page.next_page), total: Some(page.total) })
//! }).await?;
//! assert_eq!(servers.complete, Completeness::Counted);
//! client.send(reboot(servers.items[0].id)).await?;
//! let soon = PollSchedule::every(std::time::Duration::from_secs(1));
//! client.poll_until(Request::get("/actions/{id}").param("id", 9), soon, |response| {
//!     match response.json::<Action>()?.status.as_str() {
//!         "success" => Ok(Progress::Done(())),
//!         state => Ok(Progress::Pending(state.to_owned())),
//!     }
//! }).await
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! #     use testing::{Reply, Script};
//! #     let script = Script::new([
//! #         Reply::text(200, r#"{"servers": [{"id": 7}], "total": 1}"#),
//! #         Reply::text(201, "{}"),
//! #         Reply::text(200, r#"{"status": "success"}"#),
//! #     ]);
//! #     example(script.clone()).await.unwrap();
//! #     assert_eq!(script.seen_lines()[1], "POST https://api.example.com/v1/servers/7/actions/reboot");
//! # }
//! ```
//!
//! What differs between clouds is a function of the provider:
//!
//! | what | by default | else |
//! |---|---|---|
//! | authentication | a header: [`HeaderAuth`] | a cookie or a signature: [`Auth`] |
//! | a body | JSON: [`Request::json`] | [`Request::form`], or bytes of any type: [`Body::Raw`] |
//! | a response | JSON: [`Response::json`] | [`Response::decode`], such as XML |
//! | an error | by status: [`StatusMap`] | by the cloud's codes: [`CodeTable`]; [`ErrorMap`] |
//! | the next page | a number, a link or a marker: [`Next`] | a request of its own: [`Pager::after_marker`] |
//!
//! Every error is a [`CloudError`](cloudkeel_api::CloudError) whose kind says what to do next;
//! [`CallFailure::of`] has the details of the failed call.

mod attempt_failure;
mod authorize;
mod backoff;
mod body;
mod builder;
mod call;
mod client;
mod error;
mod limit;
mod log;
mod log_messages;
mod page;
mod path;
mod poll;
mod proxy;
mod redact;
mod request;
mod response;
mod retry;
mod sent_secrets;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;
mod token;
mod transport;
mod url;

pub use authorize::{Auth, Authorizer, HeaderAuth, set_secret_header};
pub use backoff::{Backoff, Jitter};
pub use body::Body;
pub use builder::ClientBuilder;
pub use client::Client;
pub use error::{
    ApiProblem, CallFailure, CodeTable, ErrorMap, Refusal, RetryHint, StatusMap, TransportError,
    TransportErrorKind,
};
pub use limit::headers::{Budget, budget, retry_after};
pub use limit::{BudgetExhausted, Limiter, LimiterSettings, Permit, Refill, RequestRate};
pub use log_messages::MESSAGES as LOG_MESSAGES;
pub use page::{Completeness, Listing, Next, Page, Pager};
pub use poll::{PollSchedule, Progress};
pub use proxy::ProxySettings;
pub use redact::Redactor;
pub use request::Request;
pub use response::Response;
pub use retry::RetryPolicy;
pub use tls::{Thumbprint, TlsSettings, any_certificate};
pub use token::{IssuedToken, LoginId, Token, TokenCache, TokenSource};
pub use transport::{HttpSettings, HyperTransport, ProxyConnector, Routed, Transport};
pub use url::BaseUrl;
