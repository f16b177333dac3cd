//! Does the machine of a suspect exist? A few suspects are looked up by ID; many are looked for in a list
//! first. While a machine is there, no list is needed.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, Doubt, ErrorKind, Existence, GoneProof, Instance, InstanceState, Match, Sighting,
};
use tokio::time::Instant;

use super::LifecycleController;
use super::stop::listed_lately;
use crate::clouds::{Cloud, Snapshot};
use crate::planted::Bug;
use crate::view::{NodeView, Readiness};

/// A list this recent tells whether a machine that it shows exists.
const FRESH: Duration = Duration::from_secs(30);
/// Up to so many suspects, or one in fifty machines, are looked up by ID. A page of a list has about
/// fifty machines, so beyond that the list costs fewer calls.
const FEW_SUSPECTS: usize = 10;
const MACHINES_PER_PAGE: usize = 50;
/// Many suspects are counted once in this time. A few are counted each time: they may be many a moment later.
const ONE_PASS: Duration = Duration::from_secs(1);

/// What the clouds said about the machine of a Node.
pub(super) enum Answer {
    /// One of them has it.
    Present(Box<Instance>),
    /// Every one of them proves that it is gone. It was first not found at this moment.
    Gone {
        proofs: Vec<GoneProof>,
        noticed: Instant,
    },
    /// The answers do not say.
    Unknown(Doubt),
}

impl LifecycleController {
    /// Present if any cloud has it, gone only if every one proves it.
    pub(super) async fn ask_all(&self, node: &NodeView, clouds: &[Arc<Cloud>]) -> Answer {
        let asking = clouds.iter().map(|cloud| self.ask(node, cloud));
        let answers = futures::future::join_all(asking).await;
        let (mut proofs, mut unknown) = (Vec::new(), None);
        let mut noticed = Instant::now();
        for (answer, at) in answers {
            match answer {
                Existence::Present(instance) => return Answer::Present(instance),
                Existence::Gone(proof) => {
                    proofs.push(proof);
                    noticed = noticed.min(at);
                }
                Existence::Unknown(doubt) => {
                    unknown.get_or_insert(doubt);
                }
            }
        }
        match unknown {
            Some(doubt) => Answer::Unknown(doubt),
            None if proofs.is_empty() => Answer::Unknown(no_answer("no cloud to ask")),
            None => Answer::Gone { proofs, noticed },
        }
    }

    /// The answer of one cloud, and when the machine was first not found.
    async fn ask(&self, node: &NodeView, cloud: &Cloud) -> (Existence, Instant) {
        let provider = cloud.provider();
        let Some(instances) = provider.instances() else {
            let doubt = no_answer("this cloud has no machines");
            return (Existence::Unknown(doubt), Instant::now());
        };
        if let Some(instance) = self.shown_by_shared_list(node, cloud).await {
            return (Existence::present(instance), Instant::now());
        }
        let listed = listed_lately(cloud);
        let sighting = listed.and_then(|list| self.sighting(node, cloud, &list));
        let answer = instances.find(&node.facts, sighting.as_ref()).await;
        let noticed = Instant::now();
        let is_unproven = matches!(
            answer,
            Existence::Unknown(Doubt::NothingElseSeen { .. } | Doubt::ScopeChanged { .. })
        );
        if !is_unproven {
            return (answer, noticed);
        }
        // It is not found. Whether that proves anything, a list begun after that can tell.
        let list = self.list_for(cloud, noticed).await;
        let Some(list) = list.filter(|list| list.began >= noticed) else {
            return (answer, noticed);
        };
        let sighting = self.sighting(node, cloud, &list);
        let answer = instances.find(&node.facts, sighting.as_ref()).await;
        (answer, noticed)
    }

    /// The machine, if there are so many suspects that they share a list and it shows the machine.
    async fn shown_by_shared_list(&self, node: &NodeView, cloud: &Cloud) -> Option<Instance> {
        let is_planted = Bug::DeleteOnFirstAbsence.is_planted();
        if !is_planted && !self.has_many_suspects(cloud) {
            return None;
        }
        let age = FRESH.max(self.pause_of(node));
        // If it fails, the look-up is left.
        let list = cloud.inventory.no_older_than(age).await.ok()?;
        let provider = cloud.provider();
        let found = provider.instances()?.identify(&node.facts, &list.sweep);
        if let Match::One(instance) = found {
            return (instance.state != InstanceState::Unknown).then(|| instance.clone());
        }
        if is_planted {
            let _ = self.parts.writer.delete(node).await;
        }
        None
    }

    /// Whether a list costs fewer calls than a look-up for every Node of a cloud that is not Ready.
    fn has_many_suspects(&self, cloud: &Cloud) -> bool {
        let counted = self.of_cloud(cloud, |record| record.many_suspects);
        if counted.is_some_and(|at| at.elapsed() < ONE_PASS) {
            return true;
        }
        let nodes = self.nodes_of(cloud);
        let is_suspect = |node: &&Arc<NodeView>| node.readiness != Readiness::Ready;
        let suspects = nodes.iter().filter(is_suspect).count();
        let is_many = suspects > FEW_SUSPECTS.max(nodes.len() / MACHINES_PER_PAGE);
        let counted = is_many.then(Instant::now);
        self.of_cloud(cloud, |record| record.many_suspects = counted);
        is_many
    }

    /// That the list shows another machine, one of this cluster if there is any.
    fn sighting(&self, node: &NodeView, cloud: &Cloud, list: &Arc<Snapshot>) -> Option<Sighting> {
        let id = node.facts.provider_id.as_ref()?;
        let known = self.guard().known_in(cloud, list);
        list.sweep.sighting_besides(id, |other| {
            known.contains(other) || Bug::IgnoreDoubt.is_planted()
        })
    }
}

fn no_answer(why: &str) -> Doubt {
    Doubt::NoAnswer(CloudError::new("find machine", ErrorKind::Unsupported, why))
}
