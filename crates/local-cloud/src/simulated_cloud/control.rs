//! Steering the cloud from another process. Not part of the cloud's own API: no token, no rate
//! limit, no faults.

use axum::Router;
use axum::extract::{Path, Request};
use axum::response::Response;
use axum::routing::any;
use http::Method;
use serde::de::DeserializeOwned;

use super::SimulatedCloud;
use super::door::beside_the_door;
use super::refusal::Refusal;
use super::rest::Answer;
use super::tokens::Grant;

/// More than any script has.
const BIGGEST_BODY: usize = 1024 * 1024;

pub(super) fn router(cloud: &SimulatedCloud) -> Router {
    let route = |steer: Steer| {
        let cloud = cloud.clone();
        let handler = move |name: Option<Path<String>>, request: Request| {
            let cloud = cloud.clone();
            async move { handle(&cloud, steer, name, request).await }
        };
        any(handler)
    };
    Router::new()
        .route("/control/settings", route(settings))
        .route("/control/faults", route(faults))
        .route("/control/calls", route(calls))
        .route("/control/log", route(log))
        .route("/control/projects/{name}", route(projects))
        .route("/control/tokens/{name}", route(tokens))
}

/// One steering wheel: what to do, to what, with which body.
type Steer = fn(&SimulatedCloud, &Method, &str, &[u8]) -> Result<Answer, Refusal>;

async fn handle(
    cloud: &SimulatedCloud,
    steer: Steer,
    name: Option<Path<String>>,
    request: Request,
) -> Response {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let method = request.method().clone();
    let body = axum::body::to_bytes(request.into_body(), BIGGEST_BODY).await;
    let answer = body
        .map_err(|error| Refusal::unreadable(error.to_string()))
        .and_then(|body| steer(cloud, &method, &name, &body));
    beside_the_door(cloud, answer)
}

/// `GET` shows; `PUT` sets what is given and leaves the rest at its default.
fn settings(
    cloud: &SimulatedCloud,
    method: &Method,
    _: &str,
    body: &[u8],
) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => return Answer::ok(&cloud.settings()),
        Method::PUT => {
            let wanted = read(body)?;
            cloud.change_settings(|settings| *settings = wanted);
        }
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `GET` shows the script, `POST` adds a line, `DELETE` clears it.
fn faults(
    cloud: &SimulatedCloud,
    method: &Method,
    _: &str,
    body: &[u8],
) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => return Answer::ok(&cloud.faults().rules()),
        Method::POST => {
            cloud.faults().add(read(body)?);
        }
        Method::DELETE => cloud.faults().clear(),
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `GET` shows how often what was called; `DELETE` starts afresh, the log included.
fn calls(cloud: &SimulatedCloud, method: &Method, _: &str, _: &[u8]) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => return Answer::ok(&cloud.calls()),
        Method::DELETE => cloud.reset_calls(),
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `GET` shows every call in order.
fn log(cloud: &SimulatedCloud, method: &Method, _: &str, _: &[u8]) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => Answer::ok(&cloud.call_log()),
        _ => Err(cannot(method)),
    }
}

/// `PUT` adds a project.
fn projects(
    cloud: &SimulatedCloud,
    method: &Method,
    name: &str,
    _: &[u8],
) -> Result<Answer, Refusal> {
    match *method {
        Method::PUT => cloud.add_project(name),
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `PUT` lets a token into a project, `DELETE` makes it worthless.
fn tokens(
    cloud: &SimulatedCloud,
    method: &Method,
    name: &str,
    body: &[u8],
) -> Result<Answer, Refusal> {
    match *method {
        Method::PUT => {
            let grant: Grant = read(body)?;
            cloud.grant(name, &grant.project, grant.permission);
        }
        Method::DELETE => cloud.revoke(name),
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::unreadable(error.to_string()))
}

fn cannot(method: &Method) -> Refusal {
    Refusal::unreadable(format!("this cannot be done with {method}"))
}
