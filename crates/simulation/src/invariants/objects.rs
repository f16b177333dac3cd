//! The objects of the cluster as they are, and since when.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_api::names::{LB_RETAIN, PAUSED};
use cloudkeel_controllers::wellknown::{AUTOSCALER_TAINT, CLEANUP_FINALIZER, EXCLUDE_LABEL};
use cloudkeel_embedded::Commit;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The lease of the managers.
const LEASE: &str = "cloud-controller-manager";

/// A manager that sees the cluster at all has seen a change by then, whatever went wrong with its watch.
pub(super) const PROPAGATION_LIMIT: SignedDuration = SignedDuration::from_secs(240);

/// An object, and since when it has been as it is in the one respect that rules ask about.
#[derive(Debug, Clone)]
pub(crate) struct Tracked {
    pub(crate) object: Arc<Value>,
    /// For a Service, since when it wants a balancer; for a Node, since when it may be a target.
    pub(crate) wanted_since: Option<Timestamp>,
    /// Since when it is paused.
    pub(crate) paused_since: Option<Timestamp>,
    /// Since when its balancer is to be retained.
    pub(crate) retained_since: Option<Timestamp>,
}

impl Tracked {
    /// Whether every manager that sees the cluster at all knows by now that it is paused.
    pub(crate) fn is_known_to_be_paused(&self, now: Timestamp) -> bool {
        is_known(self.paused_since, now)
    }

    /// Whether every manager that sees the cluster at all knows by now that its balancer is to be retained.
    pub(crate) fn is_known_to_be_retained(&self, now: Timestamp) -> bool {
        is_known(self.retained_since, now)
    }
}

fn is_known(since: Option<Timestamp>, now: Timestamp) -> bool {
    since.is_some_and(|since| now.duration_since(since) > PROPAGATION_LIMIT)
}

/// The holder of the managers' lease.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRecord {
    pub(crate) holder: String,
    /// When it was last renewed, by the true clock and not by the holder's.
    pub(crate) renewed: Timestamp,
}

#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) nodes: BTreeMap<String, Tracked>,
    pub(crate) services: BTreeMap<String, Tracked>,
    pub(crate) heartbeats: BTreeMap<String, Timestamp>,
    /// Every state of the lease, oldest first; `None` while it has no holder.
    leases: Vec<(Timestamp, Option<LeaseRecord>)>,
}

impl Objects {
    pub(crate) fn follow(&mut self, commit: &Commit) {
        match commit.resource {
            "nodes" => {
                if let Some(at) = heard_by_status(commit) {
                    self.heartbeats.insert(commit.name.clone(), at);
                }
                keep(&mut self.nodes, commit, may_be_target);
            }
            "services" => keep(&mut self.services, commit, wants_balancer),
            "leases" if commit.name == LEASE => {
                self.leases.push((commit.at, lease_record(commit)));
            }
            "leases" => {
                self.heartbeats.insert(commit.name.clone(), commit.at);
            }
            _ => {}
        }
    }

    /// The lease as it was at this time.
    pub(crate) fn lease_at(&self, at: Timestamp) -> Option<&LeaseRecord> {
        let later = self.leases.partition_point(|(since, _)| *since <= at);
        let (_, record) = self.leases.get(later.checked_sub(1)?)?;
        record.as_ref()
    }

    /// A Service by its UID.
    pub(crate) fn service(&self, uid: &str) -> Option<&Tracked> {
        self.services
            .values()
            .find(|kept| kept.object["metadata"]["uid"] == uid)
    }
}

fn lease_record(commit: &Commit) -> Option<LeaseRecord> {
    let holder = commit.after.as_ref()?["spec"]["holderIdentity"].as_str()?;
    Some(LeaseRecord {
        holder: holder.to_owned(),
        renewed: commit.at,
    })
    .filter(|held| !held.holder.is_empty())
}

fn keep(kept: &mut BTreeMap<String, Tracked>, commit: &Commit, wanted: fn(&Value) -> bool) {
    let before = kept.remove(&commit.name);
    let Some(object) = &commit.after else {
        return;
    };
    let annotated_since = |name: &str, before: Option<Timestamp>| {
        let is_set = object["metadata"]["annotations"][name] == "true";
        is_set.then(|| before.unwrap_or(commit.at))
    };
    let paused_before = before.as_ref().and_then(|kept| kept.paused_since);
    let paused_since = annotated_since(PAUSED.name(), paused_before);
    let retained_before = before.as_ref().and_then(|kept| kept.retained_since);
    let retained_since = annotated_since(LB_RETAIN.name(), retained_before);
    let since = before.and_then(|kept| kept.wanted_since);
    let wanted_since = wanted(object).then(|| since.unwrap_or(commit.at));
    let object = Arc::clone(object);
    kept.insert(
        commit.name.clone(),
        Tracked {
            object,
            wanted_since,
            paused_since,
            retained_since,
        },
    );
}

pub(crate) fn wants_balancer(service: &Value) -> bool {
    service["spec"]["type"] == "LoadBalancer" && service["metadata"]["deletionTimestamp"].is_null()
}

/// Whether a Node may get traffic and is to stay.
pub(crate) fn may_be_target(node: &Value) -> bool {
    may_have_traffic(node) && !has_taint(node, AUTOSCALER_TAINT)
}

/// Whether a Node has a taint with this key.
pub(crate) fn has_taint(node: &Value, key: &str) -> bool {
    let taints = node["spec"]["taints"].as_array();
    taints.is_some_and(|taints| taints.iter().any(|taint| taint["key"] == key))
}

/// Whether a Node may get traffic at all.
pub(crate) fn may_have_traffic(node: &Value) -> bool {
    let ours = node["spec"]["providerID"]
        .as_str()
        .is_some_and(|id| id.starts_with("local://"));
    ours && node["metadata"]["labels"][EXCLUDE_LABEL].is_null()
        && node["metadata"]["deletionTimestamp"].is_null()
}

/// When a kubelet without a lease was heard, if it was by this write.
fn heard_by_status(commit: &Commit) -> Option<Timestamp> {
    let heartbeat = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array()?;
        let ready = conditions.iter().find(|it| it["type"] == "Ready")?;
        Some(ready["lastHeartbeatTime"].as_str()?.to_owned())
    };
    let before = commit.before.as_deref().and_then(heartbeat);
    let after = commit.after.as_deref().and_then(heartbeat);
    (after.is_some() && after != before).then_some(commit.at)
}

/// Whether a Service waits for its balancer to be deleted.
pub(crate) fn has_finalizer(service: &Value) -> bool {
    let finalizers = service["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|one| one == CLEANUP_FINALIZER))
}

/// Whether anything on a Service says that it has a balancer.
pub(crate) fn names_a_balancer(service: &Value) -> bool {
    let has_some = |field: &Value| field.as_array().is_some_and(|all| !all.is_empty());
    let status = &service["status"];
    service["metadata"]["annotations"]["local.cloudkeel.dev/lb-id"].is_string()
        || has_some(&status["loadBalancer"]["ingress"])
        || has_some(&status["conditions"])
}
