//! What a manager must never ask of the cloud.

use std::fmt;

use bytes::Bytes;
use cloudkeel_provider_local::SERVICE_UID;
use cloudkeel_testkit::simulated_cloud::SimulatedCloud;
use cloudkeel_testkit::simulated_cloud::wire::{Balancer, BalancerState, NewBalancer, Route};
use http::{Method, Request};
use jiff::Timestamp;

use super::objects::{PROPAGATION_LIMIT, has_finalizer};
use super::writes::{Broken, IN_FLIGHT_LIMIT, without_lease};
use super::{CheckerState, Invariant};
use crate::accounts::{Account, Clouds};
use crate::action::ManagerId;
use crate::convergence::is_released;
use crate::fixtures::{FOREIGN_NETWORK, OTHER_PROJECT, is_foreign};

/// The Service that a balancer was made for.
pub(super) fn service_of(balancer: &Balancer) -> Option<&str> {
    balancer.labels.get(SERVICE_UID).map(String::as_str)
}

/// The manager that calls, with the token that the configuration has for an account, and the account that it reaches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender {
    pub(super) manager_id: ManagerId,
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

    /// Whether something was created here, or changed that is not a Service's of this cluster.
    fn is_touched(&self, after: &Self) -> bool {
        let (ours, theirs): (Vec<_>, Vec<_>) = after.balancers.iter().partition(|it| is_ours(it));
        let was_here = |balancer: &&Balancer| self.balancers.iter().any(|it| it.id == balancer.id);
        let before = self.balancers.iter().filter(|it| !is_ours(it));
        self.routes != after.routes || !ours.iter().all(was_here) || !before.eq(theirs)
    }
}

/// Whether a balancer is that of a Service of this cluster.
fn is_ours(balancer: &Balancer) -> bool {
    service_of(balancer).is_some_and(|uid| !is_foreign(uid))
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
        let (manager_id, method, path) = (self.sender.manager_id.name(), &self.method, &self.path);
        let Sender {
            account, reached, ..
        } = self.sender;
        write!(f, "{manager_id}: cloud {}", account.cloud_name())?;
        if account != reached {
            write!(f, ", which is {},", reached.cloud_name())?;
        }
        write!(f, " {method} {path}")
    }
}

/// Every invariant that is broken already by asking.
pub(super) fn broken_by_asking(
    state: &CheckerState,
    before: &CloudBefore,
    now: Timestamp,
) -> Vec<Broken> {
    if !before.is_change() {
        return Vec::new();
    }
    let mut broken = Vec::new();
    broken.extend(without_lease(
        state,
        before.sender.manager_id,
        now,
        &before.to_string(),
    ));
    broken.extend(paused_touched(state, before, now));
    if let Some(uid) = &before.makes_for {
        if before.sender.account != Account::First {
            broken.push((Invariant::ServedByItsCloud, before.to_string()));
        }
        let service = state.objects.service(uid);
        let kept = service.is_some_and(|kept| has_finalizer(&kept.object));
        if service.is_some() && !kept {
            let what = format!("{before} for Service {uid}, which has no finalizer");
            broken.push((Invariant::FinalizerBeforeBalancer, what));
        }
    }
    broken
}

