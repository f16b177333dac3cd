//! Nodes: whose they are, which machine is theirs, and whether both agree.

use std::collections::BTreeMap;

use cloudkeel_api::{InstanceState, NodeAddress, names};
use cloudkeel_controllers::node::labels;
use cloudkeel_controllers::node::plan::changed_addresses;
use cloudkeel_controllers::view::Readiness;
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;

use super::clouds::shows_no_known_machine;
use crate::catalogue::{
    KUBELET_NOT_EXTERNAL, NODE_ADDRESS_UNKNOWN, NODE_ADDRESSES_DIFFER, NODE_DUPLICATE_ID,
    NODE_FOREIGN_ID, NODE_HELD, NODE_MACHINE_GONE, NODE_MACHINE_NOT_READY, NODE_MALFORMED_ID,
    NODE_NO_MACHINE, NODE_NOT_READY, NODE_PAUSED, NODE_READY_NOT_LISTED, NODE_SHUT_DOWN,
    NODE_TOPOLOGY_DIFFERS, NODE_TWO_CLOUDS, NODE_TWO_MACHINES, NODE_UNMANAGED, NODE_WAITS,
    NODE_WRONG_NAME,
};
use crate::finding::{Finding, Rule};
use crate::snapshot::{InstanceMatch, NodeOwner, NodeState, Snapshot};
use crate::text::{age, first_few};

/// A leader initialises a Node in seconds; kubelets need some to become Ready.
const GRACE_SECONDS: i64 = 60;

pub(super) fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let nodes = snapshot.known_nodes();
    let mut findings: Vec<_> = nodes
        .iter()
        .flat_map(|node| findings_of_node(snapshot, node))
        .collect();
    findings.extend(duplicate_ids(nodes));
    findings
}

/// What is wrong with one Node.
pub(crate) fn findings_of_node(snapshot: &Snapshot, node: &NodeState) -> Vec<Finding> {
    let checked = Checked { snapshot, node };
    let paused = checked.paused();
    paused.into_iter().chain(checked.found_all()).collect()
}

/// Whether a cloud that might own a Node could not be built.
fn has_unbuilt_cloud(snapshot: &Snapshot) -> bool {
    snapshot
        .clouds
        .iter()
        .any(|cloud| cloud.build_error.is_some())
}

struct Checked<'a> {
    snapshot: &'a Snapshot,
    node: &'a NodeState,
}

