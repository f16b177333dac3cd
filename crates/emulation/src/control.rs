//! Controlling an emulated cloud from another process. Not part of any cloud's own API: no token, no rate limit, no
//! faults.

use std::future::ready;

use axum::Router;
use axum::extract::{Path, Request};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Answer, Controllable, Emulated, Grant, RequestError, uncounted_response};

/// More than any script has.
const BIGGEST_BODY: usize = 1024 * 1024;

/// A request to control a cloud.
#[derive(Debug)]
pub struct ControlRequest<'a> {
    /// The name in the path; empty if there is none.
    pub name: &'a str,
    body: &'a [u8],
}

impl ControlRequest<'_> {
    /// The body, as what it should be.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, RequestError> {
        serde_json::from_slice(self.body)
            .map_err(|error| RequestError::InvalidBody(error.to_string()))
    }
}

/// The answer to a request that controls a cloud: what it shows, or nothing if it was done.
pub type ControlResult = Result<Option<Answer>, RequestError>;

/// A control operation: `METHOD /control/path`, perhaps with `{name}` at its end, and what it does.
pub type ControlOperation<C> = (&'static str, fn(&C, &ControlRequest<'_>) -> ControlResult);

/// The answer of a control operation that shows something.
pub fn shown(value: &impl Serialize) -> ControlResult {
    Ok(Some(Answer::json(StatusCode::OK, value)))
}

/// What every cloud can be controlled by below `/control`, and what this one can besides.
///
/// | call | does |
/// |---|---|
/// | `GET`, `PUT /control/settings` | its settings; what is not given is the default |
/// | `GET`, `POST`, `DELETE /control/faults` | the script of faults |
/// | `GET`, `DELETE /control/calls`, `GET /control/log` | how often and in which order it was called |
/// | `PUT /control/projects/{name}`, `PUT`, `DELETE /control/tokens/{name}` | projects, and which token sees which |
pub fn control_router<C: Controllable>(cloud: &C, more: &[ControlOperation<C>]) -> Router {
    let common = common_operations::<C>();
    let operations = common.iter().chain(more);
    let router = operations.fold(Router::new(), |router, (place, act)| {
        let (method, path) = place.split_once(' ').unwrap_or(("GET", place));
        let filter = match method {
            "POST" => MethodFilter::POST,
            "PUT" => MethodFilter::PUT,
            "DELETE" => MethodFilter::DELETE,
            _ => MethodFilter::GET,
        };
        let (cloud, act) = (cloud.clone(), *act);
        let handler = move |name: Option<Path<String>>, request: Request| {
            let cloud = cloud.clone();
            async move { respond(&cloud, act, name, request).await }
        };
        router.route(path, on(filter, handler))
    });
    let cloud = cloud.clone();
    router.method_not_allowed_fallback(move |request: Request| {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        ready(rejected(&cloud, method, path))
    })
}

fn rejected<C: Emulated>(cloud: &C, method: Method, path: String) -> Response {
    let answer = cloud.error_answer(RequestError::MethodNotAllowed(method, path));
    uncounted_response(cloud, answer)
}

async fn respond<C: Emulated>(
    cloud: &C,
    act: fn(&C, &ControlRequest<'_>) -> ControlResult,
    name: Option<Path<String>>,
    request: Request,
) -> Response {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let body = axum::body::to_bytes(request.into_body(), BIGGEST_BODY).await;
    let body = body.map_err(|error| RequestError::InvalidBody(error.to_string()));
    let result = body.and_then(|body| {
        let request = ControlRequest {
            name: &name,
            body: &body,
        };
        act(cloud, &request)
    });
    let answer = match result {
        Ok(shown) => shown.unwrap_or_else(|| Answer::empty(StatusCode::NO_CONTENT)),
        Err(error) => cloud.error_answer(error),
    };
    uncounted_response(cloud, answer)
}

const fn common_operations<C: Controllable>() -> [ControlOperation<C>; 11] {
    [
        ("GET /control/settings", |cloud, _| shown(&cloud.settings())),
        ("PUT /control/settings", |cloud, request| {
            cloud.set_settings(request.read()?);
            Ok(None)
        }),
        ("GET /control/faults", |cloud, _| {
            shown(&cloud.faults().rules())
        }),
        ("POST /control/faults", |cloud, request| {
            cloud.faults().add(request.read()?);
            Ok(None)
        }),
        ("DELETE /control/faults", |cloud, _| {
            cloud.faults().clear();
            Ok(None)
        }),
        ("GET /control/calls", |cloud, _| {
            shown(&cloud.with_gateway(|gateway| gateway.log.counts().clone()))
        }),
        ("DELETE /control/calls", |cloud, _| {
            cloud.with_gateway(|gateway| gateway.log.reset());
            Ok(None)
        }),
        ("GET /control/log", |cloud, _| {
            shown(&cloud.with_gateway(|gateway| gateway.log.to_vec()))
        }),
        ("PUT /control/projects/{name}", |cloud, request| {
            cloud.add_project(request.name);
            Ok(None)
        }),
        ("PUT /control/tokens/{name}", |cloud, request| {
            let grant: Grant = request.read()?;
            cloud.grant(request.name, &grant.project, grant.permission);
            Ok(None)
        }),
        ("DELETE /control/tokens/{name}", |cloud, request| {
            cloud.revoke(request.name);
            Ok(None)
        }),
    ]
}
