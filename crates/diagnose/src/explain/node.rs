//! The story of a Node.

use cloudkeel_api::{Instance, InstanceState, NodeAddress, names};
use cloudkeel_controllers::node::plan::{NodePlan, Refresh, initialise, refresh};
use cloudkeel_controllers::view::Readiness;
use cloudkeel_controllers::wellknown::UNINITIALIZED_TAINT;

use super::deletion::Deletion;
use super::{Explanation, NextStep, Section, events_about, unless_led};
use crate::check::findings_of_node;
use crate::snapshot::{InstanceMatch, NodeOwner, NodeState, Snapshot};
use crate::text::{age, duration, first_few};

/// The story of the Node of this name, if there is one.
pub fn explain_node(snapshot: &Snapshot, name: &str) -> Option<Explanation> {
    let mut nodes = snapshot.known_nodes().iter();
    let node = nodes.find(|node| node.name() == name)?;
    let story = Story { snapshot, node };
    let deletion = Deletion::new(snapshot, node);
    let is_unowned = matches!(node.owner, NodeOwner::Unowned { .. });
    let conditions = if deletion.is_possible() && !is_unowned && story.is_initialised() {
        deletion.conditions()
    } else {
        Vec::new()
    };
    Some(Explanation {
        object: format!("Node {name}"),
        sections: vec![
            Section::new("Owner", story.owner()),
            Section::new("Node", story.node()),
            Section::new("Cloud", story.cloud()),
            Section::new("Differs", story.differences()),
        ],
        deletion: conditions,
        next: unless_led(snapshot, story.next()),
        findings: findings_of_node(snapshot, node),
        events: events_about(snapshot, "Node", "", name),
    })
}

struct Story<'a> {
    snapshot: &'a Snapshot,
    node: &'a NodeState,
}

