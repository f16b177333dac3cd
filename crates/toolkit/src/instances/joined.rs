//! One cloud of several parts: vCenters, regions, or an API for virtual and another for dedicated machines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use cloudkeel_api::{
    BlindSpot, Clock, CloudError, Doubt, Existence, Instance, InstanceList, Instances,
    KnownInstance, Match, NodeAddress, NodeFacts, Priority, ProviderId, ScopeFingerprint, Shared,
};
use futures::future::join_all;
use jiff::Timestamp;

/// [`Instances`] of several parts, of which each proves absence by itself.
///
/// An instance is gone only if every part that could have it says so with a proof of its own: each is confirmed by
/// an instance that it showed itself. All parts are asked at once. A part that does not answer is a blind spot of a list, and leaves in doubt
/// everything that it could have.
pub struct JoinedInstances {
    scope: ScopeFingerprint,
    clock: Arc<dyn Clock>,
    parts: Vec<Part>,
    on_ambiguous: Option<Box<OnAmbiguous>>,
}

type OnAmbiguous = dyn Fn(&NodeFacts, &Doubt) + Send + Sync;

struct Part {
    name: String,
    instances: Box<dyn Instances>,
    could_have: Box<dyn Fn(&ProviderId) -> bool + Send + Sync>,
    /// Whether an ID alone says that an instance is of this part.
    is_known_by_id: bool,
    last: Mutex<LastList>,
}

/// What the last list of a part showed.
#[derive(Default)]
struct LastList {
    ids: BTreeSet<ProviderId>,
    taken: Option<(ScopeFingerprint, Timestamp)>,
}

impl Part {
    fn last(&self) -> MutexGuard<'_, LastList> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an instance is of this part, as far as is known.
    fn has(&self, id: &ProviderId) -> bool {
        (self.is_known_by_id && (self.could_have)(id)) || self.last().ids.contains(id)
    }

    /// The instance by which this part is confirmed: the controller's if it is one of this part, else another one
    /// than those of these Nodes that this part has listed itself.
    fn known(&self, given: Option<&KnownInstance>, nodes: &[&NodeFacts]) -> Option<KnownInstance> {
        let given = given?;
        if self.has(given.machine()) {
            return Some(given.clone());
        }
        let last = self.last();
        let is_asked_for =
            |id: &ProviderId| nodes.iter().any(|n| n.provider_id.as_ref() == Some(id));
        let id = last.ids.iter().find(|id| !is_asked_for(id))?;
        let (scope, taken) = last.taken.as_ref()?;
        let instance = Instance::new(id.clone(), "");
        Some(KnownInstance::of(&instance, scope, *taken))
    }

    /// What this part says about those Nodes that it could have, with their places among all.
    async fn find_own(
        &self,
        nodes: &[Shared<NodeFacts>],
        known: Option<&KnownInstance>,
    ) -> Vec<(usize, Existence)> {
        let could_have = |node: &NodeFacts| {
            let id = node.provider_id.as_ref();
            id.is_none_or(|id| (self.could_have)(id))
        };
        let own = nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| could_have(node));
        let (places, own): (Vec<_>, Vec<_>) = own
            .map(|(place, node)| (place, Shared::clone(node)))
            .unzip();
        let asked: Vec<&NodeFacts> = own.iter().map(|node| &**node).collect();
        let known = self.known(known, &asked);
        let found = self.instances.find_many(&own, known.as_ref()).await;
        places.into_iter().zip(found).collect()
    }

    fn note(&self, list: &InstanceList) {
        let mut last = self.last();
        last.ids = list.instances().map(|i| i.id.clone()).collect();
        last.taken = Some((list.scope().clone(), list.taken()));
    }
}

impl JoinedInstances {
    /// A cloud without parts yet. All parts answer for the same scope.
    pub const fn new(scope: ScopeFingerprint, clock: Arc<dyn Clock>) -> Self {
        Self {
            scope,
            clock,
            parts: Vec::new(),
            on_ambiguous: None,
        }
    }