/// The balancer of a Service that is paused is neither made, changed nor deleted.
fn paused_touched(state: &CheckerState, before: &CloudBefore, now: Timestamp) -> Option<Broken> {
    let is_named = |balancer: &&Balancer| {
        let path = format!("/v1/balancers/{}", balancer.id);
        let rest = before.path.strip_prefix(&path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let changed = before.ours.balancers.iter().find(is_named);
    let uid = changed
        .and_then(service_of)
        .or(before.makes_for.as_deref())?;
    let is_paused = state.objects.service(uid)?.is_known_to_be_paused(now);
    is_paused.then(|| {
        let what = format!("{before} for Service {uid}, which is paused");
        (Invariant::PausedStays, what)
    })
}

/// Every invariant that is broken by what came of it.
pub(super) fn broken_by_answer(
    state: &CheckerState,
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
    // A manager that is shown something else than is there cannot know that it is.
    let is_shown = state.stale_reads_until.is_none_or(|until| until < now);
    if done && is_shown && ours == before.ours {
        broken.push((Invariant::NoChangeWithoutDifference, before.to_string()));
    }
    broken.extend(project_of_others_touched(state, before, &theirs, now));
    broken.extend(other_account_touched(state, before, &ours, done, now));
    broken.extend(foreign_route_touched(before, &ours));
    for was in &before.ours.balancers {
        let is = ours.balancers.iter().find(|balancer| balancer.id == was.id);
        broken.extend(foreign_touched(was, is, before));
        broken.extend(not_retained_as_asked(state, was, is, now));
        match is {
            None => broken.extend(wanted_balancer_removed(state, was, now)),
            Some(is) => broken.extend(emptied(state, clouds, was, is, now)),
        }
    }
    broken
}

/// What stands in the project of others stays as it is. A manager that read before the credential was swapped, and
/// acts after it, could not know; what it created there by mistake may be deleted again.
fn project_of_others_touched(
    state: &CheckerState,
    before: &CloudBefore,
    theirs: &Project,
    now: Timestamp,
) -> Option<Broken> {
    let project_swapped = state.project_swapped[before.sender.reached as usize];
    let token_replaced = state.token_replaced[before.sender.account as usize];
    let is_excusable = is_recent(project_swapped, now) || is_recent(token_replaced, now);
    (before.theirs.is_touched(theirs) && !is_excusable).then(|| {
        let what = format!("{before} changed the project of another cluster");
        (Invariant::NothingForeignTouched, what)
    })
}

/// A token that is another account's changes nothing there. It may only remove the balancer of a Service that wants
/// none: the UID of a Service is that of no other one, in whatever account.
fn other_account_touched(
    state: &CheckerState,
    before: &CloudBefore,
    ours: &Project,
    done: bool,
    now: Timestamp,
) -> Option<Broken> {
    let Sender {
        account, reached, ..
    } = before.sender;
    let is_excusable = is_recent(state.token_replaced[account as usize], now)
        || removes_only_unwanted(state, before, ours);
    (done && account != reached && !is_excusable).then(|| {
        let what = format!("{before} changed the project of another account");
        (Invariant::NothingForeignTouched, what)
    })
}

/// Whether a call removes, or begins to remove, the balancer of a Service of this cluster that wants none, and changes
/// nothing else.
fn removes_only_unwanted(state: &CheckerState, before: &CloudBefore, after: &Project) -> bool {
    let stays = |was: &&Balancer| after.balancers.contains(was);
    let mut changed = before.ours.balancers.iter().filter(|was| !stays(was));
    let removed = changed.next().filter(|_| changed.next().is_none());
    let is_unwanted = |was: &Balancer| {
        let service = service_of(was).and_then(|uid| state.objects.service(uid));
        is_ours(was) && service.is_none_or(|service| service.wanted_since.is_none())
    };
    before.method == Method::DELETE
        && removed.is_some_and(is_unwanted)
        && before.ours.routes == after.routes
}

/// Whether a token changed so lately that an answer from before it may still count.
fn is_recent(changed: Option<Timestamp>, now: Timestamp) -> bool {
    changed.is_some_and(|since| now.duration_since(since) <= IN_FLIGHT_LIMIT)
}

/// The routes of others stay as they are.
fn foreign_route_touched(before: &CloudBefore, ours: &Project) -> Option<Broken> {
    let foreign = |route: &&Route| route.destination.to_string() == FOREIGN_NETWORK;
    let was = before.ours.routes.iter().find(foreign);
    let is = ours.routes.iter().find(foreign);
    (was != is).then(|| {
        let what = format!("{before} changed the route to {FOREIGN_NETWORK}");
        (Invariant::NothingForeignTouched, what)
    })
}

/// Whether a call released a balancer.
pub(super) fn has_released(before: &CloudBefore, clouds: &Clouds) -> bool {
    let is_new = |released: &Balancer| {
        let balancers = &before.ours.balancers;
        let was = balancers.iter().find(|was| was.id == released.id);
        was.is_some_and(|was| service_of(was).is_some())
    };
    let balancers = clouds.of(before.sender.reached).balancers();
    let mut released = balancers.iter().filter(|balancer| is_released(balancer));
    before.is_change() && released.any(is_new)
}

/// The balancers of others stay as they are.
fn foreign_touched(was: &Balancer, is: Option<&Balancer>, before: &CloudBefore) -> Option<Broken> {
    // One that was released may still be settling.
    let is_settled = was.state == BalancerState::Active;
    (!is_ours(was) && is_settled && is != Some(was))
        .then(|| (Invariant::NothingForeignTouched, before.to_string()))
}

/// A balancer goes only if no Service wants it.
fn wanted_balancer_removed(state: &CheckerState, was: &Balancer, now: Timestamp) -> Option<Broken> {
    let uid = service_of(was)?;
    let since = state.objects.service(uid)?.wanted_since?;
    (now.duration_since(since) > PROPAGATION_LIMIT).then(|| {
        let what = format!("balancer {} of Service {uid} was removed", was.id);
        (Invariant::WantedBalancerStays, what)
    })
}

/// A balancer that is to be retained is released and not deleted; no other one is, but for one that is protected.
fn not_retained_as_asked(
    state: &CheckerState,
    was: &Balancer,
    is: Option<&Balancer>,
    now: Timestamp,
) -> Option<Broken> {
    let uid = service_of(was).filter(|uid| !is_foreign(uid))?;
    let service = state.objects.service(uid);
    let how = match is {
        None if service.is_some_and(|it| it.is_known_to_be_retained(now)) => "deleted",
        Some(is) if is_released(is) && !is.protected => {
            let may_be = service.is_none_or(|it| it.retained_since.is_some());
            (!may_be).then_some("released")?
        }
        _ => return None,
    };
    let what = format!("balancer {} of Service {uid} was {how}", was.id);
    Some((Invariant::RetainedOnRequest, what))
}

/// A balancer with Nodes to send traffic to is never emptied.
fn emptied(
    state: &CheckerState,
    clouds: &Clouds,
    was: &Balancer,
    is: &Balancer,
    now: Timestamp,
) -> Option<Broken> {
    if was.targets.is_empty() || !is.targets.is_empty() {
        return None;
    }
    let nodes = state.objects.nodes.iter();
    let own = nodes.filter(|(name, _)| clouds.layout.account_of_node(name) == Account::First);
    let serving = own.filter_map(|(_, kept)| kept.wanted_since);
    let sure = serving.filter(|since| now.duration_since(*since) > PROPAGATION_LIMIT);
    let count = sure.count();
    (count > 0).then(|| {
        let what = format!(
            "balancer {} was emptied while {count} Nodes could serve",
            is.id
        );
        (Invariant::BalancerNotEmptied, what)
    })
}

#[cfg(test)]
mod tests {
    use cloudkeel_testkit::simulated_cloud::Settings;
    use jiff::SignedDuration;

    use super::*;
    use crate::accounts::Layout;
    use crate::rng::Rng;

    fn sender(account: Account, reached: Account) -> Sender {
        let manager_id = ManagerId::A;
        Sender {
            manager_id,
            account,
            reached,
        }
    }

    /// Whether it is noticed that another client did this while a manager changed something.
    fn is_noticed(
        state: &CheckerState,
        edit: impl FnOnce(&SimulatedCloud),
        now: Timestamp,
    ) -> bool {
        let clouds = Clouds::new(Layout::One, &mut Rng::new(1));
        clouds.add_fixtures().unwrap();
        let request = Request::post("/v1/routes").body(Bytes::new()).unwrap();
        let first = Account::First;
        let before = CloudBefore::of(sender(first, first), &request, &clouds);
        edit(clouds.of(first));
        let broken = broken_by_answer(state, &before, false, &clouds, now);
        broken
            .iter()
            .any(|(invariant, _)| *invariant == Invariant::NothingForeignTouched)
    }

    fn lose_their_route(cloud: &SimulatedCloud) {
        let theirs = cloud.routes_of(OTHER_PROJECT);
        cloud.drop_route(theirs[0].id).unwrap();
    }

    #[test]
    fn what_others_have_is_watched_over_in_both_projects() {
        let (state, now) = (CheckerState::default(), Timestamp::UNIX_EPOCH);
        assert!(!is_noticed(&state, |_| {}, now));
        assert!(is_noticed(&state, lose_their_route, now));
        let lose_the_foreign_route = |cloud: &SimulatedCloud| {
            cloud.drop_route(cloud.routes()[0].id).unwrap();
        };
        assert!(is_noticed(&state, lose_the_foreign_route, now));
    }

    #[test]
    fn a_read_from_before_the_credential_was_swapped_is_excusable() {
        let swapped = Timestamp::UNIX_EPOCH;
        let state = CheckerState {
            project_swapped: [Some(swapped), None, None],
            ..CheckerState::default()
        };
        for (seconds, is_reported) in [(1, false), (11, true)] {
            let now = swapped + SignedDuration::from_secs(seconds);
            let reported = is_noticed(&state, lose_their_route, now);
            assert_eq!(reported, is_reported, "after {seconds} s");
        }
    }

    #[test]
    fn a_token_of_the_other_account_changes_nothing_there() {
        let clouds = Clouds::new(Layout::Unlabelled, &mut Rng::new(1));
        let replaced = Timestamp::UNIX_EPOCH;
        let state = CheckerState {
            token_replaced: [None, Some(replaced), None],
            ..CheckerState::default()
        };
        let request = Request::post("/v1/routes").body(Bytes::new()).unwrap();
        let is_noticed = |account, seconds| {
            let before = CloudBefore::of(sender(account, Account::First), &request, &clouds);
            let now = replaced + SignedDuration::from_secs(seconds);
            other_account_touched(&state, &before, &Project::default(), true, now).is_some()
        };
        assert!(is_noticed(Account::Second, 11));
        assert!(!is_noticed(Account::Second, 1), "it could not know yet");
        assert!(!is_noticed(Account::First, 11), "its own account");
    }

    #[test]
    fn a_token_of_the_other_account_may_remove_what_no_service_wants() {
        let cloud = SimulatedCloud::new(Settings::default());
        let balancer = |service: &str| {
            let new = NewBalancer {
                name: service.to_owned(),
                labels: [(SERVICE_UID.to_owned(), service.to_owned())].into(),
                ..NewBalancer::default()
            };
            cloud.add_balancer(new).unwrap()
        };
        let another = balancer("another");
        let state = CheckerState::default();
        let call = |method, own: &str| CloudBefore {
            sender: sender(Account::Second, Account::First),
            method,
            path: "/v1/balancers/1".to_owned(),
            makes_for: None,
            ours: Project {
                balancers: vec![balancer(own), another.clone()],
                routes: Vec::new(),
            },
            theirs: Project::default(),
        };
        let left = |balancers| Project {
            balancers,
            routes: Vec::new(),
        };
        let removed = left(vec![another.clone()]);
        for (case, method, own, after, is_allowed) in [
            ("its own", Method::DELETE, "deleted", &removed, true),
            ("of others", Method::DELETE, "foreign-1", &removed, false),
            ("two", Method::DELETE, "gone", &left(Vec::new()), false),
            ("a change", Method::PATCH, "released", &removed, false),
        ] {
            let before = call(method, own);
            let now = Timestamp::UNIX_EPOCH;
            let touched = other_account_touched(&state, &before, after, true, now);
            assert_eq!(touched.is_none(), is_allowed, "{case}");
        }
    }
}
