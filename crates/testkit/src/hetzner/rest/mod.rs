//! What each call of the Cloud API does. Plain functions over a project: no I/O, no waiting.

mod balancers;
mod body;
mod certificates;
mod labels;
mod lists;
mod names;
mod networks;
mod page;
mod places;
mod query;
mod render;
mod routes;
mod selector;
mod servers;
mod services;
mod targets;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) use self::names::check_free;
pub(super) use self::query::page_of;
use super::operation::Operation;
use super::refusal::Refusal;
use super::world::Scene;
use super::world::actions::Action;

/// One call, after it was let in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) operation: Operation,
    /// The ID in the path.
    pub(super) resource: Option<&'a str>,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
}

impl Call<'_> {
    /// The ID in the path. What is no number is the ID of nothing.
    fn id(&self, kind: &str) -> Result<u64, Refusal> {
        let text = self.resource.unwrap_or_default();
        text.parse().map_err(|_| Refusal::not_found(kind, text))
    }
}

/// What the cloud says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// Nothing at all with 204.
    pub(super) body: Option<Value>,
}

impl Answer {
    pub(super) const fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body),
        }
    }

    const fn created(body: Value) -> Self {
        Self {
            status: StatusCode::CREATED,
            body: Some(body),
        }
    }

    pub(super) const fn nothing() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: None,
        }
    }
}

impl From<Answer> for cloudkeel_emulation::Answer {
    fn from(answer: Answer) -> Self {
        match answer.body {
            Some(body) => Self::json(answer.status, &body),
            None => Self::empty(answer.status),
        }
    }
}

/// A moment as the API writes it.
pub(super) fn wire_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

impl Scene<'_> {
    /// The answer to a call that began an action.
    fn began(&self, action: &Action) -> Answer {
        Answer::created(json!({"action": action.wire(self.now.instant)}))
    }
}

/// Carries out a call.
pub(super) fn perform(scene: &mut Scene<'_>, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (_, place) = call.operation.path().split_at("/v1/".len());
    let kind = place.split('/').next().unwrap_or_default();
    match (kind, call.operation.is_mutating()) {
        ("servers", true) => scene.change_server(call),
        ("networks", true) => scene.change_network(call),
        ("load_balancers", true) => scene.change_balancer(call),
        ("certificates", true) => scene.change_certificate(call),
        _ => scene.look(call),
    }
}
