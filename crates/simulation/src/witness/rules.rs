//! What a manager must never write.

use cloudkeel_api::names::HOLD;
use cloudkeel_controllers::wellknown::{
    AUTOSCALER_TAINT, CLEANUP_FINALIZER, SHUTDOWN_TAINT, UNINITIALIZED_TAINT,
};
use cloudkeel_embedded::{Commit, Verb};
use cloudkeel_testkit::simulated_cloud::LocalId;
use cloudkeel_testkit::simulated_cloud::wire::{BalancerState, Machine, MachineState};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Seen;
use super::mirror::{Held, Mirror, has_taint};
use crate::accounts::{Account, Clouds};
use crate::action::Who;
use crate::managers::{DELETION_BURST, DELETION_INTERVAL, LEASE_DURATION};

/// A kubelet that was heard this recently is alive.
const ALIVE: SignedDuration = SignedDuration::from_secs(30);

/// A proof may be this old when the deletion arrives.
pub(super) const PROOF_ON_ITS_WAY: SignedDuration = SignedDuration::from_secs(10);

/// A list from before a token was replaced may decide for so long.
const LIST_STILL_COUNTS: SignedDuration = SignedDuration::from_secs(120);

/// A rule, and how it was broken.
pub(super) type Broken = (&'static str, String);

/// Every rule that a write breaks.
pub(super) fn broken_by(
    seen: &mut Seen,
    clouds: &Clouds,
    who: Who,
    commit: &Commit,
) -> Vec<Broken> {
    let mut broken = Vec::new();
    broken.extend(without_lease(seen, who, commit.at, &describe(commit)));
    match commit.resource {
        "nodes" | "services" if is_not_theirs(commit) => {
            broken.push(("only what is needed is written", describe(commit)));
        }
        "nodes" => {
            broken.extend(foreign(commit));
            if commit.verb == Verb::Delete {
                broken.extend(unproven(seen, clouds, commit));
                broken.extend(too_fast(seen, clouds, commit));
            } else {
                broken.extend(initialised_too_early(clouds, commit));
                broken.extend(taken_for_its_predecessor(seen, clouds, commit));
                broken.extend(taken_for_machine_of_other_account(seen, clouds, commit));
            }
        }
        "services" => broken.extend(released_too_early(clouds, commit)),
        other => broken.push(("only what is needed is written", format!("wrote {other}"))),
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

/// Whether it is others who do this: managers make no Nodes and no Services, and delete no Services.
fn is_not_theirs(commit: &Commit) -> bool {
    let deletes_service = commit.resource == "services" && commit.verb == Verb::Delete;
    commit.before.is_none() || deletes_service
}

/// Nobody writes without the lease.
pub(super) fn without_lease(seen: &Seen, who: Who, at: Timestamp, what: &str) -> Option<Broken> {
    let identity = seen.identities[who as usize].as_deref();
    let holds = |held: &Held| {
        Some(held.holder.as_str()) == identity && at.duration_since(held.renewed) <= LEASE_DURATION
    };
    let lease = seen.mirror.lease.as_ref();
    if lease.is_some_and(holds) {
        return None;
    }
    let held = lease.map_or_else(
        || "nobody holds the lease".to_owned(),
        |held| {
            format!(
                "{} holds the lease, renewed at {}",
                held.holder, held.renewed
            )
        },
    );
    Some((
        "no write without the lease",
        format!("{what}, while {held}"),
    ))
}

/// Nothing foreign is touched.
fn foreign(commit: &Commit) -> Option<Broken> {
    let node = commit.before.as_ref()?;
    let id = node["spec"]["providerID"].as_str().unwrap_or_default();
    let is_foreign = !id.is_empty() && !id.starts_with("local://");
    let unmanaged = node["metadata"]["labels"]["cloudkeel.dev/unmanaged"] == "true";
    (is_foreign || unmanaged).then(|| ("nothing foreign is touched", describe(commit)))
}

/// No Node goes without proof, in doubt, or against somebody's word.
fn unproven(seen: &Seen, clouds: &Clouds, commit: &Commit) -> Vec<Broken> {
    let mut broken = Vec::new();
    let Some(node) = &commit.before else {
        return broken;
    };
    let mut refuse = |why: String| {
        let what = format!("{} was deleted {why}", commit.name);
        broken.push(("no Node is deleted without proof", what));
    };
    if machine_exists(clouds, node) {
        refuse("while its machine exists".to_owned());
    }
    if is_alive(&seen.mirror, node, commit.at) {
        refuse("while its kubelet is heard".to_owned());
    }
    if node["metadata"]["annotations"][HOLD.name()] == "true" {
        refuse("although somebody holds it".to_owned());
    }
    let account = clouds.layout.account_of_node(&commit.name);
    let in_doubt = seen
        .misled_since(account)
        .is_some_and(|since| commit.at.duration_since(since) > PROOF_ON_ITS_WAY);
    if in_doubt {
        refuse("while the credential saw another project".to_owned());
    }
    broken
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

fn is_alive(mirror: &Mirror, node: &Value, now: Timestamp) -> bool {
    let name = node["metadata"]["name"].as_str().unwrap_or_default();
    let heard = mirror.heartbeats.get(name);
    let ready = node["status"]["conditions"].as_array().is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    });
    ready && heard.is_some_and(|heard| now.duration_since(*heard) < ALIVE)
}

/// A pace for many deletions in an account. Each life of a manager counts anew, as it cannot know the others'.
fn too_fast(seen: &mut Seen, clouds: &Clouds, commit: &Commit) -> Option<Broken> {
    let announced = commit.before.as_ref().is_some_and(|node| {
        has_taint(node, AUTOSCALER_TAINT) || !node["metadata"]["deletionTimestamp"].is_null()
    });
    if announced {
        return None;
    }
    let identity = seen.mirror.lease.as_ref()?.holder.clone();
    let account = clouds.layout.account_of_node(&commit.name);
    seen.deletions.push((identity.clone(), account, commit.at));
    let own: Vec<Timestamp> = seen
        .deletions
        .iter()
        .filter(|(by, of, _)| *by == identity && *of == account)
        .map(|(_, _, at)| *at)
        .collect();
    let fast = own.iter().enumerate().find_map(|(place, first)| {
        let count = i64::try_from(own.get(place..)?.len()).ok()?;
        let seconds = commit.at.duration_since(*first).as_secs();
        let refilled = seconds / DELETION_INTERVAL.as_secs() + 1;
        (count > i64::from(DELETION_BURST) + refilled).then_some((count, seconds))
    })?;
    let (count, seconds) = fast;
    let what = format!("{count} Nodes were deleted within {seconds} s");
    Some(("deletions keep their pace", what))
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
    Some(("addresses come before the taint goes", what))
}

/// A Node gets the ID of its own machine, never that of one which had the name before it. Who is shown
/// something else than is there cannot know.
fn taken_for_its_predecessor(seen: &Seen, clouds: &Clouds, commit: &Commit) -> Option<Broken> {
    let (before, after) = (commit.before.as_ref()?, commit.after.as_ref()?);
    let id = after["spec"]["providerID"].as_str()?;
    let is_shown = seen.reads_lie_until.is_none_or(|until| until < commit.at);
    if !is_shown || before["spec"]["providerID"] == id || machine_exists(clouds, after) {
        return None;
    }
    let machines = clouds.of_node(&commit.name).machines();
    let own = machines
        .iter()
        .find(|machine| machine.name == commit.name && machine.is_alive())?;
    let what = format!("{} got the ID {id}, its machine is {}", commit.name, own.id);
    Some(("a Node gets the ID of its own machine", what))
}

/// A Node shows neither the addresses nor the state of a machine of the other account that has the number of its own.
fn taken_for_machine_of_other_account(
    seen: &Seen,
    clouds: &Clouds,
    commit: &Commit,
) -> Option<Broken> {
    let (before, after) = (commit.before.as_ref()?, commit.after.as_ref()?);
    let account = clouds.layout.account_of_node(&commit.name);
    let since = seen.misled_since(account)?;
    let id = after["spec"]["providerID"].as_str()?.parse().ok()?;
    let number = LocalId::read(&id).ok()?.machine;
    let other = clouds.of(account.other()).machine(number)?;
    let own = clouds.of(account).machine(number)?;
    let shows = |machine: &Machine| {
        let addresses = after["status"]["addresses"].as_array();
        let mut ips = machine.addresses.iter().map(|it| it.ip.to_string());
        ips.any(|ip| addresses.is_some_and(|all| all.iter().any(|one| one["address"] == ip)))
    };
    let is_readdressed = before["status"]["addresses"] != after["status"]["addresses"];
    let is_tainted = !has_taint(before, SHUTDOWN_TAINT) && has_taint(after, SHUTDOWN_TAINT);
    // A list from before may still count.
    let is_old_news = commit.at.duration_since(since) < LIST_STILL_COUNTS;
    let problem = if is_readdressed && shows(&other) && !shows(&own) {
        "the addresses"
    } else if is_tainted && own.state == MachineState::Running && !is_old_news {
        "the taint"
    } else {
        return None;
    };
    let what = format!(
        "{} got {problem} of a machine of another account",
        commit.name
    );
    Some(("a Node shows its own machine", what))
}

/// The finalizer goes only after the balancer. One that the cloud has agreed to remove goes by itself.
fn released_too_early(clouds: &Clouds, commit: &Commit) -> Option<Broken> {
    let before = commit.before.as_ref()?;
    let after = commit.after.as_ref();
    if !has_finalizer(before) || after.is_some_and(|after| has_finalizer(after)) {
        return None;
    }
    let uid = before["metadata"]["uid"].as_str().unwrap_or_default();
    let left = clouds
        .of(Account::First)
        .balancers()
        .into_iter()
        .filter(|balancer| balancer.state != BalancerState::Deleting)
        .find(|balancer| super::cloud::service_of(balancer) == Some(uid))?;
    let what = format!("{} lost it while balancer {} stands", commit.name, left.id);
    Some(("the finalizer goes after the balancer", what))
}

pub(super) fn has_finalizer(service: &Value) -> bool {
    let finalizers = service["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|one| one == CLEANUP_FINALIZER))
}
