//! What a manager must never write.

use cloudkeel_api::names::HOLD;
use cloudkeel_controllers::wellknown::{AUTOSCALER_TAINT, SHUTDOWN_TAINT, UNINITIALIZED_TAINT};
use cloudkeel_embedded::{Commit, Verb};
use cloudkeel_testkit::simulated_cloud::LocalId;
use cloudkeel_testkit::simulated_cloud::wire::{BalancerState, Machine, MachineState};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::objects::{LeaseRecord, Objects, has_finalizer, has_taint, names_a_balancer};
use super::{CheckerState, Invariant};
use crate::accounts::{Account, Clouds, Layout};
use crate::action::ManagerId;
use crate::fixtures::OTHER_PROJECT;
use crate::managers::{DELETION_BURST, DELETION_INTERVAL, LEASE_DURATION};

/// A kubelet that was heard this recently is alive.
const ALIVE: SignedDuration = SignedDuration::from_secs(30);

/// A proof may be this old when the deletion arrives.
pub(super) const IN_FLIGHT_LIMIT: SignedDuration = SignedDuration::from_secs(10);

/// A list from before a token was replaced may decide for so long.
const LIST_STILL_COUNTS: SignedDuration = SignedDuration::from_secs(120);

/// An invariant, and how it was broken.
pub(super) type Broken = (Invariant, String);

/// Every invariant that a write breaks.
pub(super) fn broken_by(
    state: &mut CheckerState,
    clouds: &Clouds,
    manager_id: ManagerId,
    commit: &Commit,
) -> Vec<Broken> {
    let mut broken = Vec::new();
    let what = describe(commit);
    broken.extend(without_lease(state, manager_id, commit.sent_at, &what));
    broken.extend(paused_written(state, commit));
    match commit.resource {
        "nodes" | "services" if is_not_theirs(commit) => {
            broken.push((Invariant::OnlyOwnWrites, describe(commit)));
        }
        "nodes" => {
            broken.extend(foreign(commit));
            if commit.verb == Verb::Delete {
                broken.extend(unproven(state, clouds, commit));
                broken.extend(too_fast(state, clouds, commit));
            } else {
                broken.extend(initialised_too_early(clouds, commit));
                broken.extend(taken_for_its_predecessor(state, clouds, commit));
                broken.extend(taken_for_machine_of_other_account(state, clouds, commit));
                broken.extend(taken_for_machine_of_other_project(state, clouds, commit));
                broken.extend(pod_cidr_taken(state, commit));
            }
        }
        "services" => broken.extend(released_too_early(state, clouds, commit)),
        other => broken.push((Invariant::OnlyOwnWrites, format!("wrote {other}"))),
    }
    broken
}

fn describe(commit: &Commit) -> String {
    let Commit {
        by,
        verb,
        resource,
        name,
        ..
    } = commit;
    format!("{by} did {} {resource}/{name}", verb.as_str())
}

/// Nothing is written to what is paused.
fn paused_written(state: &CheckerState, commit: &Commit) -> Option<Broken> {
    let kept = match commit.resource {
        "nodes" => state.objects.nodes.get(&commit.name),
        "services" => state.objects.services.get(&commit.name),
        _ => None,
    };
    let is_paused = kept?.is_known_to_be_paused(commit.sent_at);
    is_paused.then(|| (Invariant::PausedStays, describe(commit)))
}

/// Whether only others do this: managers make no Nodes and no Services, and delete no Services.
fn is_not_theirs(commit: &Commit) -> bool {
    let deletes_service = commit.resource == "services" && commit.verb == Verb::Delete;
    commit.before.is_none() || deletes_service
}

/// No manager writes without the lease. What it sent in time may arrive later.
pub(super) fn without_lease(
    state: &CheckerState,
    manager_id: ManagerId,
    at: Timestamp,
    what: &str,
) -> Option<Broken> {
    let identity = state.identity_at(manager_id, at);
    let holds = |held: &LeaseRecord| {
        Some(held.holder.as_str()) == identity && at.duration_since(held.renewed) <= LEASE_DURATION
    };
    let lease = state.objects.lease_at(at);
    if lease.is_some_and(holds) {
        return None;
    }
    let held = lease.map_or_else(
        || "the lease has no holder".to_owned(),
        |held| {
            format!(
                "{} holds the lease, renewed at {}",
                held.holder, held.renewed
            )
        },
    );
    Some((Invariant::LeaseHeld, format!("{what}, while {held}")))
}