impl Checked<'_> {
    fn found_all(&self) -> Vec<Finding> {
        let Self { snapshot, node } = self;
        let is_tainted = node.view.has_taint(UNINITIALIZED_TAINT);
        match &node.owner {
            NodeOwner::Unowned {
                why,
                is_malformed: true,
            } => vec![self.found(&NODE_MALFORMED_ID, why).fix(format!(
                "kubectl delete node {}, correct --provider-id of its kubelet and restart it.",
                node.name()
            ))],
            NodeOwner::Unowned { why, .. } if is_tainted => {
                if has_unbuilt_cloud(snapshot) && !self.is_unmanaged() {
                    return Vec::new();
                }
                vec![self.unowned(why)]
            }
            NodeOwner::Unowned { .. } => Vec::new(),
            // It may be that cloud's.
            _ if is_tainted && has_unbuilt_cloud(snapshot) => Vec::new(),
            _ if is_tainted => self.uninitialised().into_iter().collect(),
            _ if node.view.facts.provider_id.is_none() => {
                let what = "it has no provider ID and no taint that says that it waits for one";
                vec![self.found(&KUBELET_NOT_EXTERNAL, what)]
            }
            _ => self.initialised(),
        }
    }

    fn paused(&self) -> Option<Finding> {
        let is_paused = names::is_paused(&self.node.view.facts.annotations);
        is_paused.then(|| {
            let (name, key) = (self.node.name(), names::PAUSED.name());
            let what = "cloudkeel leaves it and its routes as they are";
            let fix = format!("kubectl annotate node {name} {key}-");
            self.found(&NODE_PAUSED, what).fix(fix)
        })
    }

    fn found(&self, rule: &'static Rule, what: impl Into<String>) -> Finding {
        rule.found(format!("Node {}", self.node.name()), what)
    }

    /// Since when it carries the taint, for people.
    fn tainted_for(&self) -> String {
        let taints = self.node.view.taints.iter();
        let mut taints = taints.filter(|taint| taint.key == UNINITIALIZED_TAINT);
        let added = taints.find_map(|taint| Some(taint.time_added.as_ref()?.0));
        let since = added.or(self.node.view.facts.created);
        since.map_or_else(
            || "tainted".to_owned(),
            |since| format!("tainted for {}", age(since, self.snapshot.now)),
        )
    }

    fn is_unmanaged(&self) -> bool {
        let value = self.node.view.facts.labels.get(names::UNMANAGED_LABEL);
        value.is_some_and(|value| value == "true")
    }

    fn unowned(&self, why: &str) -> Finding {
        let facts = &self.node.view.facts;
        let (name, tainted) = (self.node.name(), self.tainted_for());
        let is_unmanaged = self.is_unmanaged();
        let what = format!("{tainted}: {why}");
        if facts.provider_id.is_some() && !is_unmanaged {
            return self.found(&NODE_FOREIGN_ID, what);
        }
        let finding = self.found(&NODE_UNMANAGED, what);
        if is_unmanaged {
            return finding.fix(format!(
                "kubectl label node {name} {}-",
                names::UNMANAGED_LABEL
            ));
        }
        finding.fix(format!(
            "kubectl label node {name} --overwrite {}=CLOUD, or correct nodes.selector of its cloud.",
            names::CLOUD_LABEL
        ))
    }

    /// Why a Node still carries the taint.
    fn uninitialised(&self) -> Option<Finding> {
        let node = self.node;
        let (name, tainted) = (node.name(), self.tainted_for());
        let matches = || node.matches.iter();
        if let Some((cloud, ids)) = matches().find_map(|(cloud, it)| match it {
            InstanceMatch::Many(ids) => Some((cloud, ids)),
            _ => None,
        }) {
            let ids = first_few(ids);
            let what = format!("{tainted}: cloud {cloud} has several machines for it: {ids}");
            return Some(self.found(&NODE_TWO_MACHINES, what));
        }
        let is_unread = |(_, it): &(&String, &InstanceMatch)| matches!(it, InstanceMatch::Unread);
        let in_clouds: Vec<_> = matches()
            .filter(|(_, it)| matches!(it, InstanceMatch::One { .. }))
            .map(|(cloud, _)| cloud.as_str())
            .collect();
        match in_clouds.as_slice() {
            // That is a finding about the cloud.
            _ if matches().any(|it| is_unread(&it)) => None,
            [] => Some(self.without_machine(&tainted)),
            [_] => self.with_machine(&tainted),
            [first, ..] => {
                let all = first_few(&in_clouds);
                let what = format!("{tainted}: the clouds {all} have a machine for it");
                let fix = format!("kubectl label node {name} {}={first}", names::CLOUD_LABEL);
                Some(self.found(&NODE_TWO_CLOUDS, what).fix(fix))
            }
        }
    }

    fn without_machine(&self, tainted: &str) -> Finding {
        let mut matches = self.node.matches.iter();
        let lookalike = matches.find_map(|(cloud, it)| match it {
            InstanceMatch::None {
                lookalike: Some(found),
            } => Some((cloud, found)),
            _ => None,
        });
        if let Some((cloud, (name, id))) = lookalike {
            let what = format!(
                "{tainted}: cloud {cloud} has no machine {:?}, but {name:?} ({id}) has its UUID or address",
                self.node.name()
            );
            let fix = format!(
                "Set --hostname-override={name} on its kubelet, delete the Node and restart the kubelet."
            );
            return self.found(&NODE_WRONG_NAME, what).fix(fix);
        }
        let clouds = first_few(self.node.matches.keys());
        let by = match &self.node.view.facts.provider_id {
            Some(id) => format!("with the ID {id}"),
            None => format!("of the name {:?}", self.node.name()),
        };
        let what = format!("{tainted}: no machine {by} in {clouds}");
        self.found(&NODE_NO_MACHINE, what)
    }

    fn with_machine(&self, tainted: &str) -> Option<Finding> {
        let (_, instance) = self.node.instance()?;
        if let Some(why) = &instance.not_ready {
            let what = format!("{tainted}: {} is not ready: {why}", instance.id);
            return Some(self.found(&NODE_MACHINE_NOT_READY, what));
        }
        if let Some(unknown) = self.unknown_address() {
            return Some(unknown);
        }
        let created = self.node.view.facts.created;
        let is_new = created.is_none_or(|at| self.seconds_since(at) < GRACE_SECONDS);
        if is_new {
            return None;
        }
        let name = self.node.name();
        let said = match self.snapshot.last_warning("Node", "", name) {
            Some(event) => format!("; its last Event: {}: {}", event.reason, event.message),
            None => "; there is no Event about it".to_owned(),
        };
        let what = format!(
            "{tainted}: its machine is {}, which runs{said}",
            instance.id
        );
        let fix = format!("kubectl describe node {name}");
        Some(self.found(&NODE_WAITS, what).fix(fix))
    }

    fn seconds_since(&self, at: jiff::Timestamp) -> i64 {
        self.snapshot.now.duration_since(at).as_secs()
    }

    fn offered(&self) -> Option<&[NodeAddress]> {
        let mut matches = self.node.matches.values();
        matches.find_map(|it| match it {
            InstanceMatch::One {
                instance,
                addresses,
            } if !instance.is_summary => Some(addresses.as_slice()),
            _ => None,
        })
    }

    fn unknown_address(&self) -> Option<Finding> {
        let problem = changed_addresses(&self.node.view, self.offered()?).err()?;
        Some(self.found(&NODE_ADDRESS_UNKNOWN, problem.to_string()))
    }

    /// Whether a Node and its machine agree.
    fn initialised(&self) -> Vec<Finding> {
        let node = self.node;
        let has = |like: fn(&InstanceMatch) -> bool| node.matches.values().any(like);
        if has(|it| matches!(it, InstanceMatch::One { .. })) {
            return self.with_its_machine();
        }
        if has(|it| matches!(it, InstanceMatch::Unread)) || node.matches.is_empty() {
            return Vec::new();
        }
        let mut owners = node.matches.keys();
        // That is one finding about the cloud, not one for each Node.
        if owners.any(|cloud| shows_no_known_machine(self.snapshot, cloud).is_some()) {
            return Vec::new();
        }
        let id = node.view.facts.provider_id.as_ref();
        let id = id.map_or_else(String::new, ToString::to_string);
        let name = node.name();
        let explain = format!("cloudkeel explain node {name}");
        if node.view.readiness == Readiness::Ready {
            let what = format!("{id} is not in the list of its cloud");
            return vec![self.found(&NODE_READY_NOT_LISTED, what).fix(explain)];
        }
        let what = format!("{id} is not in the list of its cloud, and the Node is not Ready");
        let is_held = !matches!(
            names::HOLD.get(&node.view.facts.annotations),
            Ok(Some(false) | None)
        );
        vec![if is_held {
            let fix = format!("kubectl annotate node {name} {}-", names::HOLD.name());
            self.found(&NODE_HELD, what).fix(fix)
        } else {
            self.found(&NODE_MACHINE_GONE, what).fix(explain)
        }]
    }

    fn with_its_machine(&self) -> Vec<Finding> {
        let node = self.node;
        let Some((_, instance)) = node.instance() else {
            return Vec::new();
        };
        let mut findings = Vec::new();
        if instance.state == InstanceState::ShutDown {
            let what = format!("{} is shut down", instance.id);
            findings.push(self.found(&NODE_SHUT_DOWN, what));
        } else if node.view.readiness != Readiness::Ready && !node.view.deleting {
            findings.extend(self.not_ready(instance.state));
        }
        findings.extend(self.unknown_address());
        if let Some(offered) = self.offered()
            && let Ok(Some(changed)) = changed_addresses(&node.view, offered)
        {
            let list = |all: &[NodeAddress]| {
                let all = all.iter().map(|it| it.address.as_str());
                all.collect::<Vec<_>>().join(", ")
            };
            let (is, was) = (list(&changed), list(&node.view.facts.addresses));
            let what = format!("the cloud shows {is}; the Node has {was}");
            findings.push(self.found(&NODE_ADDRESSES_DIFFER, what));
        }
        let moved = labels::moved(instance, &node.view.facts);
        if let Some((key, was, now)) = moved.first() {
            let what = format!("{key} is {was:?}; the machine is in {now:?}");
            findings.push(self.found(&NODE_TOPOLOGY_DIFFERS, what));
        }
        findings
    }

    fn not_ready(&self, state: InstanceState) -> Option<Finding> {
        let since = self.node.ready_since;
        let is_long = since.is_none_or(|since| self.seconds_since(since) >= GRACE_SECONDS);
        let is_long = is_long || self.node.view.readiness == Readiness::Unknown;
        is_long.then(|| {
            let since = since.map_or_else(String::new, |at| {
                format!(" for {}", age(at, self.snapshot.now))
            });
            let message = match self.node.ready_message.as_str() {
                "" => String::new(),
                message => format!(": {message}"),
            };
            let what = format!("not Ready{since}{message}; its machine is {state}");
            self.found(&NODE_NOT_READY, what)
        })
    }
}

fn duplicate_ids(nodes: &[NodeState]) -> Vec<Finding> {
    let mut by_id = BTreeMap::<_, Vec<&str>>::new();
    for node in nodes {
        if let Some(id) = &node.view.facts.provider_id {
            by_id.entry(id).or_default().push(node.name());
        }
    }
    let several = by_id.into_iter().filter(|(_, nodes)| nodes.len() > 1);
    several
        .map(|(id, nodes)| {
            let object = format!("Node {}", nodes.first().copied().unwrap_or_default());
            let all = first_few(nodes.iter().copied());
            NODE_DUPLICATE_ID.found(object, format!("{all} have the provider ID {id}"))
        })
        .collect()
}
