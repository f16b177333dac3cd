//! Which instance is a Node's? A few Nodes are looked up one by one; when many wait, one list serves them all.
//!
//! A Node without a provider ID is matched by its name, its system UUID or its addresses, as the provider decides. The
//! read must have begun after the Node was first seen: an older one may show an instance of that name that is gone by
//! now, and a provider ID can never be changed. The same read has to show a known instance of this cluster, if any of
//! its Nodes is Ready: another project may have an instance of the same name.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Doubt, Existence, Instance, Match, NodeAddress, Priority, names};
use tokio::time::Instant;

use super::NodeController;
use crate::clouds::{
    Cloud, NodeMatcher, OUTDATED, Owner, ScopeCheck, Snapshot, has_other_uuid, in_words, owner_of,
    shows_addresses,
};
use crate::planted::Bug;
use crate::runtime::{FailureMessage, Verdict};
use crate::view::NodeView;

/// From how many Nodes on, waiting or in work, a list is cheaper than a call for each.
pub(super) const BATCH_THRESHOLD: usize = 4;
/// A list that ended this recently still serves a batch, however long it takes to write it; a new Node that it does
/// not show is looked up.
const FRESH: Duration = Duration::from_mins(2);
/// How old a list may be that does not show the instance of a new Node.
const NEWCOMERS: Duration = Duration::from_secs(5);
/// When no other Node was created for this long, no other would share a list that begins now.
const QUIET: Duration = Duration::from_millis(50);
/// While Nodes keep coming, one waits this long for others to share a list, for each of its pages. That is at most 20
/// calls a second.
const WAIT_PER_PAGE: Duration = Duration::from_millis(50);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// What a cloud shows on a page, roughly.
const INSTANCES_PER_PAGE: usize = 50;

/// The instance of a Node.
pub(super) struct NodeInstance {
    pub(super) instance: Instance,
    /// The addresses that the provider gives this Node, which may be more than those of the instance.
    pub(super) addresses: Vec<NodeAddress>,
    /// When the cloud was asked.
    pub(super) asked: Instant,
}

/// Why there is no instance.
pub(super) enum NoInstance {
    /// The Node belongs to no cloud here: no write, no call, no retry.
    NotOurs,
    /// It may appear later.
    Unresolved(Unresolved),
}

/// Why a cloud cannot say which instance it is, and when to ask again.
pub(super) struct Unresolved {
    pub(super) why: FailureMessage,
    pub(super) verdict: Verdict,
    /// Whether the Node has to wait even if another cloud knows it.
    must_wait: bool,
}

impl Unresolved {
    fn in_cloud(cloud: &Cloud, why: impl Display, verdict: Verdict, must_wait: bool) -> Self {
        Self {
            why: FailureMessage::from_text(why).in_cloud(&cloud.name),
            verdict,
            must_wait,
        }
    }

    fn user_action(why: impl Display) -> NoInstance {
        NoInstance::Unresolved(Self {
            why: FailureMessage::from_text(why),
            verdict: Verdict::UserAction,
            must_wait: true,
        })
    }

    fn no_answer(cloud: &Cloud, error: &CloudError) -> Self {
        Self {
            why: FailureMessage::from_cloud(error).in_cloud(&cloud.name),
            verdict: Verdict::of(error),
            must_wait: true,
        }
    }
}

/// The read that showed an instance.
enum Read {
    List(Arc<Snapshot>),
    /// A look-up that began then.
    LookUp(Instant),
}

impl NodeController {
    pub(super) async fn find_instance(&self, node: &NodeView) -> Result<NodeInstance, NoInstance> {
        match owner_of(&node.facts, &self.parts.clouds) {
            Owner::Unowned {
                why,
                is_malformed: true,
            } => Err(Unresolved::user_action(format_args!(
                "{why}; a provider ID cannot be changed: delete the Node and register it again"
            ))),
            Owner::Unowned { .. } => Err(NoInstance::NotOurs),
            Owner::Cloud(cloud) => self.ask_all(node, std::slice::from_ref(&cloud)).await,
            Owner::Ask(clouds) => self.ask_all(node, &clouds).await,
        }
    }