/// Nothing foreign is touched.
fn foreign(commit: &Commit) -> Option<Broken> {
    let node = commit.before.as_ref()?;
    let id = node["spec"]["providerID"].as_str().unwrap_or_default();
    let is_foreign = !id.is_empty() && !id.starts_with("local://");
    let unmanaged = node["metadata"]["labels"]["cloudkeel.dev/unmanaged"] == "true";
    (is_foreign || unmanaged).then(|| (Invariant::NothingForeignTouched, describe(commit)))
}

/// No Node is deleted without proof, in doubt, or while an annotation holds it.
fn unproven(state: &CheckerState, clouds: &Clouds, commit: &Commit) -> Vec<Broken> {
    let mut broken = Vec::new();
    let Some(node) = &commit.before else {
        return broken;
    };
    let mut refuse = |invariant, why: &str| {
        let what = format!("{} was deleted {why}", commit.name);
        broken.push((invariant, what));
    };
    if machine_exists(clouds, node) {
        refuse(Invariant::NodeDeletionProven, "while its machine exists");
    }
    if is_alive(&state.objects, node, commit.at) {
        refuse(Invariant::NodeDeletionProven, "while its kubelet is heard");
    }
    if node["metadata"]["annotations"][HOLD.name()] == "true" {
        refuse(Invariant::HeldNodeStays, "although it is held");
    }
    let account = clouds.layout.account_of_node(&commit.name);
    // Without labels any cloud may be a Node's own, so a token that was exchanged for its account's sees it rightly.
    let mut others = clouds.layout.others(account);
    let is_seen_by_another = clouds.layout == Layout::Unlabelled
        && others.any(|other| clouds.reached_by(other) == account);
    let in_doubt = state
        .misled_since(account)
        .filter(|_| !is_seen_by_another)
        .is_some_and(|since| {
            commit.sent_at.duration_since(since) > proofs_count_for(state, commit, since)
        });
    if in_doubt {
        let why = "while the credential saw another project";
        refuse(Invariant::NoDeletionInDoubt, why);
    }
    broken
}

/// For how long proofs from before a credential was another may count. Of a machine that was gone by then, the list too.
fn proofs_count_for(state: &CheckerState, commit: &Commit, since: Timestamp) -> SignedDuration {
    let heard = state.objects.heartbeats.get(&commit.name);
    if heard.is_none_or(|heard| *heard < since) {
        LIST_STILL_COUNTS
    } else {
        IN_FLIGHT_LIMIT
    }
}

/// Whether the machine of a Node exists, in the account that it was made in.
fn machine_exists(clouds: &Clouds, node: &Value) -> bool {
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let cloud = clouds.of_node(name);
    let id = node["spec"]["providerID"].as_str().unwrap_or_default();
    let id = id.parse().ok().and_then(|id| LocalId::read(&id).ok());
    match id {
        Some(id) => cloud.machine(id.machine).is_some_and(|m| m.is_alive()),
        None => cloud.machines().iter().any(|machine| machine.name == name),
    }
}

fn is_alive(objects: &Objects, node: &Value, now: Timestamp) -> bool {
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let heard = objects.heartbeats.get(name);
    let ready = node["status"]["conditions"].as_array().is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    });
    ready && heard.is_some_and(|heard| now.duration_since(*heard) < ALIVE)
}

/// Deletions in an account keep to a rate. Each process of a manager counts anew, as it cannot know the others'.
fn too_fast(state: &mut CheckerState, clouds: &Clouds, commit: &Commit) -> Option<Broken> {
    let announced = commit.before.as_ref().is_some_and(|node| {
        has_taint(node, AUTOSCALER_TAINT) || !node["metadata"]["deletionTimestamp"].is_null()
    });
    if announced {
        return None;
    }
    let at = commit.sent_at;
    let identity = state.objects.lease_at(at)?.holder.clone();
    let account = clouds.layout.account_of_node(&commit.name);
    state.deletions.push((identity.clone(), account, at));
    let own: Vec<Timestamp> = state
        .deletions
        .iter()
        .filter(|(by, of, _)| *by == identity && *of == account)
        .map(|(_, _, at)| *at)
        .collect();
    let lately = |time: &&Timestamp| at.duration_since(**time) < SignedDuration::from_mins(1);
    let deleted = own.iter().filter(lately).count();
    let (burst, interval) = deletion_limits(state, clouds, account, deleted);
    let fast = own.iter().enumerate().find_map(|(place, first)| {
        let count = i64::try_from(own.get(place..)?.len()).ok()?;
        let seconds = at.duration_since(*first).as_secs();
        let refilled = seconds / interval + 1;
        (count > burst + refilled).then_some((count, seconds))
    })?;
    let (count, seconds) = fast;
    let what = format!("{count} Nodes were deleted within {seconds} s");
    Some((Invariant::DeletionRate, what))
}

