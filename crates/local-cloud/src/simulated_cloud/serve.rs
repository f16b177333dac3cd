//! The REST API as a router, and on a socket.

use std::io;

use axum::Router;
use axum::response::Response;
use cloudkeel_emulation::{
    InProcess, Served, api_router, bearer_of, control_router, uncounted_response,
};
use http::HeaderMap;
use serde::Serialize;
use tokio::net::TcpListener;

use super::SimulatedCloud;
use super::operation::Operation;
use super::refusal::Refusal;
use super::rest::{ok, refused};

impl SimulatedCloud {
    /// The REST API.
    pub fn router(&self) -> Router {
        api_router(self)
    }

    /// The REST API, and `/control/*` to control the cloud from another process.
    pub fn router_with_control(&self) -> Router {
        self.router().merge(control_router(self, &[]))
    }

    /// Whether the token of a request may do something like this operation.
    pub fn admit(&self, headers: &HeaderMap, like: Operation) -> Result<(), Refusal> {
        let token = bearer_of(headers);
        self.with(|state, _| state.project_of(token, like))?;
        Ok(())
    }

    /// The answer to a question that is not in this API, in the form of those that are.
    pub fn beside<T: Serialize>(&self, answer: Result<T, Refusal>) -> Response {
        let answer = match answer {
            Ok(value) => ok(&value),
            Err(refusal) => refused(&refusal),
        };
        uncounted_response(self, answer)
    }

    /// A transport for the provider that needs no sockets.
    pub fn transport(&self) -> InProcess {
        InProcess::new(self.router())
    }

    /// The same with `/control/*`.
    pub fn transport_with_control(&self) -> InProcess {
        InProcess::new(self.router_with_control())
    }

    /// Serves the REST API on a listener until what is returned is dropped.
    pub fn serve(&self, listener: TcpListener) -> io::Result<Served> {
        Served::start(listener, self.router())
    }

    /// The same with `/control/*`.
    pub fn serve_with_control(&self, listener: TcpListener) -> io::Result<Served> {
        Served::start(listener, self.router_with_control())
    }

    /// Serves the REST API on a free port of the loopback interface.
    pub async fn serve_on_loopback(&self) -> io::Result<Served> {
        Served::on_loopback(self.router()).await
    }
}
