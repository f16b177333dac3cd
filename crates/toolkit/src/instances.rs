//! Instances from a list and look-ups, with the proof rule in one place: a Node is deleted only if this module says
//! that its instance is [`Gone`](Existence::Gone).

mod joined;
mod rest;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use cloudkeel_api::{
    Clock, CloudError, Doubt, ErrorKind, Existence, GoneProof, Instance, InstanceList, Instances,
    KnownInstance, Match, NodeAddress, NodeFacts, Priority, ProviderId, Shared,
};

pub use self::joined::JoinedInstances;
pub use self::rest::{RestInstance, RestInstances};
pub use self::source::{
    InstanceSource, Listed, LookupError, Search, by_id_or_name, by_id_uuid_or_name, not_ours,
};
use crate::HasId;

/// How many known instances are looked up before a credential counts as blind.
const KNOWN_INSTANCES: usize = 3;

/// [`Instances`] from the functions of a cloud. The rule is the same for every cloud:
///
/// * An empty list is believed only if the instance that was last seen is gone as well.
/// * Absence from a list, or from an answer for many IDs, proves nothing: each is looked up by itself.
/// * "No such instance" is believed only if the same credential, asked right after that, still shows a known
///   instance: the one that the controller knows, or others of the list that showed it.
/// * A tombstone proves itself.
/// * An ID of another scheme or scope, a name that several instances have, and every error prove nothing.
pub struct ProvenInstances<S: InstanceSource> {
    source: S,
    clock: Arc<dyn Clock>,
    /// What the last list of our scope showed that was not empty.
    last_listed: Mutex<Vec<S::Id>>,
}

/// A Node that is asked about by its ID.
#[derive(Clone, Copy)]
struct Asked<'a> {
    node: &'a NodeFacts,
    text: &'a ProviderId,
}

/// What an answer for many IDs says about one of them.
enum Lookup {
    Found(Existence),
    /// It is not there, by the error of a look-up for this very ID.
    Missing(CloudError),
}

impl<S: InstanceSource> ProvenInstances<S> {
    /// The instances that these functions show.
    pub fn new(source: S, clock: Arc<dyn Clock>) -> Self {
        Self {
            source,
            clock,
            last_listed: Mutex::default(),
        }
    }

    /// The functions of the cloud.
    pub const fn source(&self) -> &S {
        &self.source
    }

    fn is_live(&self, item: &S::Item) -> bool {
        self.source.terminated(item).is_none()
    }

