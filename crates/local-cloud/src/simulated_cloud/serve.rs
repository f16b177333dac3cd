//! The REST API as a router, and on a socket.

use std::future::{pending, ready};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use cloudkeel_provider_local::wire::ErrorCode;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::operation::Operation;
use super::refusal::Refusal;
use super::rest::Answer;
use super::tokens::token_of;
use super::transport::InProcess;
use super::{SimulatedCloud, control, door};
use crate::serving::{Limits, serve};

impl SimulatedCloud {
    /// The REST API.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for operation in Operation::ALL {
            router = router.route(operation.path(), self.route(operation));
        }
        let cloud = self.clone();
        // Not the code `not_found`: that a path is wrong says nothing about what it should lead to.
        let lost = move |request: Request| {
            let (method, path) = (request.method(), request.uri().path());
            let refusal = Refusal::new(
                StatusCode::NOT_FOUND,
                ErrorCode::Invalid,
                format!("there is no {method} {path} in this API"),
            );
            ready(door::beside_the_door(&cloud, Err(refusal)))
        };
        router
            .fallback(lost.clone())
            .method_not_allowed_fallback(lost)
    }

    /// The REST API, and `/control/*` to steer the cloud from another process.
    pub fn router_with_control(&self) -> Router {
        self.router().merge(control::router(self))
    }

    /// Whether the token of a request may do something like this operation.
    pub fn admit(&self, headers: &HeaderMap, like: Operation) -> Result<(), Refusal> {
        let token = token_of(headers);
        self.with(|world, _| world.tokens.admit(token, like))?;
        Ok(())
    }

    /// The answer to a question that is not in this API, in the form of those that are.
    pub fn beside<T: Serialize>(&self, answer: Result<T, Refusal>) -> Response {
        let answer = answer.and_then(|value| Answer::ok(&value));
        door::beside_the_door(self, answer)
    }

    fn route(&self, operation: Operation) -> MethodRouter {
        let cloud = self.clone();
        let filter = match operation.method().as_str() {
            "POST" => MethodFilter::POST,
            "PUT" => MethodFilter::PUT,
            "PATCH" => MethodFilter::PATCH,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        on(filter, move |params: RawPathParams, request: Request| {
            door::enter(cloud.clone(), operation, params, request)
        })
    }

    /// A way for the provider to reach the cloud without sockets.
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

    /// Serves the REST API on a free port of this machine.
    pub async fn serve_on_loopback(&self) -> io::Result<Served> {
        self.serve(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)
    }
}

/// A cloud on a socket. It stops listening when this is dropped.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    fn start(listener: TcpListener, router: Router) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // Serving ends with the task.
            serve(listener, router, Limits::default(), pending()).await;
        });
        Ok(Self { address, task })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of the REST API.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
