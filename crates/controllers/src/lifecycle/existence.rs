//! Does the instance of a Node that is not Ready exist? A few Nodes are looked up by ID, simultaneous look-ups in one
//! call; for many Nodes, a list comes first. While an instance exists, no list is needed.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, CloudProvider, Doubt, ErrorKind, Existence, GoneProof, Instance, InstanceState,
    KnownInstance, Match, NodeFacts, Shared,
};
use tokio::time::Instant;

use super::LifecycleController;
use super::stop::listed_lately;
use crate::clouds::{Cloud, Snapshot};
use crate::planted::Bug;
use crate::runtime::Batch;
use crate::view::{NodeView, Readiness};

/// A list this recent is enough to say that an instance exists.
const FRESH: Duration = Duration::from_secs(30);
/// Up to so many Nodes, or one in fifty, are looked up by ID. A page of a list has about fifty instances, so beyond
/// that the list costs fewer calls.
const FEW_NODES: usize = 10;
const INSTANCES_PER_PAGE: usize = 50;
/// Many Nodes are counted once in this time. A few are counted each time: they may be many a moment later.
const COUNT_PERIOD: Duration = Duration::from_secs(1);

/// What the clouds say about the instance of a Node.
pub(super) enum Answer {
    /// One of them has it.
    Present(Box<Instance>),
    /// Every one of them proves that it is gone. It was first not found at this moment.
    Gone {
        proofs: Vec<GoneProof>,
        noticed: Instant,
    },
    /// Not known.
    Unknown(Doubt),
}

/// A look-up by ID, and the known instance that proves an absence.
type LookUp = (Shared<NodeFacts>, Option<KnownInstance>);
pub(super) type LookUps = Batch<LookUp, Existence>;

impl LifecycleController {
    /// Present if any cloud has it, gone only if every one proves it.
    pub(super) async fn find_instance(&self, node: &NodeView, clouds: &[Arc<Cloud>]) -> Answer {
        let finding = clouds.iter().map(|cloud| self.find_in(node, cloud));
        let (mut proofs, mut unknown) = (Vec::new(), None);
        let mut noticed = Instant::now();
        for (answer, at) in futures::future::join_all(finding).await {
            match answer {
                Existence::Present(instance) => return Answer::Present(instance),
                Existence::Gone(proof) => {
                    proofs.push(proof);
                    noticed = noticed.min(at);
                }
                Existence::Unknown(doubt) => _ = unknown.get_or_insert(doubt),
            }
        }
        match unknown {
            Some(doubt) => Answer::Unknown(doubt),
            None => Answer::Gone { proofs, noticed },
        }
    }

    /// The answer of one cloud, and when the instance was first not found.
    async fn find_in(&self, node: &NodeView, cloud: &Cloud) -> (Existence, Instant) {
        if let Some(instance) = self.shown_by_shared_list(node, cloud).await {
            return (Existence::present(instance), Instant::now());
        }
        let answer = self.look_up(node, cloud, listed_lately(cloud)).await;
        let noticed = Instant::now();
        let is_unproven = matches!(
            answer,
            Existence::Unknown(Doubt::NothingElseSeen { .. } | Doubt::ScopeChanged { .. })
        );
        if !is_unproven {
            return (answer, noticed);
        }
        // It is not found. Only a list begun after that can prove it.
        let list = self.list_for(cloud, noticed).await;
        match list.filter(|list| list.began >= noticed) {
            Some(list) => (self.look_up(node, cloud, Some(list)).await, noticed),
            None => (answer, noticed),
        }
    }

    /// Many are looked up side by side: a batch would ask for those that are gone one after the other.
    async fn look_up(
        &self,
        node: &NodeView,
        cloud: &Cloud,
        list: Option<Arc<Snapshot>>,
    ) -> Existence {
        let known = list.and_then(|list| self.known_instance(node, cloud, &list));
        let provider = cloud.provider();
        let answer = match provider.instances() {
            Some(instances) if self.has_many_not_ready(cloud) => {
                Some(instances.find(&node.facts, known.as_ref()).await)
            }
            _ => {
                let look_ups = self.of_cloud(cloud, |record| Arc::clone(&record.look_ups));
                let request = (node.facts.clone(), known);
                let send = |all| find_many(Arc::clone(&provider), all);
                look_ups.ask(request, send).await
            }
        };
        answer.unwrap_or_else(|| {
            let why = "the cloud did not answer for this instance";
            let error = CloudError::new("find instance", ErrorKind::Incomplete, why);
            Existence::Unknown(Doubt::NoAnswer(error))
        })
    }

    /// The instance, if so many Nodes are not Ready that they share a list, and it shows the instance.
    async fn shown_by_shared_list(&self, node: &NodeView, cloud: &Cloud) -> Option<Instance> {
        let is_planted = Bug::DeleteOnFirstAbsence.is_planted();
        if !is_planted && !self.has_many_not_ready(cloud) {
            return None;
        }
        let age = FRESH.max(self.pause_of(node));
        // If it fails, the look-up is left.
        let list = cloud.inventory.no_older_than(age).await.ok()?;
        let found = cloud.identify(&node.facts, &list.list);
        if let Match::One(instance) = found {
            return (instance.state != InstanceState::Unknown).then(|| instance.clone());
        }
        if is_planted {
            let _ = self.parts.writer.delete(node).await;
        }
        None
    }

    /// Whether a list costs fewer calls than a look-up for every Node of a cloud that is not Ready.
    fn has_many_not_ready(&self, cloud: &Cloud) -> bool {
        let counted = self.of_cloud(cloud, |record| record.many_not_ready);
        if counted.is_some_and(|at| at.elapsed() < COUNT_PERIOD) {
            return true;
        }
        let nodes = self.nodes_of(cloud);
        let not_ready = nodes.iter().filter(|it| it.readiness != Readiness::Ready);
        let is_many = not_ready.count() > FEW_NODES.max(nodes.len() / INSTANCES_PER_PAGE);
        let counted = is_many.then(Instant::now);
        self.of_cloud(cloud, |record| record.many_not_ready = counted);
        is_many
    }

    /// Another instance that the list shows, one of this cluster if there is any.
    fn known_instance(
        &self,
        node: &NodeView,
        cloud: &Cloud,
        list: &Arc<Snapshot>,
    ) -> Option<KnownInstance> {
        let id = node.facts.provider_id.as_ref()?;
        let known = self.parts.guard().known_in(cloud, list);
        list.list.known_instance_besides(id, |other| {
            known.contains(other) || Bug::IgnoreDoubt.is_planted()
        })
    }
}

/// One call for look-ups in a row that have the same known instance: nearly always one for all.
async fn find_many(provider: Arc<dyn CloudProvider>, look_ups: Vec<LookUp>) -> Vec<Existence> {
    let Some(instances) = provider.instances() else {
        return Vec::new();
    };
    let mut answers = Vec::with_capacity(look_ups.len());
    for alike in look_ups.chunk_by(|(_, one), (_, other)| one == other) {
        let nodes: Vec<_> = alike.iter().map(|(node, _)| node.clone()).collect();
        let known = alike.first().and_then(|(_, known)| known.as_ref());
        let found = instances.find_many(&nodes, known).await;
        let is_whole = found.len() == nodes.len();
        answers.extend(found);
        if !is_whole {
            break;
        }
    }
    answers
}
