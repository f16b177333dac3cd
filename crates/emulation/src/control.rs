//! Steering a cloud from another process. Not part of any cloud's own API: no token, no rate limit, no
//! faults.

use axum::Router;
use axum::extract::{Path, Request};
use axum::response::Response;
use axum::routing::any;
use http::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Answer, Complaint, Emulated, Grant, Steerable, beside_the_door};

/// More than any script has.
const BIGGEST_BODY: usize = 1024 * 1024;

/// One steering wheel: what is to be done, to what, with which body.
pub struct Steering<'a> {
    /// What is to be done.
    pub method: &'a Method,
    /// The name in the path; empty if there is none.
    pub name: &'a str,
    path: &'a str,
    body: &'a [u8],
}

/// Turns one steering wheel.
pub type Steer<C> = fn(&C, &Steering<'_>) -> Result<Answer, Complaint>;

impl Steering<'_> {
    /// The body, as what it should be.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Complaint> {
        serde_json::from_slice(self.body).map_err(|error| Complaint::Unreadable(error.to_string()))
    }

    /// Why this wheel does not turn that way.
    pub fn cannot(&self) -> Complaint {
        Complaint::NoSuchMethod(self.method.clone(), self.path.to_owned())
    }

    /// What somebody wanted to see.
    pub fn shown(value: &impl Serialize) -> Result<Answer, Complaint> {
        Ok(Answer::json(StatusCode::OK, value))
    }

    /// It is done, and there is nothing to say.
    pub fn done() -> Result<Answer, Complaint> {
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}

/// What every cloud can be told below `/control`, and what this one can be told besides. A path may end
/// in `{name}`.
///
/// | call | does |
/// |---|---|
/// | `GET`, `PUT /control/settings` | how it behaves |
/// | `GET`, `POST`, `DELETE /control/faults` | the script of faults |
/// | `GET`, `DELETE /control/calls`, `GET /control/log` | how often and in which order it was called |
/// | `PUT /control/projects/{name}`, `PUT`, `DELETE /control/tokens/{name}` | projects, and who sees which |
pub fn control_router<C: Steerable>(cloud: &C, more: &[(&str, Steer<C>)]) -> Router {
    let own: [(&str, Steer<C>); 6] = [
        ("/control/settings", settings),
        ("/control/faults", faults),
        ("/control/calls", calls),
        ("/control/log", log),
        ("/control/projects/{name}", projects),
        ("/control/tokens/{name}", tokens),
    ];
    let wheels = own.iter().chain(more);
    wheels.fold(Router::new(), |router, (path, steer)| {
        let (cloud, steer) = (cloud.clone(), *steer);
        let handler = move |name: Option<Path<String>>, request: Request| {
            let cloud = cloud.clone();
            async move { handle(&cloud, steer, name, request).await }
        };
        router.route(path, any(handler))
    })
}

async fn handle<C: Emulated>(
    cloud: &C,
    steer: Steer<C>,
    name: Option<Path<String>>,
    request: Request,
) -> Response {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let body = axum::body::to_bytes(request.into_body(), BIGGEST_BODY).await;
    let answer = body
        .map_err(|error| Complaint::Unreadable(error.to_string()))
        .and_then(|body| {
            let steering = Steering {
                method: &method,
                name: &name,
                path: &path,
                body: &body,
            };
            steer(cloud, &steering)
        });
    let answer = answer.unwrap_or_else(|complaint| cloud.complain(complaint));
    beside_the_door(cloud, answer)
}

/// `GET` shows; `PUT` sets what is given and leaves the rest at its default.
fn settings<C: Steerable>(cloud: &C, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::GET => return Steering::shown(&cloud.settings()),
        Method::PUT => cloud.set_settings(steering.read()?),
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}

/// `GET` shows the script, `POST` adds a line, `DELETE` clears it.
fn faults<C: Steerable>(cloud: &C, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::GET => return Steering::shown(&cloud.faults().rules()),
        Method::POST => {
            cloud.faults().add(steering.read()?);
        }
        Method::DELETE => cloud.faults().clear(),
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}

/// `GET` shows how often what was called; `DELETE` starts afresh, the log included.
fn calls<C: Steerable>(cloud: &C, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::GET => {
            let counts = cloud.with_door(|door| door.log.counts().clone());
            return Steering::shown(&counts);
        }
        Method::DELETE => cloud.with_door(|door| door.log.reset()),
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}

/// `GET` shows every call in order.
fn log<C: Steerable>(cloud: &C, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::GET => Steering::shown(&cloud.with_door(|door| door.log.to_vec())),
        _ => Err(steering.cannot()),
    }
}

/// `PUT` adds a project.
fn projects<C: Steerable>(cloud: &C, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::PUT => cloud.add_project(steering.name),
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}

/// `PUT` lets a token into a project, `DELETE` makes it worthless.
fn tokens<C: Steerable>(cloud: &C, steering: &Steering<'_>) -> Result<Answer, Complaint> {
    match *steering.method {
        Method::PUT => {
            let grant: Grant = steering.read()?;
            cloud.grant(steering.name, &grant.project, grant.permission);
        }
        Method::DELETE => cloud.revoke(steering.name),
        _ => return Err(steering.cannot()),
    }
    Steering::done()
}
