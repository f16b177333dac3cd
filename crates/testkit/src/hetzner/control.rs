//! Steering the emulator from another process. Not part of any real API: no token, no rate limit,
//! no faults.

use axum::Router;
use axum::extract::{Path, Request};
use axum::response::Response;
use axum::routing::any;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::HetznerCloud;
use super::door::beside_the_door;
use super::refusal::Refusal;
use super::rest::Answer;
use super::world::{RobotServer, ServerStatus};
use crate::simulated_cloud::Grant;

/// More than any script has.
const BIGGEST_BODY: usize = 1024 * 1024;

pub(super) fn router(cloud: &HetznerCloud) -> Router {
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
        .route("/control/servers/{name}", route(servers))
        .route("/control/health/{name}", route(health))
        .route("/control/robot/login", route(robot_login))
        .route("/control/robot/servers", route(robot_servers))
        .route("/control/robot/servers/{name}", route(robot_server))
}

/// One steering wheel: what to do, to what, with which body.
type Steer = fn(&HetznerCloud, &Method, &str, &[u8]) -> Result<Answer, Refusal>;

async fn handle(
    cloud: &HetznerCloud,
    steer: Steer,
    name: Option<Path<String>>,
    request: Request,
) -> Response {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let method = request.method().clone();
    let body = axum::body::to_bytes(request.into_body(), BIGGEST_BODY).await;
    let answer = body
        .map_err(|error| Refusal::new("json_error", error.to_string()))
        .and_then(|body| steer(cloud, &method, &name, &body));
    beside_the_door(cloud, answer)
}

/// `GET` shows; `PUT` sets what is given and leaves the rest at its default.
fn settings(
    cloud: &HetznerCloud,
    method: &Method,
    _: &str,
    body: &[u8],
) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => return shown(&cloud.settings()),
        Method::PUT => {
            let wanted = read(body)?;
            cloud.change_settings(|settings| *settings = wanted);
        }
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `GET` shows the script, `POST` adds a line, `DELETE` clears it.
fn faults(cloud: &HetznerCloud, method: &Method, _: &str, body: &[u8]) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => return shown(&cloud.faults().rules()),
        Method::POST => {
            cloud.faults().add(read(body)?);
        }
        Method::DELETE => cloud.faults().clear(),
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `GET` shows how often what was called; `DELETE` starts afresh, the log included.
fn calls(cloud: &HetznerCloud, method: &Method, _: &str, _: &[u8]) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => {
            let calls = cloud.calls();
            return shown(&json!({
                "reads": calls.reads(),
                "mutations": calls.mutations(),
                "byOperation": calls.iter().map(|(operation, count)| {
                    (operation.to_string(), count)
                }).collect::<std::collections::BTreeMap<_, _>>(),
            }));
        }
        Method::DELETE => cloud.reset_calls(),
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `GET` shows every call in order.
fn log(cloud: &HetznerCloud, method: &Method, _: &str, _: &[u8]) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => shown(&cloud.call_log()),
        _ => Err(cannot(method)),
    }
}

/// `PUT` adds a project.
fn projects(
    cloud: &HetznerCloud,
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
    cloud: &HetznerCloud,
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

/// `PUT` sets the status of a server at once, `DELETE` makes it vanish at once.
fn servers(
    cloud: &HetznerCloud,
    method: &Method,
    name: &str,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let id = name
        .parse()
        .map_err(|_| Refusal::not_found("server", name))?;
    match *method {
        Method::PUT => {
            let status: ServerStatus = read(body)?;
            cloud.set_status(id, status)?;
        }
        Method::DELETE => cloud.destroy_server(id)?,
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `PUT` says how healthy a server (by ID) or an address is, `DELETE` lets its state speak again.
fn health(
    cloud: &HetznerCloud,
    method: &Method,
    name: &str,
    body: &[u8],
) -> Result<Answer, Refusal> {
    match *method {
        Method::PUT => {
            let status: String = read(body)?;
            cloud.set_health(name, Some(&status));
        }
        Method::DELETE => cloud.set_health(name, None),
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `PUT` sets the user and the password of Robot: `["user", "password"]`.
fn robot_login(
    cloud: &HetznerCloud,
    method: &Method,
    _: &str,
    body: &[u8],
) -> Result<Answer, Refusal> {
    match *method {
        Method::PUT => {
            let (user, password): (String, String) = read(body)?;
            cloud.set_robot_login(&user, &password);
        }
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `GET` shows the dedicated servers, `POST` adds or replaces one.
fn robot_servers(
    cloud: &HetznerCloud,
    method: &Method,
    _: &str,
    body: &[u8],
) -> Result<Answer, Refusal> {
    match *method {
        Method::GET => return shown(&cloud.robot_servers()),
        Method::POST => {
            let server: RobotServer = read(body)?;
            cloud.add_robot_server(server);
        }
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

/// `DELETE` removes a dedicated server.
fn robot_server(
    cloud: &HetznerCloud,
    method: &Method,
    name: &str,
    _: &[u8],
) -> Result<Answer, Refusal> {
    let number = name
        .parse()
        .map_err(|_| Refusal::not_found("server", name))?;
    match *method {
        Method::DELETE => cloud.remove_robot_server(number),
        _ => return Err(cannot(method)),
    }
    Ok(Answer::nothing())
}

fn shown(value: &impl Serialize) -> Result<Answer, Refusal> {
    let value = serde_json::to_value(value);
    value
        .map(Answer::ok)
        .map_err(|error| Refusal::new("server_error", error.to_string()))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::new("json_error", error.to_string()))
}

fn cannot(method: &Method) -> Refusal {
    Refusal::new(
        "method_not_allowed",
        format!("this cannot be done with {method}"),
    )
}
