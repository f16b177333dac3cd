//! Trouble on the way between a client in process and the API, for simulations.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::store::Verb;

/// A request, as far as an interposer can see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The name of the client that asks.
    pub client: String,
    /// What it wants.
    pub verb: Verb,
    /// The group of the resource; empty for the core.
    pub group: String,
    /// The plural name of the resource; the path for what is no resource.
    pub resource: String,
    /// A part of it, such as `status`.
    pub subresource: Option<String>,
    /// The namespace, if the request is about one.
    pub namespace: Option<String>,
    /// The name, if the request is about one object.
    pub name: Option<String>,
    /// What was sent; null if nothing was.
    pub body: Value,
}

/// What becomes of a request before it reaches the API.
#[derive(Debug, Clone, PartialEq)]
pub enum Before {
    /// It goes on.
    Pass,
    /// The client gets this answer, and nothing happens.
    Refuse(Refusal),
    /// The connection breaks, and nothing happens.
    Disconnect,
    /// The client waits in vain, and the request is carried out so much later, whatever has become of the client.
    Late(Duration),
    /// A list is answered out of a cache that lags behind by this. Other requests go on.
    Stale(Duration),
}

/// What becomes of an answer after the request was carried out.
#[derive(Debug, Clone, PartialEq)]
pub enum After {
    /// The client gets it.
    Deliver,
    /// The connection breaks: what was done is done, but the client does not know.
    Lose,
    /// The client gets this instead, such as a gateway's 504: what was done is done all the same.
    Replace(Refusal),
}

/// What becomes of an event of a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum Passage {
    /// The client gets it.
    Deliver,
    /// The client gets it twice.
    Twice,
    /// The connection breaks before it.
    Disconnect,
    /// The watch ends with this error instead, such as a 410.
    Refuse(Refusal),
}

/// An event of a watch on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched<'a> {
    /// `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`.
    pub kind: &'a str,
    /// The object as the client will see it.
    pub object: &'a Value,
}

/// Stands between one client and the API. Each method may also wait, which delays; a watch stays in order, but it may
/// be as late as it likes.
#[async_trait]
pub trait Interposer: Send + Sync {
    /// Before a request is carried out.
    async fn before(&self, _call: &Call) -> Before {
        Before::Pass
    }

    /// After a request was carried out with this HTTP status, before the client knows.
    async fn after(&self, _call: &Call, _code: u16) -> After {
        After::Deliver
    }

    /// Before each event of a watch.
    async fn watched(&self, _call: &Call, _event: &Watched<'_>) -> Passage {
        Passage::Deliver
    }
}
