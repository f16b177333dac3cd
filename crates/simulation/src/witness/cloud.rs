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
use crate::accounts::{Account, Clouds};
use crate::action::Who;
use crate::furnish::{FOREIGN_NETWORK, OTHER_PROJECT};

/// Whoever sees the cluster at all has seen a change by then, whatever went wrong with his watch.
const SURELY_SEEN: SignedDuration = SignedDuration::from_secs(240);

/// The Service that a balancer was made for.
pub(super) fn service_of(balancer: &Balancer) -> Option<&str> {
    balancer.labels.get(SERVICE_UID).map(String::as_str)
}

/// Who calls, with the token that the configuration has for an account, and the account that it reaches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    pub(super) who: Who,
    pub(super) account: Account,
    pub(super) reached: Account,
}

/// A call, and the cloud before it.
pub(crate) struct CloudBefore {
    sender: Sender,
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
    pub(super) fn of(sender: Sender, request: &Request<Bytes>, clouds: &Clouds) -> Self {
        let change = request.method() != Method::GET;
        let (ours, theirs) = if change {
            projects(clouds.of(sender.reached))
        } else {
            <(Project, Project)>::default()
        };
        let path = request.uri().path().to_owned();
        let makes = request.method() == Method::POST && path == "/v1/balancers";
        let new = makes.then(|| serde_json::from_slice::<NewBalancer>(request.body()).ok());
        Self {
            sender,
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
        let (who, method, path) = (self.sender.who.name(), &self.method, &self.path);
        let place = match (self.sender.account, self.sender.reached) {
            (Account::First, Account::First) => "",
            (Account::Second, Account::Second) => " second",
            (Account::First, Account::Second) => " first, which is second,",
            (Account::Second, Account::First) => " second, which is first,",
        };
        write!(f, "{who}: cloud{place} {method} {path}")
    }
}

/// Every rule that is broken already by asking.
pub(super) fn broken_by_asking(seen: &Seen, before: &CloudBefore, now: Timestamp) -> Vec<Broken> {
    if !before.is_change() {
        return Vec::new();
    }
    let mut broken = Vec::new();
    broken.extend(without_lease(
        seen,
        before.sender.who,
        now,
        &before.to_string(),
    ));
    if let Some(uid) = &before.makes_for {
        if before.sender.account != Account::First {
            broken.push(("a Service is served by its cloud", before.to_string()));
        }
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
    clouds: &Clouds,
    now: Timestamp,
) -> Vec<Broken> {
    if !before.is_change() {
        return Vec::new();
    }
    let (ours, theirs) = projects(clouds.of(before.sender.reached));
    let mut broken = Vec::new();
    // Whoever is shown something else than is there cannot know that it is.
    let is_shown = seen.reads_lie_until.is_none_or(|until| until < now);
    if done && is_shown && ours == before.ours {
        broken.push(("equal state means no change", before.to_string()));
    }
    broken.extend(project_of_others_touched(seen, before, &theirs, now));
    broken.extend(other_account_touched(seen, before, done, now));
    broken.extend(foreign_route_touched(before, &ours));
    for was in &before.ours.balancers {
        let is = ours.balancers.iter().find(|balancer| balancer.id == was.id);
        broken.extend(foreign_touched(was, is, before));
        match is {
            None => broken.extend(wanted_balancer_removed(seen, was, now)),
            Some(is) => broken.extend(emptied(seen, clouds, was, is, now)),
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
    let project_swapped = seen.project_swapped[before.sender.reached as usize];
    let token_replaced = seen.token_replaced[before.sender.account as usize];
    let could_not_know = is_recent(project_swapped, now) || is_recent(token_replaced, now);
    (before.theirs != *theirs && !could_not_know).then(|| {
        let what = format!("{before} changed the project of another cluster");
        ("nothing foreign is touched", what)
    })
}

/// A token that is the other account's changes nothing there.
fn other_account_touched(
    seen: &Seen,
    before: &CloudBefore,
    done: bool,
    now: Timestamp,
) -> Option<Broken> {
    let Sender {
        account, reached, ..
    } = before.sender;
    let could_not_know = is_recent(seen.token_replaced[account as usize], now);
    (done && account != reached && !could_not_know).then(|| {
        let what = format!("{before} changed the project of the other account");
        ("nothing foreign is touched", what)
    })
}

/// Whether a token changed so lately that an answer from before it may still count.
fn is_recent(changed: Option<Timestamp>, now: Timestamp) -> bool {
    changed.is_some_and(|since| now.duration_since(since) <= PROOF_ON_ITS_WAY)
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
fn emptied(
    seen: &Seen,
    clouds: &Clouds,
    was: &Balancer,
    is: &Balancer,
    now: Timestamp,
) -> Option<Broken> {
    if was.targets.is_empty() || !is.targets.is_empty() {
        return None;
    }
    let nodes = seen.mirror.nodes.iter();
    let own = nodes.filter(|(name, _)| clouds.layout.account_of_node(name) == Account::First);
    let serving = own.filter_map(|(_, kept)| kept.wanted_since);
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
    use super::*;
    use crate::accounts::Layout;
    use crate::draw::Draw;

    fn sender(account: Account, reached: Account) -> Sender {
        let who = Who::A;
        Sender {
            who,
            account,
            reached,
        }
    }

    /// Whether it is noticed that somebody did this while a manager changed something.
    fn is_noticed(seen: &Seen, meddle: impl FnOnce(&SimulatedCloud), now: Timestamp) -> bool {
        let clouds = Clouds::new(Layout::One, &mut Draw::new(1));
        clouds.furnish().unwrap();
        let request = Request::post("/v1/routes").body(Bytes::new()).unwrap();
        let first = Account::First;
        let before = CloudBefore::of(sender(first, first), &request, &clouds);
        meddle(clouds.of(first));
        let broken = broken_by_answer(seen, &before, false, &clouds, now);
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
            project_swapped: [Some(swapped), None],
            ..Seen::default()
        };
        for (seconds, is_told) in [(1, false), (11, true)] {
            let now = swapped + SignedDuration::from_secs(seconds);
            let told = is_noticed(&seen, lose_their_route, now);
            assert_eq!(told, is_told, "after {seconds} s");
        }
    }

    #[test]
    fn a_token_of_the_other_account_changes_nothing_there() {
        let clouds = Clouds::new(Layout::Unlabelled, &mut Draw::new(1));
        let replaced = Timestamp::UNIX_EPOCH;
        let seen = Seen {
            token_replaced: [None, Some(replaced)],
            ..Seen::default()
        };
        let request = Request::post("/v1/routes").body(Bytes::new()).unwrap();
        let is_noticed = |account, seconds| {
            let before = CloudBefore::of(sender(account, Account::First), &request, &clouds);
            let now = replaced + SignedDuration::from_secs(seconds);
            other_account_touched(&seen, &before, true, now).is_some()
        };
        assert!(is_noticed(Account::Second, 11));
        assert!(!is_noticed(Account::Second, 1), "it could not know yet");
        assert!(!is_noticed(Account::First, 11), "its own account");
    }
}