/// How many Nodes of an account may go at once, and after how many seconds another one: a fifth of them go at once, and
/// in every minute, if that is more than the flags say.
fn deletion_limits(
    state: &CheckerState,
    clouds: &Clouds,
    account: Account,
    deleted: usize,
) -> (i64, i64) {
    let names = state.objects.nodes.keys();
    let ours = names.filter(|name| name.starts_with("node-"));
    let own = ours.filter(|name| clouds.layout.account_of_node(name) == account);
    let fifth = i64::try_from((own.count() + deleted) / 5).unwrap_or(1);
    let burst = i64::from(DELETION_BURST).max(fifth);
    let interval = DELETION_INTERVAL.as_secs().min(60 / fifth.max(1));
    (burst, interval.max(1))
}

/// Addresses come before the taint goes, and from the right machine.
fn initialised_too_early(clouds: &Clouds, commit: &Commit) -> Option<Broken> {
    let (before, after) = (commit.before.as_ref()?, commit.after.as_ref()?);
    if !has_taint(before, UNINITIALIZED_TAINT) || has_taint(after, UNINITIALIZED_TAINT) {
        return None;
    }
    let addresses = after["status"]["addresses"].as_array().map_or(0, Vec::len);
    let id = after["spec"]["providerID"].as_str().unwrap_or_default();
    let machine = id.parse().ok().and_then(|id| LocalId::read(&id).ok());
    let cloud = clouds.of_node(&commit.name);
    let machine = machine.and_then(|id| cloud.machine(id.machine));
    // A machine may be gone by now, or be renamed; but it was never another one's.
    let others = machine.is_some_and(|machine| machine.name != commit.name);
    let problem = match (addresses, id.is_empty(), others) {
        (0, _, _) => "without addresses",
        (_, true, _) => "without a provider ID",
        (_, _, true) => "with another machine's ID",
        _ => return None,
    };
    let what = format!("{} lost its taint {problem}", commit.name);
    Some((Invariant::AddressesBeforeTaint, what))
}

/// A Node gets the ID of its own machine, never that of one which had the name before it. A manager that is shown
/// something else than is there cannot know.
fn taken_for_its_predecessor(
    state: &CheckerState,
    clouds: &Clouds,
    commit: &Commit,
) -> Option<Broken> {
    let (before, after) = (commit.before.as_ref()?, commit.after.as_ref()?);
    let id = after["spec"]["providerID"].as_str()?;
    let is_shown = state
        .stale_reads_until
        .is_none_or(|until| until < commit.at);
    if !is_shown || before["spec"]["providerID"] == id || machine_exists(clouds, after) {
        return None;
    }
    let machines = clouds.of_node(&commit.name).machines();
    let own = machines
        .iter()
        .find(|machine| machine.name == commit.name && machine.is_alive())?;
    let what = format!("{} got the ID {id}, its machine is {}", commit.name, own.id);
    Some((Invariant::OwnProviderId, what))
}

/// A Node never gets the ID of a machine in the project of others, unless no other Node could show that the
/// credential sees another project.
fn taken_for_machine_of_other_project(
    state: &CheckerState,
    clouds: &Clouds,
    commit: &Commit,
) -> Option<Broken> {
    let (before, after) = (commit.before.as_ref()?, commit.after.as_ref()?);
    let id = after["spec"]["providerID"].as_str()?;
    let number = LocalId::read(&id.parse().ok()?).ok()?.machine;
    let account = clouds.layout.account_of_node(&commit.name);
    let theirs = clouds.of(account).machines_of(OTHER_PROJECT);
    if before["spec"]["providerID"] == id || theirs.iter().all(|machine| machine.id != number) {
        return None;
    }
    let mut others = state.objects.nodes.iter().filter(|(name, _)| {
        **name != commit.name && clouds.layout.account_of_node(name) == account
    });
    let tells = |node: &Value| {
        node["spec"]["providerID"].is_string() && is_alive(&state.objects, node, commit.sent_at)
    };
    let could_tell = others.any(|(_, other)| tells(&other.object));
    could_tell.then(|| {
        let what = format!("{} got the ID {id} of another project", commit.name);
        (Invariant::OwnProviderId, what)
    })
}

