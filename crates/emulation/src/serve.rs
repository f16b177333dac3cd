//! The API of a cloud as a router, and on a socket.

use std::future::{pending, ready};
use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::Method;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::door::enter;
use super::serving::{Limits, serve};
use super::{ApiOperation as _, Complaint, Emulated, beside_the_door};

/// Every operation of a cloud at its place, and complaints everywhere else.
pub fn api_router<C: Emulated>(cloud: &C) -> Router {
    let operations = <C::Operation as super::ApiOperation>::ALL.iter();
    let router = operations.fold(Router::new(), |router, operation| {
        router.route(operation.path(), route(cloud, *operation))
    });
    let lost = |cloud: C, complaint: fn(Method, String) -> Complaint| {
        move |request: Request| {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let answer = cloud.complain(complaint(method, path));
            ready(beside_the_door(&cloud, answer))
        }
    };
    router
        .fallback(lost(cloud.clone(), Complaint::NoSuchPath))
        .method_not_allowed_fallback(lost(cloud.clone(), Complaint::NoSuchMethod))
}

fn route<C: Emulated>(cloud: &C, operation: C::Operation) -> MethodRouter {
    let cloud = cloud.clone();
    let filter = match operation.method().as_str() {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "PATCH" => MethodFilter::PATCH,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    };
    on(filter, move |params: RawPathParams, request: Request| {
        enter(cloud.clone(), operation, params, request)
    })
}

/// A cloud on a socket. It stops listening when this is dropped.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    /// Serves a router on a listener.
    pub fn start(listener: TcpListener, router: Router) -> io::Result<Self> {
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

    /// The address as a URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
