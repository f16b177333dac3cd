//! Which machine is this Node? One list for a crowd, one look-up for a single newcomer.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Doubt, Existence, Instance, Match, NodeAddress};
use tokio::time::Instant;

use super::NodeController;
use crate::clouds::{Cloud, Owner, Snapshot, owner_of};
use crate::runtime::{Cause, Verdict};
use crate::view::NodeView;

/// From how many Nodes on, waiting or in work, a sweep is cheaper than a call for each.
pub(super) const CROWD: usize = 4;
/// A sweep that ended this recently still serves a crowd, however long it takes to write them all; a
/// newcomer that it does not show is looked up.
pub(super) const FRESH: Duration = Duration::from_mins(2);

/// The machine of a Node.
pub(super) struct Machine {
    pub(super) instance: Instance,
    /// What the provider offers this Node, which may be more than the machine alone knows.
    pub(super) addresses: Vec<NodeAddress>,
    /// When the cloud was asked.
    pub(super) learnt: Instant,
}

/// Why there is no machine.
pub(super) enum NotFound {
    /// The Node is nobody's here: no write, no call, no retry.
    NotOurs,
    /// It may turn up.
    Unclear { why: Cause, verdict: Verdict },
}

/// A machine, and how it was found.
pub(super) enum Found {
    /// In a sweep.
    Listed {
        instance: Box<Instance>,
        by: Arc<Snapshot>,
    },
    /// By a look-up that began then.
    LookedUp {
        instance: Box<Instance>,
        began: Instant,
    },
}

impl Found {
    fn into_instance(self) -> Instance {
        match self {
            Self::Listed { instance, .. } | Self::LookedUp { instance, .. } => *instance,
        }
    }
}

impl NodeController {
    pub(super) async fn find_machine(&self, node: &NodeView) -> Result<Machine, NotFound> {
        match owner_of(&node.facts, &self.clouds) {
            Owner::Nobody {
                why,
                is_malformed: true,
            } => Err(NotFound::Unclear {
                why: Cause::of_text(format_args!(
                    "{why}; it can never be changed: delete the Node and register it anew"
                )),
                verdict: Verdict::NeedsPerson,
            }),
            Owner::Nobody { .. } => Err(NotFound::NotOurs),
            Owner::Cloud(cloud) => self.ask_all(node, std::slice::from_ref(&cloud)).await,
            Owner::Ask(clouds) => self.ask_all(node, &clouds).await,
        }
    }

    /// Exactly one cloud may claim the Node, and a cloud that cannot answer holds it back.
    async fn ask_all(&self, node: &NodeView, clouds: &[Arc<Cloud>]) -> Result<Machine, NotFound> {
        let learnt = Instant::now();
        let answers = clouds.iter().map(|cloud| self.ask(cloud, node));
        let answers = futures::future::join_all(answers).await;
        let mut found = Vec::new();
        let mut unclear = None;
        for (cloud, answer) in clouds.iter().zip(answers) {
            match answer {
                Ok(instance) => found.push((cloud, instance)),
                Err(reason) => unclear = Some(worse(unclear, reason)),
            }
        }
        let blocked = unclear
            .as_ref()
            .is_some_and(|(_, _, holds_back)| *holds_back);
        if found.len() > 1 {
            let names: Vec<_> = found.iter().map(|(cloud, _)| cloud.name.as_str()).collect();
            let names = names.join(", ");
            return Err(NotFound::Unclear {
                why: Cause::of_text(format_args!("several clouds claim this Node: {names}")),
                verdict: Verdict::NeedsPerson,
            });
        }
        match (found.pop(), unclear) {
            (Some((cloud, instance)), _) if !blocked => Ok(Machine {
                addresses: offered(cloud, &instance, node),
                instance,
                learnt,
            }),
            (_, Some((why, verdict, _))) => Err(NotFound::Unclear { why, verdict }),
            (_, None) => Err(NotFound::NotOurs),
        }
    }

    /// A machine that was found by its name needs somebody to vouch for the cloud.
    async fn ask(&self, cloud: &Arc<Cloud>, node: &NodeView) -> Result<Instance, Reason> {
        let found = self.look_for(cloud, node).await?;
        if node.facts.provider_id.is_none() {
            self.vouch(cloud, &found).await?;
        }
        Ok(found.into_instance())
    }

    async fn look_for(&self, cloud: &Cloud, node: &NodeView) -> Result<Found, Reason> {
        let provider = cloud.provider();
        let Some(instances) = provider.instances() else {
            let why = Cause::of_text("it has no machines").in_cloud(&cloud.name);
            return Err((why, Verdict::Done, false));
        };
        if let Some(list) = self.list_for(cloud, node).await {
            let by = list.map_err(|error| no_answer(cloud, &error))?;
            if let Match::One(instance) = self.match_in(cloud, &by, node) {
                let instance = Box::new(instance.clone());
                return Ok(Found::Listed { instance, by });
            }
        }
        let began = Instant::now();
        match instances.find(&node.facts, None).await {
            Existence::Present(instance) if self.is_predecessors(&instance, node) => {
                Err(lagging(cloud, &instance))
            }
            Existence::Present(instance) => Ok(Found::LookedUp { instance, began }),
            Existence::Gone(proof) => Err((Cause::of_text(proof), Verdict::Failed, false)),
            Existence::Unknown(Doubt::NoAnswer(error)) => Err(no_answer(cloud, &error)),
            Existence::Unknown(doubt @ Doubt::Ambiguous { .. }) => Err((
                Cause::of_text(doubt).in_cloud(&cloud.name),
                Verdict::NeedsPerson,
                true,
            )),
            Existence::Unknown(doubt) => Err((
                Cause::of_text(doubt).in_cloud(&cloud.name),
                Verdict::Failed,
                false,
            )),
        }
    }
}

/// Why, what to do, and whether it holds the Node back even if another cloud claims it.
pub(super) type Reason = (Cause, Verdict, bool);

pub(super) fn no_answer(cloud: &Cloud, error: &CloudError) -> Reason {
    let why = Cause::of_cloud(error).in_cloud(&cloud.name);
    (why, Verdict::of(error), true)
}

fn lagging(cloud: &Cloud, instance: &Instance) -> Reason {
    let why = Cause::of_text(format_args!(
        "it shows only {}, the machine of the Node that had this name before",
        instance.id
    ));
    (why.in_cloud(&cloud.name), Verdict::Failed, true)
}

/// Of two reasons, the one that holds the Node back.
fn worse(known: Option<Reason>, new: Reason) -> Reason {
    match known {
        Some(known) if known.2 || !new.2 => known,
        _ => new,
    }
}

pub(super) fn offered(cloud: &Cloud, instance: &Instance, node: &NodeView) -> Vec<NodeAddress> {
    cloud
        .provider()
        .instances()
        .map_or_else(Vec::new, |instances| {
            instances.addresses(instance, &node.facts)
        })
}
