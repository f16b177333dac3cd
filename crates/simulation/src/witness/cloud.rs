//! What a manager must never ask of the cloud.

use std::fmt;

use bytes::Bytes;
use cloudkeel_provider_local::SERVICE_UID;
use cloudkeel_testkit::simulated_cloud::SimulatedCloud;
use cloudkeel_testkit::simulated_cloud::wire::{Balancer, NewBalancer, Route};
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};

use super::Seen;
use super::rules::{Broken, PROOF_ON_ITS_WAY, has_finalizer, without_lease};
use crate::action::Who;
use crate::furnish::{FOREIGN_NETWORK, OTHER_PROJECT};

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
    ours: Project,
    theirs: Project,
}

/// What stands in a project.
#[derive(Debug, Default, PartialEq)]
struct Project {
    balancers: Vec<Balancer>,
    routes: Vec<Route>,
}

impl Project {
    fn of(cloud: &SimulatedCloud, name: &str) -> Self {
        Self {
            balancers: cloud.balancers_of(name),
            routes: cloud.routes_of(name),
        }
    }
}

/// Our own project and that of others, as they are.
fn projects(cloud: &SimulatedCloud) -> (Project, Project) {
    let of = |name| Project::of(cloud, name);
    (of(SimulatedCloud::PROJECT), of(OTHER_PROJECT))
}

impl CloudBefore {
    pub(super) fn of(who: Who, request: &Request<Bytes>, cloud: &SimulatedCloud) -> Self {
        let change = request.method() != Method::GET;
        let (ours, theirs) = if change {
            projects(cloud)
        } else {
            <(Project, Project)>::default()
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
            ours,
            theirs,
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
    let (ours, theirs) = projects(cloud);
    let mut broken = Vec::new();
    // Whoever is shown something else than is there cannot know that it is.
    let is_shown = seen.reads_lie_until.is_none_or(|until| until < now);
    if done && is_shown && ours == before.ours {
        broken.push(("equal state means no change", before.to_string()));
    }
    broken.extend(project_of_others_touched(seen, before, &theirs, now));
    broken.extend(foreign_route_touched(before, &ours));
    for was in &before.ours.balancers {
        let is = ours.balancers.iter().find(|balancer| balancer.id == was.id);
        broken.extend(foreign_touched(was, is, before));
        match is {
            None => broken.extend(wanted_balancer_removed(seen, was, now)),
            Some(is) => broken.extend(emptied(seen, was, is, now)),
        }
    }
    broken
}

/// What stands in the project of others stays as it is. Who looked before the credential was swapped, and
/// acts after it, could not know.
fn project_of_others_touched(
    seen: &Seen,
    before: &CloudBefore,
    theirs: &Project,
    now: Timestamp,
) -> Option<Broken> {
    let swapped_just_now = seen
        .credential_swapped
        .is_some_and(|since| now.duration_since(since) <= PROOF_ON_ITS_WAY);
    (before.theirs != *theirs && !swapped_just_now).then(|| {
        let what = format!("{before} changed the project of somebody else");
        ("nothing foreign is touched", what)
    })
}

/// The routes of others stay as they are.
fn foreign_route_touched(before: &CloudBefore, ours: &Project) -> Option<Broken> {
    let foreign = |route: &&Route| route.destination.to_string() == FOREIGN_NETWORK;
    let was = before.ours.routes.iter().find(foreign);
    let is = ours.routes.iter().find(foreign);
    (was != is).then(|| {
        let what = format!("{before} changed the route to {FOREIGN_NETWORK}");
        ("nothing foreign is touched", what)
    })
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

#[cfg(test)]
mod tests {
    use cloudkeel_testkit::simulated_cloud::Settings;

    use super::*;
    use crate::furnish::furnish_cloud;

    /// Whether it is noticed that somebody did this while a manager changed something.
    fn is_noticed(seen: &Seen, meddle: impl FnOnce(&SimulatedCloud), now: Timestamp) -> bool {
        let cloud = SimulatedCloud::new(Settings::default());
        furnish_cloud(&cloud).unwrap();
        let request = Request::post("/v1/routes").body(Bytes::new()).unwrap();
        let before = CloudBefore::of(Who::A, &request, &cloud);
        meddle(&cloud);
        let broken = broken_by_answer(seen, &before, false, &cloud, now);
        broken
            .iter()
            .any(|(rule, _)| *rule == "nothing foreign is touched")
    }

    fn lose_their_route(cloud: &SimulatedCloud) {
        let theirs = cloud.routes_of(OTHER_PROJECT);
        cloud.drop_route(theirs[0].id).unwrap();
    }

    #[test]
    fn what_others_have_is_watched_over_in_both_projects() {
        let (seen, now) = (Seen::default(), Timestamp::UNIX_EPOCH);
        assert!(!is_noticed(&seen, |_| {}, now));
        assert!(is_noticed(&seen, lose_their_route, now));
        let lose_the_foreign_route = |cloud: &SimulatedCloud| {
            cloud.drop_route(cloud.routes()[0].id).unwrap();
        };
        assert!(is_noticed(&seen, lose_the_foreign_route, now));
    }

    #[test]
    fn who_looked_before_the_credential_was_swapped_could_not_know() {
        let swapped = Timestamp::UNIX_EPOCH;
        let seen = Seen {
            credential_swapped: Some(swapped),
            ..Seen::default()
        };
        for (seconds, is_told) in [(1, false), (11, true)] {
            let now = swapped + SignedDuration::from_secs(seconds);
            let told = is_noticed(&seen, lose_their_route, now);
            assert_eq!(told, is_told, "after {seconds} s");
        }
    }
}