    fn last_listed(&self) -> MutexGuard<'_, Vec<S::Id>> {
        let last = self.last_listed.lock();
        last.unwrap_or_else(PoisonError::into_inner)
    }

    /// All instances, of which an empty list is doubted.
    async fn list_items(&self) -> Result<Listed<S::Item>, CloudError> {
        let listed = self.source.list().await?;
        if listed.scope != self.source.scope() {
            return Ok(listed);
        }
        let live = listed.items.iter().filter(|item| self.is_live(item));
        let ids: Vec<_> = live.map(HasId::id).collect();
        if ids.is_empty() {
            self.check_emptiness().await?;
        } else {
            *self.last_listed() = ids;
        }
        Ok(listed)
    }

    async fn check_emptiness(&self) -> Result<(), CloudError> {
        let Some(last) = self.last_listed().first().cloned() else {
            return Ok(());
        };
        match self.source.get(&last).await {
            Err(LookupError::Cloud(error)) if error.is_not_found() => Ok(()),
            Err(LookupError::Cloud(error)) => Err(error),
            Err(LookupError::OtherScope(now)) => Err(CloudError::new(
                "list instances",
                ErrorKind::Incomplete,
                format!("the list is empty, and a look-up was answered for {now}"),
            )),
            Ok(item) if !self.is_live(&item) => Ok(()),
            Ok(_) => Err(CloudError::new(
                "list instances",
                ErrorKind::Incomplete,
                format!("the list is empty, but instance {last} is there"),
            )),
        }
    }

    /// What an instance that the cloud shows says about the Node with this ID.
    async fn shown(&self, id: ProviderId, item: &S::Item, operation: &str) -> Existence {
        let (scope, now) = (self.source.scope(), self.clock.now());
        if let Some(state) = self.source.terminated(item) {
            let proof = GoneProof::terminated(id, operation, state, &scope, now);
            return Existence::Gone(proof);
        }
        let instance = self.source.instance(item);
        if !instance.is_summary {
            return Existence::present(instance);
        }
        let described = self.source.describe(vec![instance], Priority::Urgent).await;
        match described.into_iter().next() {
            Some(Ok(instance)) => Existence::present(instance),
            Some(Err(error)) => Existence::Unknown(Doubt::NoAnswer(error)),
            None => Existence::Unknown(Doubt::NoAnswer(CloudError::new(
                "describe instance",
                ErrorKind::Incomplete,
                "the cloud did not describe it",
            ))),
        }
    }

    /// Looks the instance of a Node up by its ID.
    async fn look_up(&self, Asked { node, text }: Asked<'_>, id: &S::Id) -> Lookup {
        match self.source.get_for(node, id).await {
            Ok(item) => Lookup::Found(self.shown(text.clone(), &item, "look up instance").await),
            Err(LookupError::Cloud(error)) if error.is_not_found() => Lookup::Missing(error),
            Err(LookupError::Cloud(error)) if error.kind() == ErrorKind::NotOurs => {
                Lookup::Found(not_ours(text, error.message()))
            }
            Err(error) => Lookup::Found(Existence::Unknown(self.doubt(error))),
        }
    }

    fn doubt(&self, error: LookupError) -> Doubt {
        match error {
            LookupError::Cloud(error) => Doubt::NoAnswer(error),
            LookupError::OtherScope(now) => Doubt::ScopeChanged {
                was: self.source.scope(),
                now,
            },
        }
    }

    /// Whether the credential still shows an instance that it showed before, asked right after it said that
    /// `missing` are not there. Returns those of them that it shows after all.
    async fn confirm(
        &self,
        missing: &[S::Id],
        known: Option<&KnownInstance>,
    ) -> Result<BTreeSet<S::Id>, Doubt> {
        let blind = || Doubt::NothingElseSeen {
            scope: self.source.scope(),
        };
        let others = self.known_instances(missing, known.ok_or_else(blind)?);
        if others.is_empty() {
            return Err(blind());
        }
        if let Some(batch) = self.source.batch() {
            let ids = missing.iter().chain(&others).rev().take(batch.max(2));
            let ids: Vec<_> = ids.cloned().collect();
            let found = self.source.get_many(&ids).await;
            let found = found.map_err(|error| self.doubt(error))?;
            let live = found.iter().filter(|item| self.is_live(item));
            let mut live: BTreeSet<_> = live.map(HasId::id).collect();
            let is_seeing = others.iter().any(|other| live.remove(other));
            live.retain(|id| missing.contains(id));
            return if is_seeing { Ok(live) } else { Err(blind()) };
        }
        for other in others {
            match self.source.get(&other).await {
                Ok(item) if self.is_live(&item) => return Ok(BTreeSet::new()),
                Ok(_) => {}
                Err(LookupError::Cloud(error)) if error.is_not_found() => {}
                Err(error) => return Err(self.doubt(error)),
            }
        }
        Err(blind())
    }

    /// The instance that the controller knows, and others that were listed together with it: a credential that
    /// was exchanged meanwhile finds instances too, but not those. Where the known one is of another part of the
    /// cloud, any that was listed.
    fn known_instances(&self, missing: &[S::Id], known: &KnownInstance) -> Vec<S::Id> {
        let known = self.source.parse_id(known.machine()).ok();
        let listed = self.last_listed();
        let is_beside = known.as_ref().is_none_or(|known| listed.contains(known));
        let others = listed.iter().filter(|_| is_beside);
        let others = others.filter(|id| !missing.contains(id) && Some(*id) != known.as_ref());
        let others = others.take(KNOWN_INSTANCES).cloned();
        let known = known.clone().filter(|known| !missing.contains(known));
        known.into_iter().chain(others).collect()
    }

    /// The proofs for instances that are missing, or what they lack.
    async fn prove(
        &self,
        missing: Vec<(S::Id, ProviderId, CloudError)>,
        known: Option<&KnownInstance>,
    ) -> Vec<(S::Id, Existence)> {
        if missing.is_empty() {
            return Vec::new();
        }
        let ids: Vec<_> = missing.iter().map(|(id, ..)| id.clone()).collect();
        let confirmed = self.confirm(&ids, known).await;
        let (scope, now) = (self.source.scope(), self.clock.now());
        let prove = |(id, text, error)| {
            let existence = match &confirmed {
                Ok(shown) if shown.contains(&id) => {
                    Existence::Unknown(Doubt::SeenMomentsAgo { at: now })
                }
                Ok(_) => Existence::from_lookup_error(text, error, &scope, known, now),
                Err(doubt) => Existence::Unknown(repeated(doubt)),
            };
            (id, existence)
        };
        missing.into_iter().map(prove).collect()
    }

    fn parse<'a>(&self, node: &'a NodeFacts) -> Option<(S::Id, Asked<'a>)> {
        let text = node.provider_id.as_ref()?;
        let id = self.source.parse_id(text).ok()?;
        Some((id, Asked { node, text }))
    }

    /// Looks many instances up; what is missing is confirmed once for all of them.
    async fn look_up_many(
        &self,
        ids: BTreeMap<S::Id, Asked<'_>>,
        known: Option<&KnownInstance>,
    ) -> BTreeMap<S::Id, Existence> {
        let mut found = self.look_up_together(&ids).await;
        let mut missing = Vec::new();
        for (id, asked) in ids {
            if found.contains_key(&id) {
                continue;
            }
            match self.look_up(asked, &id).await {
                Lookup::Found(existence) => {
                    found.insert(id, existence);
                }
                Lookup::Missing(error) => missing.push((id, asked.text.clone(), error)),
            }
        }
        found.extend(self.prove(missing, known).await);
        found
    }

    /// What answers for many say: those that they show exist, and of those that they do not show nothing is
    /// known yet.
    async fn look_up_together(
        &self,
        ids: &BTreeMap<S::Id, Asked<'_>>,
    ) -> BTreeMap<S::Id, Existence> {
        let mut found = BTreeMap::new();
        let keys: Vec<_> = ids.keys().cloned().collect();
        let items = match self.source.batch() {
            Some(batch) if keys.len() > 1 => {
                let mut items = Vec::new();
                for keys in keys.chunks(batch.max(1)) {
                    match self.source.get_many(keys).await {
                        Ok(some) => items.extend(some),
                        // One of them may be at fault, so each is looked up by itself.
                        Err(LookupError::Cloud(error)) if is_refusal(&error) => {}
                        Err(error) => {
                            let doubt = self.doubt(error);
                            let unknown = || Existence::Unknown(repeated(&doubt));
                            found.extend(keys.iter().map(|id| (id.clone(), unknown())));
                        }
                    }
                }
                items
            }
            None if keys.len() >= self.source.list_from() => self.listed_in_scope().await,
            _ => Vec::new(),
        };
        for item in items {
            let id = item.id();
            if let Some(asked) = ids.get(&id) {
                let existence = self
                    .shown(asked.text.clone(), &item, "look up instances")
                    .await;
                found.insert(id, existence);
            }
        }
        found
    }

    async fn listed_in_scope(&self) -> Vec<S::Item> {
        match self.list_items().await {
            Ok(listed) if listed.scope == self.source.scope() => listed.items,
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    async fn find_by_search(&self, node: &NodeFacts) -> Existence {
        let search = match self.source.search(node).await {
            Ok(search) => search,
            Err(error) => return Existence::Unknown(Doubt::NoAnswer(error)),
        };
        let live = search.items.iter().filter(|item| self.is_live(item));
        let live: Vec<_> = live.collect();
        if let [item] = live.as_slice() {
            let id = self.source.instance(item).id;
            return self.shown(id, item, "search instance").await;
        }
        let found: Vec<_> = live.into_iter().map(|i| self.source.instance(i)).collect();
        let existence = Match::of(found.iter().collect()).into_existence(&search.looked_for);
        if let Existence::Unknown(doubt @ Doubt::Ambiguous { .. }) = &existence {
            self.source.ambiguous(node, doubt);
        }
        existence
    }
}

/// A doubt that holds for several instances.
fn repeated(doubt: &Doubt) -> Doubt {
    match doubt {
        Doubt::NoAnswer(error) => Doubt::NoAnswer(error.clone_without_source()),
        Doubt::ScopeChanged { was, now } => Doubt::ScopeChanged {
            was: was.clone(),
            now: now.clone(),
        },
        Doubt::NothingElseSeen { scope } => Doubt::NothingElseSeen {
            scope: scope.clone(),
        },
        other => {
            let (kind, message) = (ErrorKind::Other, other.to_string());
            Doubt::NoAnswer(CloudError::new("look up instances", kind, message))
        }
    }
}

/// Whether the cloud works and refused one of the IDs.
fn is_refusal(error: &CloudError) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound)
}

