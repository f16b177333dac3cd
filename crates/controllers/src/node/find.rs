//! Which instance is a Node's? A few Nodes are looked up one by one; when many wait, one list serves them all.
//!
//! A Node without a provider ID is matched by its name, or by what else it says of itself. That takes a read that
//! began after the Node was first seen: an older one may show an instance of that name which is gone by now, and an
//! ID that is written once can never be changed. The same read has to show a known instance of this cluster, if any
//! of its Nodes is Ready: another project may have an instance of the same name.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, Doubt, Existence, Instance, Match, NodeAddress, Priority};
use tokio::time::Instant;

use super::{NodeController, lock};
use crate::clouds::{Cloud, Owner, ScopeCheck, Snapshot, owner_of};
use crate::planted::Bug;
use crate::runtime::{Cause, Verdict};
use crate::view::NodeView;

/// From how many Nodes on, waiting or in work, a list is cheaper than a call for each.
pub(super) const BATCH_THRESHOLD: usize = 4;
/// A list that ended this recently still serves a batch, however long it takes to write it; a
/// newcomer that it does not show is looked up.
pub(super) const FRESH: Duration = Duration::from_mins(2);
/// When no other Node has come for this long, no other would share a list that begins now.
const QUIET: Duration = Duration::from_millis(50);
/// While Nodes keep coming, one waits so long for others to share a list, for each of its pages. That is at most
/// 20 calls a second for as long as they come.
const PER_PAGE: Duration = Duration::from_millis(50);
/// But no longer than this.
const LONGEST: Duration = Duration::from_secs(3);
/// What a cloud shows on a page, roughly.
const INSTANCES_PER_PAGE: usize = 50;

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
    /// The Node is not this cluster's clouds': no write, no call, no retry.
    NotOurs,
    /// It may turn up.
    Unclear(Unclear),
}

/// Why a cloud cannot say which instance it is.
pub(super) struct Unclear {
    pub(super) why: Cause,
    pub(super) verdict: Verdict,
    /// Whether the Node has to wait even if another cloud claims it.
    holds_back: bool,
}

impl Unclear {
    fn in_cloud(cloud: &Cloud, why: Cause, verdict: Verdict, holds_back: bool) -> Self {
        let why = why.in_cloud(&cloud.name);
        Self {
            why,
            verdict,
            holds_back,
        }
    }

    fn needs_person(why: Cause) -> NotFound {
        NotFound::Unclear(Self {
            why,
            verdict: Verdict::NeedsPerson,
            holds_back: true,
        })
    }

    fn no_answer(cloud: &Cloud, error: &CloudError) -> Self {
        Self::in_cloud(cloud, Cause::of_cloud(error), Verdict::of(error), true)
    }
}

/// The read that showed an instance.
enum Read {
    List(Arc<Snapshot>),
    /// A look-up that began then.
    LookUp(Instant),
}