    /// What to do about a Node that several instances could be, such as an event.
    #[must_use]
    pub fn on_ambiguous(
        mut self,
        act: impl Fn(&NodeFacts, &Doubt) + Send + Sync + 'static,
    ) -> Self {
        self.on_ambiguous = Some(Box::new(act));
        self
    }

    /// Adds a part that could have any instance, such as one of several vCenters.
    #[must_use]
    pub fn with(self, name: impl Into<String>, instances: impl Instances + 'static) -> Self {
        self.add(name.into(), Box::new(instances), Box::new(|_| true), false)
    }

    /// Adds a part whose instances are known by their IDs.
    #[must_use]
    pub fn with_own(
        self,
        name: impl Into<String>,
        instances: impl Instances + 'static,
        could_have: impl Fn(&ProviderId) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.add(name.into(), Box::new(instances), Box::new(could_have), true)
    }

    fn add(
        mut self,
        name: String,
        instances: Box<dyn Instances>,
        could_have: Box<dyn Fn(&ProviderId) -> bool + Send + Sync>,
        is_known_by_id: bool,
    ) -> Self {
        self.parts.push(Part {
            name,
            instances,
            could_have,
            is_known_by_id,
            last: Mutex::default(),
        });
        self
    }

    /// The parts that could have the instance of a Node: all of them if it has no ID yet.
    fn parts_of<'a>(&'a self, node: &'a NodeFacts) -> impl Iterator<Item = &'a Part> {
        let id = node.provider_id.as_ref();
        let parts = self.parts.iter();
        parts.filter(move |part| id.is_none_or(|id| (part.could_have)(id)))
    }

    /// What several parts say about one Node.
    fn join(&self, node: &NodeFacts, answers: Vec<Existence>) -> Existence {
        if node.provider_id.is_some() {
            return join_by_id(answers);
        }
        let joined = join_by_search(node, answers);
        if let (Some(act), Existence::Unknown(doubt @ Doubt::Ambiguous { .. })) =
            (&self.on_ambiguous, &joined)
        {
            act(node, doubt);
        }
        joined
    }

    fn part_with(&self, id: &ProviderId) -> Option<&Part> {
        let listed = self.parts.iter().find(|part| part.has(id));
        listed.or_else(|| self.parts.iter().find(|part| (part.could_have)(id)))
    }
}

/// Present in one is present; gone needs the proof of all.
fn join_by_id(answers: Vec<Existence>) -> Existence {
    let mut joined = None;
    for answer in answers {
        joined = Some(match (joined, answer) {
            (_, present @ Existence::Present(_)) => return present,
            // What is not of one part may be of another.
            (None | Some(Existence::Unknown(Doubt::NotOurs { .. })), answer) => answer,
            (Some(found), Existence::Unknown(Doubt::NotOurs { .. })) => found,
            (Some(unknown @ Existence::Unknown(_)), _) | (_, unknown @ Existence::Unknown(_)) => {
                unknown
            }
            (Some(gone), Existence::Gone(_)) => gone,
        });
    }
    joined.unwrap_or_else(|| {
        let looked_for = "an ID of any part of the cloud".to_owned();
        Existence::Unknown(Doubt::NoMatch { looked_for })
    })
}

/// One instance in all parts together; a part that does not answer could have another.
fn join_by_search(node: &NodeFacts, answers: Vec<Existence>) -> Existence {
    let (mut found, mut candidates, mut words) = (Vec::new(), Vec::new(), None);
    for answer in answers {
        match answer {
            Existence::Present(instance) => found.push(instance),
            Existence::Unknown(Doubt::NoMatch { looked_for }) => words = words.or(Some(looked_for)),
            Existence::Unknown(Doubt::Ambiguous {
                candidates: several,
                looked_for,
            }) => {
                candidates.extend(several);
                words = Some(looked_for);
            }
            unanswered => return unanswered,
        }
    }
    let looked_for = words.unwrap_or_else(|| format!("the name {:?}", node.name));
    match (found.pop(), candidates.is_empty() && found.is_empty()) {
        (Some(instance), true) => Existence::Present(instance),
        (None, true) => Existence::Unknown(Doubt::NoMatch { looked_for }),
        (last, false) => {
            let found = found.into_iter().chain(last);
            candidates.extend(found.map(|instance| instance.id));
            Existence::Unknown(Doubt::Ambiguous {
                looked_for,
                candidates,
            })
        }
    }
}

