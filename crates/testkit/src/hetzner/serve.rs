//! The APIs as a router, and on a socket.

use std::future::{pending, ready};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::routing::{MethodFilter, MethodRouter, on};
use cloudkeel_local_cloud::serving::{Limits, serve};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::operation::Operation;
use super::refusal::Refusal;
use super::{HetznerCloud, control, door};
use crate::simulated_cloud::InProcess;

impl HetznerCloud {
    /// The Cloud API below `/v1`, Robot below `/robot`, and `/control` to steer both.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for operation in Operation::ALL {
            router = router.route(operation.path(), self.route(*operation));
        }
        let answer = |cloud: Self, code: &'static str| {
            move |request: Request| {
                let (method, path) = (request.method(), request.uri().path());
                let refusal = Refusal::new(code, format!("there is no {method} {path} here"));
                ready(door::beside_the_door(&cloud, Err(refusal)))
            }
        };
        router
            .merge(control::router(self))
            .fallback(answer(self.clone(), "not_found"))
            .method_not_allowed_fallback(answer(self.clone(), "method_not_allowed"))
    }

    fn route(&self, operation: Operation) -> MethodRouter {
        let cloud = self.clone();
        let filter = match operation.method().as_str() {
            "POST" => MethodFilter::POST,
            "PUT" => MethodFilter::PUT,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        on(filter, move |params: RawPathParams, request: Request| {
            door::enter(cloud.clone(), operation, params, request)
        })
    }

    /// A way to reach it without sockets.
    pub fn transport(&self) -> InProcess {
        InProcess::new(self.router())
    }

    /// Serves everything on a listener until what is returned is dropped.
    pub fn serve(&self, listener: TcpListener) -> io::Result<Served> {
        let address = listener.local_addr()?;
        let router = self.router();
        let task = tokio::spawn(async move {
            // Serving ends with the task.
            serve(listener, router, Limits::default(), pending()).await;
        });
        Ok(Served { address, task })
    }

    /// Serves everything on a free port of this machine.
    pub async fn serve_on_loopback(&self) -> io::Result<Served> {
        self.serve(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?)
    }
}

/// An emulator on a socket. It stops listening when this is dropped.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The Cloud API: what `HCLOUD_ENDPOINT` is set to.
    pub fn api_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The Robot web service.
    pub fn robot_url(&self) -> String {
        format!("http://{}/robot", self.address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