impl NodeController {
    pub(super) async fn find_machine(&self, node: &NodeView) -> Result<Machine, NotFound> {
        match owner_of(&node.facts, &self.parts.clouds) {
            Owner::Nobody {
                why,
                is_malformed: true,
            } => Err(Unclear::needs_person(Cause::of_text(format_args!(
                "{why}; it can never be changed: delete the Node and register it anew"
            )))),
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
        let (mut found, mut unclear) = (Vec::new(), None::<Unclear>);
        for (cloud, answer) in clouds.iter().zip(answers) {
            match answer {
                Ok(instance) => found.push((cloud, instance)),
                Err(new) if new.holds_back || unclear.is_none() => {
                    unclear = unclear.filter(|known| known.holds_back).or(Some(new));
                }
                Err(_) => {}
            }
        }
        if found.len() > 1 {
            let names: Vec<_> = found.iter().map(|(cloud, _)| cloud.name.as_str()).collect();
            let names = names.join(", ");
            let why = Cause::of_text(format_args!("several clouds claim this Node: {names}"));
            return Err(Unclear::needs_person(why));
        }
        match (found.pop(), unclear) {
            (Some((cloud, instance)), unclear)
                if unclear.as_ref().is_none_or(|it| !it.holds_back) =>
            {
                Ok(Machine {
                    addresses: offered(cloud, &instance, node),
                    instance,
                    learnt,
                })
            }
            (_, Some(unclear)) => Err(NotFound::Unclear(unclear)),
            (_, None) => Err(NotFound::NotOurs),
        }
    }

    /// An instance that was matched by name counts if the read that showed it is confirmed.
    async fn ask(&self, cloud: &Cloud, node: &NodeView) -> Result<Instance, Unclear> {
        let (instance, read) = self.look_for(cloud, node).await?;
        if node.facts.provider_id.is_none() {
            self.confirm(cloud, &read).await?;
        }
        let described = cloud.descriptions.describe(instance, Priority::Urgent);
        let instance = described
            .await
            .map_err(|error| Unclear::no_answer(cloud, &error))?;
        match &instance.not_ready {
            None => Ok(instance),
            Some(why) => {
                let why = Cause::of_text(format_args!("{} is not ready: {why}", instance.id));
                Err(Unclear::in_cloud(cloud, why, Verdict::Failed, true))
            }
        }
    }

    async fn confirm(&self, cloud: &Cloud, read: &Read) -> Result<(), Unclear> {
        let guard = self.guard();
        let check = match read {
            Read::List(list) => guard.check_list(cloud, list).await,
            Read::LookUp(_) if guard.ready_in(cloud) == 0 => return Ok(()),
            Read::LookUp(began) => guard.confirmed_since(cloud, *began).await,
        };
        match check {
            // In a new cluster, or one whose machines were all replaced, there is none that could be seen.
            ScopeCheck::Confirmed | ScopeCheck::Unrecognized { ready: 0 } => Ok(()),
            ScopeCheck::Unrecognized { ready } => {
                let why = Cause::of_text(format_args!(
                    "there is a machine of this name, but none of the machines of the {ready} Nodes that \
                     are Ready: its credential may be that of another project"
                ));
                Err(Unclear::in_cloud(cloud, why, Verdict::Failed, true))
            }
            ScopeCheck::Unavailable(error) => Err(Unclear::no_answer(cloud, &error)),
        }
    }

    async fn look_for(&self, cloud: &Cloud, node: &NodeView) -> Result<(Instance, Read), Unclear> {
        let unclear = |why: Cause, verdict, holds_back| {
            Err(Unclear::in_cloud(cloud, why, verdict, holds_back))
        };
        let provider = cloud.provider();
        let Some(instances) = provider.instances() else {
            let why = Cause::of_text("it has no machines");
            return unclear(why, Verdict::Done, false);
        };
        if let Some(list) = self.list_for(cloud, node).await {
            let list = list.map_err(|error| Unclear::no_answer(cloud, &error))?;
            if let Match::One(instance) = self.match_in(cloud, &list, node) {
                return Ok((instance.clone(), Read::List(list)));
            }
        }
        let began = Instant::now();
        match instances.find(&node.facts, None).await {
            Existence::Present(instance) if self.is_predecessors(&instance, node) => {
                let why = Cause::of_text(format_args!(
                    "it shows only {}, the machine of the Node that had this name before",
                    instance.id
                ));
                unclear(why, Verdict::Failed, true)
            }
            Existence::Present(instance) => Ok((*instance, Read::LookUp(began))),
            Existence::Gone(proof) => Err(Unclear {
                why: Cause::of_text(proof),
                verdict: Verdict::Failed,
                holds_back: false,
            }),
            Existence::Unknown(Doubt::NoAnswer(error)) => Err(Unclear::no_answer(cloud, &error)),
            Existence::Unknown(doubt @ Doubt::Ambiguous { .. }) => {
                unclear(Cause::of_text(doubt), Verdict::NeedsPerson, true)
            }
            Existence::Unknown(doubt) => unclear(Cause::of_text(doubt), Verdict::Failed, false),
        }
    }

    /// Which instance of a list belongs to a Node. A list that is older than a Node without an ID cannot tell.
    pub(super) fn match_in<'a>(
        &self,
        cloud: &Cloud,
        list: &'a Snapshot,
        node: &NodeView,
    ) -> Match<'a> {
        let began_later = |seen| list.began >= seen;
        let may_tell =
            is_matched_by_id(node) || self.parts.nodes.first_seen(node).is_some_and(began_later);
        let provider = cloud.provider();
        let matched = match provider.instances() {
            Some(instances) if may_tell => instances.identify(&node.facts, &list.sweep),
            _ => Match::None,
        };
        match matched {
            Match::One(instance) if self.is_predecessors(instance, node) => Match::None,
            matched => matched,
        }
    }

    /// Whether an instance that was found by name is that of a Node which had the name before.
    fn is_predecessors(&self, instance: &Instance, node: &NodeView) -> bool {
        !is_matched_by_id(node) && lock(&self.predecessors).had(instance, &node.facts)
    }

    /// A list that can tell which instance is this Node's, if it is not cheaper to look it up.
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
            self.gather(cloud, seen).await;
        }
        let inventory = &cloud.inventory;
        let list = inventory.begun_after_and_no_older_than(seen, FRESH);
        Some(list.await)
    }

    /// Notes that a Node has come, so that others may wait for more of them.
    pub(super) fn note_arrival(&self) {
        // Those of the first list have come all together.
        if self.parts.nodes.has_synced() {
            *lock(&self.last_arrival) = Some(Instant::now());
        }
    }

    /// Waits for other Nodes that come now, so that one list serves all of them.
    async fn gather(&self, cloud: &Cloud, seen: Instant) {
        let pages = u32::try_from(pages(cloud)).unwrap_or(u32::MAX);
        let latest = seen + PER_PAGE.saturating_mul(pages).min(LONGEST);
        loop {
            let arrival = *lock(&self.last_arrival);
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

/// Whether any list can tell which instance it is.
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
    let known = latest.map_or(0, |list| list.sweep.instances().len());
    known.div_ceil(INSTANCES_PER_PAGE).max(1)
}

pub(super) fn offered(cloud: &Cloud, instance: &Instance, node: &NodeView) -> Vec<NodeAddress> {
    let provider = cloud.provider();
    let instances = provider.instances();
    instances.map_or_else(Vec::new, |it| it.addresses(instance, &node.facts))
}