#[async_trait]
impl<S: InstanceSource> Instances for ProvenInstances<S> {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        let taken = self.clock.now();
        let Listed { scope, items } = self.list_items().await?;
        let live = items.iter().filter(|item| self.is_live(item));
        let instances = live.map(|item| self.source.instance(item));
        Ok(InstanceList::complete(scope, taken, instances))
    }

    async fn find(&self, node: &NodeFacts, known: Option<&KnownInstance>) -> Existence {
        let Some(text) = &node.provider_id else {
            return self.find_by_search(node).await;
        };
        let id = match self.source.parse_id(text) {
            Ok(id) => id,
            Err(why) => return not_ours(text, why),
        };
        match self.look_up(Asked { node, text }, &id).await {
            Lookup::Found(existence) => existence,
            Lookup::Missing(error) => {
                let missing = vec![(id, text.clone(), error)];
                let proven = self.prove(missing, known).await;
                let proven = proven.into_iter().next().map(|(_, existence)| existence);
                proven.unwrap_or_else(|| not_ours(text, "it was not looked up"))
            }
        }
    }

    async fn find_many(
        &self,
        nodes: &[Shared<NodeFacts>],
        known: Option<&KnownInstance>,
    ) -> Vec<Existence> {
        let ids = nodes.iter().filter_map(|node| self.parse(node)).collect();
        let mut found = self.look_up_many(ids, known).await;
        let mut answers = Vec::with_capacity(nodes.len());
        for node in nodes {
            let batched = self.parse(node).and_then(|(id, _)| found.remove(&id));
            answers.push(match batched {
                Some(existence) => existence,
                // No ID, another cloud's, or the same twice.
                None => self.find(node, known).await,
            });
        }
        answers
    }

    async fn describe(
        &self,
        instances: Vec<Instance>,
        priority: Priority,
    ) -> Vec<Result<Instance, CloudError>> {
        self.source.describe(instances, priority).await
    }

    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        self.source.identify(node, list)
    }

    fn addresses(&self, instance: &Instance, node: &NodeFacts) -> Vec<NodeAddress> {
        self.source.addresses(instance, node)
    }
}

#[cfg(test)]
mod tests;