impl Story<'_> {
    fn is_initialised(&self) -> bool {
        !self.node.view.has_taint(UNINITIALIZED_TAINT)
    }

    fn owner(&self) -> Vec<String> {
        let facts = &self.node.view.facts;
        match &self.node.owner {
            NodeOwner::Cloud(name) => {
                let why = match (&facts.provider_id, facts.labels.get(names::CLOUD_LABEL)) {
                    (Some(id), _) => format!("its provider ID {id} is of that cloud"),
                    (None, Some(_)) => format!("its label {} says so", names::CLOUD_LABEL),
                    (None, None) => "the selector of that cloud matches its labels".to_owned(),
                };
                vec![format!("cloud {name}, because {why}")]
            }
            NodeOwner::Undecided(clouds) => vec![format!(
                "not known: it is of {}, or of none; the label {} would say which",
                clouds.join(" or "),
                names::CLOUD_LABEL
            )],
            NodeOwner::Unowned { why, .. } => {
                vec![
                    format!("no cloud here: {why}"),
                    "cloudkeel neither writes to it nor asks a cloud for it".to_owned(),
                ]
            }
        }
    }

    fn node(&self) -> Vec<String> {
        let view = &self.node.view;
        let readiness = match view.readiness {
            Readiness::Ready => "Ready",
            Readiness::NotReady => "NotReady",
            Readiness::Unknown => "Unknown",
        };
        let since = self.node.ready_since;
        let since = since.map_or_else(String::new, |at| {
            format!(" for {}", age(at, self.snapshot.now))
        });
        let mut lines = vec![format!("{readiness}{since}")];
        if let Some(created) = view.facts.created {
            lines.push(format!("created {} ago", age(created, self.snapshot.now)));
        }
        lines.push(match &view.facts.provider_id {
            Some(id) => format!("provider ID {id}"),
            None => "no provider ID".to_owned(),
        });
        if !view.facts.addresses.is_empty() {
            lines.push(format!("addresses {}", addresses(&view.facts.addresses)));
        }
        if !view.facts.pod_cidrs.is_empty() {
            lines.push(format!("Pod networks {}", first_few(&view.facts.pod_cidrs)));
        }
        let taints: Vec<_> = view.taints.iter().map(|taint| taint.key.as_str()).collect();
        if !taints.is_empty() {
            lines.push(format!("taints {}", taints.join(", ")));
        }
        if view.deleting {
            lines.push("it is being deleted".to_owned());
        }
        lines
    }

    fn cloud(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (cloud, found) in &self.node.matches {
            lines.push(match found {
                InstanceMatch::One { instance, .. } => {
                    format!("{cloud} lists {}", describe(instance))
                }
                InstanceMatch::Many(ids) => {
                    format!("{cloud} lists several machines for it: {}", first_few(ids))
                }
                InstanceMatch::None {
                    lookalike: Some((name, id)),
                } => format!(
                    "{cloud} lists none for it, but {name:?} ({id}) has its UUID or address"
                ),
                InstanceMatch::None { lookalike: None } => {
                    format!("{cloud} lists no machine for it")
                }
                InstanceMatch::Unread => format!("{cloud} did not answer"),
            });
        }
        for look_up in &self.node.looked_up {
            let answer = match &*look_up.answer {
                cloudkeel_api::Existence::Present(instance) => describe(instance),
                cloudkeel_api::Existence::Gone(proof) => format!("gone: {proof}"),
                cloudkeel_api::Existence::Unknown(doubt) => format!("not known: {doubt}"),
            };
            lines.push(format!("{}, asked for its ID: {answer}", look_up.cloud));
        }
        lines
    }

    /// What a leader would write, by the node controller's plans.
    fn plan(&self) -> Option<Result<NodePlan, String>> {
        let (instance, offered) = self.node.matches.values().find_map(|it| match it {
            InstanceMatch::One {
                instance,
                addresses,
            } => Some((instance, addresses)),
            _ => None,
        })?;
        let follow = Refresh {
            instance_type: true,
            topology: false,
        };
        let plan = if self.is_initialised() {
            Ok(refresh(&self.node.view, instance, offered, follow))
        } else {
            initialise(&self.node.view, instance, offered)
        };
        Some(plan.map_err(|problem| problem.to_string()))
    }

    fn differences(&self) -> Vec<String> {
        let plan = match self.plan() {
            None => return Vec::new(),
            Some(Err(problem)) => return vec![problem],
            Some(Ok(plan)) => plan,
        };
        let mut lines = Vec::new();
        lines.extend(plan.address_problem.as_ref().map(ToString::to_string));
        if let Some(wanted) = &plan.addresses {
            lines.push(format!("addresses: {}", addresses(wanted)));
        }
        if let Some(id) = &plan.changes.provider_id {
            lines.push(format!("provider ID: {id}"));
        }
        let labels = plan.changes.labels.iter();
        lines.extend(labels.map(|(key, value)| format!("label {key}: {value:?}")));
        if plan.changes.taints.is_some() {
            lines.push(format!("without the taint {UNINITIALIZED_TAINT}"));
        }
        lines
    }

    fn next(&self) -> NextStep {
        let is_ready = self.node.view.readiness == Readiness::Ready;
        if matches!(self.node.owner, NodeOwner::Unowned { .. }) {
            return NextStep::never("nothing: no cloud here owns it");
        }
        if !self.is_initialised() {
            return self.next_of_uninitialised();
        }
        let state = self.node.instance().map(|(_, instance)| instance.state);
        if !is_ready && state == Some(InstanceState::ShutDown) {
            return NextStep::new(
                "the Node is kept with the shutdown taint, because its machine exists",
                "the taint is removed when the Node is Ready",
            );
        }
        if !is_ready {
            return Deletion::new(self.snapshot, self.node).next();
        }
        if state.is_none() {
            return NextStep::never("the Node is kept, because it is Ready");
        }
        let period = duration(self.snapshot.settings.node_list_period);
        if self.differences().is_empty() {
            return NextStep::new(
                "nothing differs",
                format!("the next list comes within {period}"),
            );
        }
        NextStep::new(
            "what differs is written",
            format!("after the next list, within {period}"),
        )
    }

    fn next_of_uninitialised(&self) -> NextStep {
        let retry = "tried again with growing pauses, and at once when the Node changes";
        match self.plan() {
            Some(Ok(_)) if self.node.instance().is_some() => {
                let (_, instance) = self.node.instance().unzip();
                match instance.and_then(|it| it.not_ready.as_ref()) {
                    Some(why) => NextStep::new(
                        format!("the Node is initialised when {why} is there"),
                        retry,
                    ),
                    None => NextStep::new(
                        "the Node is initialised: what differs is written",
                        "at once",
                    ),
                }
            }
            Some(Err(problem)) => {
                NextStep::new(format!("the Node keeps its taint: {problem}"), retry)
            }
            _ => NextStep::new(
                "the Node keeps its taint until exactly one machine is its own",
                retry,
            ),
        }
    }
}

fn addresses(all: &[NodeAddress]) -> String {
    let all = all.iter().map(|it| it.address.as_str());
    all.collect::<Vec<_>>().join(", ")
}

fn describe(instance: &Instance) -> String {
    let kind = [&instance.instance_type, &instance.zone];
    let kind: Vec<_> = kind.into_iter().flatten().map(String::as_str).collect();
    let mut parts = vec![
        format!("{} {:?}", instance.id, instance.name),
        instance.state.to_string(),
    ];
    parts.extend((!kind.is_empty()).then(|| kind.join(" in ")));
    parts.extend((!instance.addresses.is_empty()).then(|| addresses(&instance.addresses)));
    parts.join(", ")
}
