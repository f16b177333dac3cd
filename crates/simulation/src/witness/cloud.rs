//! What a manager must never ask of the cloud.

use std::fmt;

use bytes::Bytes;
use cloudkeel_provider_local::SERVICE_UID;
use cloudkeel_testkit::simulated_cloud::SimulatedCloud;
use cloudkeel_testkit::simulated_cloud::wire::{Balancer, NewBalancer, Route};
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};

use super::Seen;
use super::rules::{Broken, has_finalizer, without_lease};
use crate::action::Who;

/// Whoever sees the cluster at all has seen a change by then, whatever went wrong with his watch.
const SURELY_SEEN: SignedDuration = SignedDuration::from_secs(240);

/// The Service that a balancer was made for.
pub(super) fn service_of(balancer: &Balancer) -> Option<&str> {
    balancer.labels.get(SERVICE_UID).map(String::as_str)
}

/// A call, and the cloud before it.
pub(crate) struct CloudBefore {
    who: Who,
    method: Method,
    path: String,
    /// The Service for which a balancer is to be made.
    makes_for: Option<String>,
    balancers: Vec<Balancer>,
    routes: Vec<Route>,
}

impl CloudBefore {
    pub(super) fn of(who: Who, request: &Request<Bytes>, cloud: &SimulatedCloud) -> Self {
        let change = request.method() != Method::GET;
        let (balancers, routes) = if change {
            (cloud.balancers(), cloud.routes())
        } else {
            (Vec::new(), Vec::new())
        };
        let path = request.uri().path().to_owned();
        let makes = request.method() == Method::POST && path == "/v1/balancers";
        let new = makes.then(|| serde_json::from_slice::<NewBalancer>(request.body()).ok());
        Self {
            who,
            method: request.method().clone(),
            path,
            makes_for: new
                .flatten()
                .and_then(|new| new.labels.get(SERVICE_UID).cloned()),
            balancers,
            routes,
        }
    }

    pub(super) fn is_change(&self) -> bool {
        self.method != Method::GET
    }
}

impl fmt::Display for CloudBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, method, path) = (self.who.name(), &self.method, &self.path);
        write!(f, "{who}: cloud {method} {path}")
    }
}

/// Every rule that is broken already by asking.
pub(super) fn broken_by_asking(seen: &Seen, before: &CloudBefore, now: Timestamp) -> Vec<Broken> {
    if !before.is_change() {
        return Vec::new();
    }
    let mut broken = Vec::new();
    broken.extend(without_lease(seen, before.who, now, &before.to_string()));
    if let Some(uid) = &before.makes_for {
        let service = seen.mirror.service(uid);
        let kept = service.is_some_and(|kept| has_finalizer(&kept.object));
        if service.is_some() && !kept {
            let what = format!("{before} for Service {uid}, which has no finalizer");
            broken.push(("the finalizer comes before the balancer", what));
        }
    }
    broken
}

/// Every rule that is broken by what came of it.
pub(super) fn broken_by_answer(
    seen: &Seen,
    before: &CloudBefore,
    done: bool,
    cloud: &SimulatedCloud,
    now: Timestamp,
) -> Vec<Broken> {
    if !before.is_change() {
        return Vec::new();
    }
    let (balancers, routes) = (cloud.balancers(), cloud.routes());
    let mut broken = Vec::new();
    // Whoever is shown something else than is there cannot know that it is.
    let is_shown = seen.reads_lie_until.is_none_or(|until| until < now);
    if done && is_shown && balancers == before.balancers && routes == before.routes {
        broken.push(("equal state means no change", before.to_string()));
    }
    for was in &before.balancers {
        let is = balancers.iter().find(|balancer| balancer.id == was.id);
        broken.extend(foreign_touched(was, is, before));
        match is {
            None => broken.extend(wanted_balancer_removed(seen, was, now)),
            Some(is) => broken.extend(emptied(seen, was, is, now)),
        }
    }
    broken
}

/// The balancers of others stay as they are.
fn foreign_touched(was: &Balancer, is: Option<&Balancer>, before: &CloudBefore) -> Option<Broken> {
    let foreign = service_of(was).is_none_or(|uid| uid.starts_with("foreign"));
    (foreign && is != Some(was)).then(|| ("nothing foreign is touched", before.to_string()))
}

/// A balancer goes only if nobody wants it.
fn wanted_balancer_removed(seen: &Seen, was: &Balancer, now: Timestamp) -> Option<Broken> {
    let uid = service_of(was)?;
    let since = seen.mirror.service(uid)?.wanted_since?;
    (now.duration_since(since) > SURELY_SEEN).then(|| {
        let what = format!("balancer {} of Service {uid} was removed", was.id);
        ("a wanted balancer stays", what)
    })
}

/// A balancer with Nodes to send traffic to is never emptied.
fn emptied(seen: &Seen, was: &Balancer, is: &Balancer, now: Timestamp) -> Option<Broken> {
    if was.targets.is_empty() || !is.targets.is_empty() {
        return None;
    }
    let nodes = seen.mirror.nodes.values();
    let serving = nodes.filter_map(|kept| kept.wanted_since);
    let sure = serving.filter(|since| now.duration_since(*since) > SURELY_SEEN);
    let count = sure.count();
    (count > 0).then(|| {
        let what = format!(
            "balancer {} was emptied while {count} Nodes could serve",
            is.id
        );
        ("a balancer is never emptied by accident", what)
    })
}