    /// Exactly one cloud may know the Node, and it has to wait for a cloud that cannot answer.
    async fn ask_all(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Result<NodeInstance, NoInstance> {
        let asked = Instant::now();
        let answers = clouds.iter().map(|cloud| self.ask(cloud, node));
        let answers = futures::future::join_all(answers).await;
        let (mut found, mut unresolved) = (Vec::new(), None::<Unresolved>);
        for (cloud, answer) in clouds.iter().zip(answers) {
            match answer {
                Ok(instance) => found.push((cloud, instance)),
                Err(new) if new.must_wait || unresolved.is_none() => {
                    unresolved = unresolved.filter(|known| known.must_wait).or(Some(new));
                }
                Err(_) => {}
            }
        }
        if found.len() > 1 {
            let all: Vec<_> = found.iter().map(|(cloud, _)| cloud.name.as_str()).collect();
            let all = all.join(", ");
            let why = format!(
                "several clouds have a machine for this Node: {all}; label it {}=NAME",
                names::CLOUD_LABEL
            );
            return Err(Unresolved::user_action(why));
        }
        match (found.pop(), unresolved) {
            (Some((cloud, instance)), unresolved)
                if unresolved.as_ref().is_none_or(|it| !it.must_wait) =>
            {
                Ok(NodeInstance {
                    addresses: offered(cloud, &instance, node),
                    instance,
                    asked,
                })
            }
            (_, Some(unresolved)) => Err(NoInstance::Unresolved(unresolved)),
            (_, None) => Err(NoInstance::NotOurs),
        }
    }

    /// An instance that was matched by name counts if the read that showed it is confirmed.
    async fn ask(&self, cloud: &Cloud, node: &NodeView) -> Result<Instance, Unresolved> {
        let (instance, read) = self.look_up(cloud, node).await?;
        if node.facts.provider_id.is_none() {
            self.confirm(cloud, node, &instance, &read).await?;
        }
        let described = cloud.describe(instance, Priority::Urgent);
        let instance = described
            .await
            .map_err(|error| Unresolved::no_answer(cloud, &error))?;
        match &instance.not_ready {
            None => Ok(instance),
            Some(why) => {
                let why = format!("{} is not ready: {why}", instance.id);
                Err(Unresolved::in_cloud(cloud, why, Verdict::Failed, true))
            }
        }
    }

    async fn confirm(
        &self,
        cloud: &Cloud,
        node: &NodeView,
        instance: &Instance,
        read: &Read,
    ) -> Result<(), Unresolved> {
        if Bug::MatchInAnyProject.is_planted() {
            return Ok(());
        }
        let guard = self.parts.guard();
        let has_other_uuid = has_other_uuid(instance, &node.facts);
        let check = match read {
            Read::List(list) => guard.check_list(cloud, list).await,
            Read::LookUp(_) if guard.ready_in(cloud) == 0 && !has_other_uuid => return Ok(()),
            Read::LookUp(began) => guard.confirmed_since(cloud, *began, *began).await,
        };
        let check = match check {
            ScopeCheck::Confirmed if guard.is_stranger(cloud, instance, &node.facts) => {
                ScopeCheck::Unrecognized { ready: 0 }
            }
            check => check,
        };
        match check {
            // In a new cluster, or one whose machines were all replaced, there is none that could be seen.
            ScopeCheck::Confirmed => Ok(()),
            ScopeCheck::Unrecognized { ready: 0 } if !has_other_uuid => Ok(()),
            ScopeCheck::Unrecognized { ready: 0 } => {
                let why = "it shows a machine of this name, but with another system UUID, and none of the \
                           machines of other Nodes: check that the credential belongs to this cluster's project";
                Err(Unresolved::in_cloud(cloud, why, Verdict::Failed, true))
            }
            ScopeCheck::Unrecognized { ready } => {
                let why = format!(
                    "it shows a machine of this name, but none of the machines of the {ready} Ready Nodes: check \
                     that the credential belongs to this cluster's project"
                );
                Err(Unresolved::in_cloud(cloud, why, Verdict::Failed, true))
            }
            ScopeCheck::OtherCloud(other) => {
                let why = format!(
                    "it shows a machine of this name, but also the machines of cloud {other}: check that the \
                     credentials of the two clouds are not the same"
                );
                Err(Unresolved::in_cloud(cloud, why, Verdict::Failed, true))
            }
            ScopeCheck::Outdated => {
                let why = "it showed another project until now";
                let soon = Verdict::AgainAfter(OUTDATED);
                Err(Unresolved::in_cloud(cloud, why, soon, true))
            }
            ScopeCheck::Unavailable(error) => Err(Unresolved::no_answer(cloud, &error)),
        }
    }

    async fn look_up(
        &self,
        cloud: &Cloud,
        node: &NodeView,
    ) -> Result<(Instance, Read), Unresolved> {
        let unresolved = |why: &dyn Display, verdict, must_wait| {
            Err(Unresolved::in_cloud(cloud, why, verdict, must_wait))
        };
        let provider = cloud.provider();
        let Some(instances) = provider.instances() else {
            return unresolved(&"it has no machines", Verdict::Done, false);
        };
        if let Some(list) = self.list_for(cloud, node).await {
            let list = list.map_err(|error| Unresolved::no_answer(cloud, &error))?;
            if let Match::One(instance) = self.match_in(cloud, &list, node) {
                return Ok((instance.clone(), Read::List(list)));
            }
        }
        if !cloud.matchers.is_empty() && !is_matched_by_id(node) {
            return self.match_as_configured(cloud, node).await;
        }
        let began = Instant::now();
        match instances.find(&node.facts, None).await {
            Existence::Present(instance) if self.is_predecessors(&instance, node) => {
                let what = "the machine of the Node that had this name before";
                let why = format!("it shows only {}, {what}", instance.id);
                unresolved(&why, Verdict::Failed, true)
            }
            Existence::Present(instance) => Ok((*instance, Read::LookUp(began))),
            Existence::Gone(proof) => Err(Unresolved {
                why: FailureMessage::from_text(proof),
                verdict: Verdict::Failed,
                must_wait: false,
            }),
            Existence::Unknown(Doubt::NoAnswer(error)) => Err(Unresolved::no_answer(cloud, &error)),
            Existence::Unknown(doubt @ Doubt::Ambiguous { .. }) => {
                unresolved(&doubt, Verdict::UserAction, true)
            }
            Existence::Unknown(doubt) => unresolved(&doubt, Verdict::Failed, false),
        }
    }

    /// The instance of a Node without an ID, by the configured matchers in a list that began after the Node was created.
    async fn match_as_configured(
        &self,
        cloud: &Cloud,
        node: &NodeView,
    ) -> Result<(Instance, Read), Unresolved> {
        let seen = self.parts.nodes.first_seen(node);
        let inventory = &cloud.inventory;
        let list = inventory.begun_after_and_no_older_than(seen, NEWCOMERS);
        let list = list
            .await
            .map_err(|error| Unresolved::no_answer(cloud, &error))?;
        let looked_for = in_words(&cloud.matchers);
        let candidates = match self.match_in(cloud, &list, node) {
            Match::One(instance) => return Ok((instance.clone(), Read::List(list))),
            Match::None => Vec::new(),
            Match::Many(all) => all,
        };
        let cannot_say =
            cloud.matchers.contains(&NodeMatcher::InternalIp) && !shows_addresses(&list.list);
        let (why, verdict, must_wait) = if !candidates.is_empty() {
            let all = candidates.iter();
            let all: Vec<_> = all.map(|it| format!("{} ({})", it.id, it.name)).collect();
            let all = all.join(", ");
            let why = format!("several machines match it by nodes.match ({looked_for}): {all}");
            (why, Verdict::UserAction, true)
        } else if cannot_say {
            let why = "its list shows no addresses, so nodes.match cannot contain internalIP";
            (why.to_owned(), Verdict::UserAction, true)
        } else {
            let why = format!("no machine matches it by nodes.match ({looked_for})");
            (why, Verdict::Failed, !list.list.is_complete())
        };
        Err(Unresolved::in_cloud(cloud, why, verdict, must_wait))
    }

    /// Which instance of a list belongs to a Node. A list that is older than a Node without an ID cannot say.
    pub(super) fn match_in<'a>(
        &self,
        cloud: &Cloud,
        list: &'a Snapshot,
        node: &NodeView,
    ) -> Match<'a> {
        let began_later = |seen| list.began >= seen;
        let is_conclusive =
            is_matched_by_id(node) || self.parts.nodes.first_seen(node).is_some_and(began_later);
        let matched = if is_conclusive {
            cloud.identify(&node.facts, &list.list)
        } else {
            Match::None
        };
        match matched {
            Match::One(instance) if self.is_predecessors(instance, node) => Match::None,
            matched => matched,
        }
    }

    /// Whether an instance that was found by name is that of a Node which had the name before.
    fn is_predecessors(&self, instance: &Instance, node: &NodeView) -> bool {
        !is_matched_by_id(node) && self.predecessors.lock().had(instance, &node.facts)
    }

    /// A list that can say which instance is this Node's, if it is not cheaper to look it up.
    async fn list_for(
        &self,
        cloud: &Cloud,
        node: &NodeView,
    ) -> Option<Result<Arc<Snapshot>, Arc<CloudError>>> {
        let waiting = self.queue.load();
        if waiting < BATCH_THRESHOLD {
            return None;
        }
        if is_matched_by_id(node) {
            return Some(cloud.inventory.no_older_than(FRESH).await);
        }
        let seen = self.parts.nodes.first_seen(node)?;
        if !has_list_since(cloud, seen) {
            if waiting < pages(cloud) {
                return None;
            }
            self.wait_for_batch(cloud, seen).await;
        }
        let inventory = &cloud.inventory;
        let list = inventory.begun_after_and_no_older_than(Some(seen), FRESH);
        Some(list.await)
    }

    /// Notes that a Node was created, so that others may wait for more of them.
    pub(super) fn note_arrival(&self) {
        // Those of the first list came all together.
        if self.parts.nodes.has_synced() {
            *self.last_arrival.lock() = Some(Instant::now());
        }
    }

    /// Waits for other Nodes that are being created, so that one list serves all of them.
    async fn wait_for_batch(&self, cloud: &Cloud, seen: Instant) {
        let pages = u32::try_from(pages(cloud)).unwrap_or(u32::MAX);
        let latest = seen + WAIT_PER_PAGE.saturating_mul(pages).min(LONGEST_WAIT);
        loop {
            let arrival = *self.last_arrival.lock();
            let Some(arrival) = arrival else {
                return;
            };
            let due = latest.min(arrival + QUIET);
            if due <= Instant::now() || has_list_since(cloud, seen) {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }
}

/// Whether any list can say which instance it is.
fn is_matched_by_id(node: &NodeView) -> bool {
    node.facts.provider_id.is_some() || Bug::MatchInOldList.is_planted()
}

/// Whether a list is there already that began at or after this moment.
fn has_list_since(cloud: &Cloud, moment: Instant) -> bool {
    let latest = cloud.inventory.latest();
    latest.is_some_and(|list| list.began >= moment && list.ended.elapsed() <= FRESH)
}

/// How many calls a list costs, by what the last one showed.
fn pages(cloud: &Cloud) -> usize {
    let latest = cloud.inventory.latest();
    let known = latest.map_or(0, |list| list.list.instances().len());
    known.div_ceil(INSTANCES_PER_PAGE).max(1)
}

pub(super) fn offered(cloud: &Cloud, instance: &Instance, node: &NodeView) -> Vec<NodeAddress> {
    let provider = cloud.provider();
    let instances = provider.instances();
    instances.map_or_else(Vec::new, |it| it.addresses(instance, &node.facts))
}
