//! The API of a cloud as a router, and on a socket.

use std::collections::BTreeMap;
use std::future::{pending, ready};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, any, on};
use http::Method;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::cloud::params_of;
use super::gateway::handle;
use super::serving::{Limits, serve};
use super::{ApiOperation, Call, Emulated, RequestError, uncounted_response};

/// More than any honest request carries.
const BIGGEST_BODY: usize = 16 * 1024 * 1024;

/// Every operation of a cloud at its path, and errors in the API's form everywhere else.
pub fn api_router<C: Emulated>(cloud: &C) -> Router {
    let mut router = Router::new();
    let mut commands = BTreeMap::<&str, Vec<C::Operation>>::new();
    for operation in C::Operation::ALL {
        if operation.command().is_some() {
            commands
                .entry(operation.path())
                .or_default()
                .push(*operation);
        } else {
            router = router.route(operation.path(), route(cloud, *operation));
        }
    }
    for (path, operations) in commands {
        router = router.route(path, command_route(cloud, operations));
    }
    let unknown = |cloud: C, error: fn(Method, String) -> RequestError| {
        move |request: Request| {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let answer = cloud.error_answer(error(method, path));
            ready(uncounted_response(&cloud, answer))
        }
    };
    router
        .fallback(unknown(cloud.clone(), RequestError::PathNotFound))
        .method_not_allowed_fallback(unknown(cloud.clone(), RequestError::MethodNotAllowed))
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
        let cloud = cloud.clone();
        async move { handle(cloud, received(operation, &params, request).await).await }
    })
}

/// One path for many operations.
fn command_route<C: Emulated>(cloud: &C, operations: Vec<C::Operation>) -> MethodRouter {
    let cloud = cloud.clone();
    any(move |params: RawPathParams, request: Request| {
        let (cloud, operations) = (cloud.clone(), operations.clone());
        async move { command(cloud, &operations, &params, request).await }
    })
}

async fn command<C: Emulated>(
    cloud: C,
    operations: &[C::Operation],
    params: &RawPathParams,
    request: Request,
) -> Response {
    let Some(first) = operations.first() else {
        return uncounted_response(
            &cloud,
            cloud.error_answer(RequestError::UnknownCommand(String::new())),
        );
    };
    let mut call = received(*first, params, request).await;
    let given = params_of(&call.query, &call.headers, &call.body);
    let fits = |operation: &&C::Operation| {
        let command = operation.command();
        command.is_some_and(|(param, value)| given.get(param) == Some(value))
    };
    if let Some(operation) = operations.iter().find(fits) {
        call.operation = *operation;
        return match handle(cloud, call).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
    }
    let named = first.command().and_then(|(param, _)| given.get(param));
    let error = RequestError::UnknownCommand(named.unwrap_or_default().to_owned());
    uncounted_response(&cloud, cloud.error_answer(error))
}

async fn received<O>(operation: O, params: &RawPathParams, request: Request) -> Call<O> {
    let params = params.iter();
    let path_params: Vec<_> = params
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let (head, body) = request.into_parts();
    Call {
        operation,
        resource: path_params.last().map(|(_, value)| value.clone()),
        path_params,
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        // A body that breaks off does not parse either, and is refused as such.
        body: axum::body::to_bytes(body, BIGGEST_BODY)
            .await
            .unwrap_or_default(),
    }
}

/// A router on a socket. It stops listening when this is dropped.
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

    /// Serves a router on a free port of the loopback interface.
    pub async fn on_loopback(router: Router) -> io::Result<Self> {
        Self::start(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?, router)
    }

    /// The address on which it listens.
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