#[async_trait]
impl Instances for JoinedInstances {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        let taken = self.clock.now();
        let (mut instances, mut blind_spots) = (Vec::new(), Vec::new());
        let lists = join_all(self.parts.iter().map(|part| part.instances.list())).await;
        for (part, list) in self.parts.iter().zip(lists) {
            match list {
                Ok(list) => {
                    part.note(&list);
                    instances.extend(list.instances().cloned());
                }
                Err(error) => blind_spots.push(BlindSpot {
                    part: part.name.clone(),
                    error,
                }),
            }
        }
        if blind_spots.len() == self.parts.len()
            && let Some(first) = blind_spots.drain(..).next()
        {
            return Err(first.error);
        }
        let list = InstanceList::complete(self.scope.clone(), taken, instances);
        Ok(list.with_blind_spots(blind_spots))
    }

    async fn find(&self, node: &NodeFacts, known: Option<&KnownInstance>) -> Existence {
        let answers = self.parts_of(node).map(|part| async move {
            let known = part.known(known, &[node]);
            part.instances.find(node, known.as_ref()).await
        });
        self.join(node, join_all(answers).await)
    }

    async fn find_many(
        &self,
        nodes: &[Shared<NodeFacts>],
        known: Option<&KnownInstance>,
    ) -> Vec<Existence> {
        let found = self.parts.iter().map(|part| part.find_own(nodes, known));
        let mut answers: BTreeMap<usize, Vec<Existence>> = BTreeMap::new();
        for (place, existence) in join_all(found).await.into_iter().flatten() {
            answers.entry(place).or_default().push(existence);
        }
        let nodes = nodes.iter().enumerate();
        nodes
            .map(|(place, node)| self.join(node, answers.remove(&place).unwrap_or_default()))
            .collect()
    }

    async fn describe(
        &self,
        instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        let mut instances: Vec<_> = instances.into_iter().enumerate().collect();
        let mut asked = Vec::new();
        for part in &self.parts {
            let own = |(_, instance): &(usize, Instance)| part.has(&instance.id);
            let (own, rest): (Vec<_>, Vec<_>) = instances.into_iter().partition(own);
            instances = rest;
            let (places, own): (Vec<_>, Vec<_>) = own.into_iter().unzip();
            asked.push(async move {
                let found = part.instances.describe(own, priority).await;
                places.into_iter().zip(found)
            });
        }
        let described = join_all(asked).await.into_iter().flatten();
        let mut described: BTreeMap<_, _> = described.collect();
        described.extend(instances.into_iter().map(|(place, i)| (place, Ok(i))));
        described.into_values().collect()
    }

    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        let mut found: Vec<&Instance> = Vec::new();
        for part in self.parts_of(node) {
            let matched = match part.instances.identify(node, list) {
                Match::None => Vec::new(),
                Match::One(instance) => vec![instance],
                Match::Many(several) => several,
            };
            let own = matched.into_iter().filter(|i| (part.could_have)(&i.id));
            for instance in own {
                if !found.iter().any(|known| known.id == instance.id) {
                    found.push(instance);
                }
            }
        }
        Match::of(found)
    }

    fn addresses(&self, instance: &Instance, node: &NodeFacts) -> Vec<NodeAddress> {
        match self.part_with(&instance.id) {
            Some(part) => part.instances.addresses(instance, node),
            None => instance.addresses.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