/// A Node shows neither the addresses nor the state of a machine of the other account that has the number of its own.
fn taken_for_machine_of_other_account(
    state: &CheckerState,
    clouds: &Clouds,
    commit: &Commit,
) -> Option<Broken> {
    let (before, after) = (commit.before.as_ref()?, commit.after.as_ref()?);
    let account = clouds.layout.account_of_node(&commit.name);
    let since = state.misled_since(account)?;
    let id = after["spec"]["providerID"].as_str()?.parse().ok()?;
    let number = LocalId::read(&id).ok()?.machine;
    let reached = clouds.reached_by(account);
    let other = clouds.of(reached).machine(number)?;
    let own = clouds.of(account).machine(number)?;
    let shows = |machine: &Machine| {
        let addresses = after["status"]["addresses"].as_array();
        let mut ips = machine.addresses.iter().map(|it| it.ip.to_string());
        ips.any(|ip| addresses.is_some_and(|all| all.iter().any(|one| one["address"] == ip)))
    };
    let is_readdressed = before["status"]["addresses"] != after["status"]["addresses"];
    let is_tainted = !has_taint(before, SHUTDOWN_TAINT) && has_taint(after, SHUTDOWN_TAINT);
    // A list from before may still count.
    let may_use_older_list = commit.at.duration_since(since) < LIST_STILL_COUNTS;
    let problem = if is_readdressed && shows(&other) && !shows(&own) {
        "the addresses"
    } else if is_tainted && own.state == MachineState::Running && !may_use_older_list {
        "the taint"
    } else {
        return None;
    };
    let what = format!(
        "{} got {problem} of a machine of another account",
        commit.name
    );
    Some((Invariant::OwnMachineShown, what))
}

/// A Pod CIDR is written once, and belongs to no other Node.
fn pod_cidr_taken(state: &CheckerState, commit: &Commit) -> Option<Broken> {
    let (before, after) = (commit.before.as_ref()?, commit.after.as_ref()?);
    let cidrs = |node: &Value| node["spec"]["podCIDRs"].as_array().cloned();
    let (old, new) = (cidrs(before), cidrs(after)?);
    if old.as_ref() == Some(&new) {
        return None;
    }
    let is_taken = |cidr: &&Value| {
        let others = state.objects.nodes.iter();
        let mut others = others.filter(|(name, _)| **name != commit.name);
        others.any(|(_, other)| cidrs(&other.object).is_some_and(|all| all.contains(cidr)))
    };
    let problem = match (
        old.unwrap_or_default().is_empty(),
        new.iter().find(is_taken),
    ) {
        (false, _) => format!("got {new:?} in place of others"),
        (true, Some(taken)) => format!("got {taken}, which another Node has"),
        (true, None) => return None,
    };
    let what = format!("{} {problem}", commit.name);
    Some((Invariant::PodCidrUnique, what))
}

/// The finalizer goes only after the balancer. One that the cloud has agreed to remove goes by itself. A new leader whom
/// the cloud does not show it cannot know of it if the Service does not either.
fn released_too_early(state: &CheckerState, clouds: &Clouds, commit: &Commit) -> Option<Broken> {
    let before = commit.before.as_ref()?;
    let after = commit.after.as_ref();
    if !has_finalizer(before) || after.is_some_and(|after| has_finalizer(after)) {
        return None;
    }
    let is_shown = state
        .stale_reads_until
        .is_none_or(|until| until < commit.at);
    if !is_shown && !names_a_balancer(before) {
        return None;
    }
    let uid = before["metadata"]["uid"].as_str().unwrap_or_default();
    let left = clouds
        .of(Account::First)
        .balancers()
        .into_iter()
        .filter(|balancer| balancer.state != BalancerState::Deleting)
        .find(|balancer| super::cloud_calls::service_of(balancer) == Some(uid))?;
    let what = format!("{} lost it while balancer {} stands", commit.name, left.id);
    Some((Invariant::FinalizerAfterBalancer, what))
}
