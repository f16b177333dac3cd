//! Whether a cloud shows machines of this cluster: the only sign, in most clouds, that a credential still
//! belongs to the project that the cluster lives in.

use std::sync::Arc;

use cloudkeel_api::{
    CloudError, Doubt, Existence, Instance, Match, NodeFacts, ProviderId, Sighting, Sweep,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Cloud, Snapshot};
use crate::view::{NodeView, Readiness};

/// Machines that are looked for before it is concluded that none is shown. One may be gone for good.
const MOST_LOOKS: usize = 3;

/// What a look for our own machines told.
#[derive(Debug)]
pub(crate) enum Footing {
    /// One of them is there; or there is none that could be looked for.
    Ours,
    /// None of them is.
    Strange,
    /// The cloud gave no usable answer.
    Unanswered(CloudError),
}

/// When the last look began that found a machine of this cluster.
#[derive(Debug, Default)]
pub(super) struct Foothold(Mutex<Option<Instant>>);

impl Cloud {
    /// Whether a sweep shows the machine that the provider ID of a Node names, however the ID is spelled
    /// there.
    pub(crate) fn shows(&self, sweep: &Sweep, node: &NodeFacts) -> bool {
        self.shown_as(sweep, node).is_some()
    }

    /// The ID under which a sweep shows the machine of a Node that has an ID.
    pub(crate) fn shown_as<'a>(
        &self,
        sweep: &'a Sweep,
        node: &NodeFacts,
    ) -> Option<&'a ProviderId> {
        self.shown(sweep, node).map(|instance| &instance.id)
    }

    /// The machine of a Node that has an ID, as a list shows it.
    pub(crate) fn shown<'a>(&self, sweep: &'a Sweep, node: &NodeFacts) -> Option<&'a Instance> {
        let id = node.provider_id.as_ref()?;
        let identified = || match self.provider.instances()?.identify(node, sweep) {
            Match::One(instance) => Some(instance),
            Match::None | Match::Many(_) => None,
        };
        sweep.get(id).or_else(identified)
    }

    /// The last good list, unless it is too old to say anything about a scope.
    pub(crate) fn seen_lately(&self) -> Option<Arc<Snapshot>> {
        let latest = self.inventory.latest();
        latest.filter(|seen| seen.ended.elapsed() <= Sighting::FRESH_FOR)
    }

    /// Whether a sweep shows the machine of any of these Nodes, and not merely another one of its ID.
    pub(crate) fn shows_any_of(&self, sweep: &Sweep, nodes: &[Arc<NodeView>]) -> bool {
        nodes.iter().any(|node| {
            let shown = self.shown(sweep, &node.facts);
            shown.is_some_and(|instance| !is_another_machine(instance, &node.facts))
        })
    }

    /// What a look for the machines of `ours` tells, if it began at or after `moment`. All who ask meanwhile
    /// share it, and a sweep will do as well. Who is ours is worked out only if somebody has to look.
    pub(crate) async fn footing(
        &self,
        moment: Instant,
        ours: impl FnOnce() -> Vec<Arc<NodeView>>,
    ) -> Footing {
        let Some(instances) = self.provider.instances() else {
            return Footing::Ours;
        };
        let mut found = self.foothold.0.lock().await;
        if found.is_some_and(|found| found >= moment) {
            return Footing::Ours;
        }
        let ours = ours();
        let latest = self.inventory.latest();
        let fresh = latest.as_ref().filter(|seen| seen.began >= moment);
        if ours.is_empty() || fresh.is_some_and(|seen| self.shows_any_of(&seen.sweep, &ours)) {
            return Footing::Ours;
        }
        let ours = likely_first(ours, |node| {
            let seen = latest.as_ref();
            let is_shown = seen.is_some_and(|seen| self.shows(&seen.sweep, &node.facts));
            is_shown && node.readiness == Readiness::Ready
        });
        let (mut footing, mut looks) = (Footing::Ours, 0);
        for node in &ours {
            let began = Instant::now();
            match instances.find(&node.facts, None).await {
                Existence::Present(instance) if !is_another_machine(&instance, &node.facts) => {
                    *found = Some(began);
                    return Footing::Ours;
                }
                // It was never told how to look for this one, so the next has to do.
                Existence::Unknown(Doubt::NotOurs { .. }) => continue,
                Existence::Unknown(Doubt::NoAnswer(error)) => footing = Footing::Unanswered(error),
                Existence::Present(_) | Existence::Gone(_) | Existence::Unknown(_) => {
                    if matches!(footing, Footing::Ours) {
                        footing = Footing::Strange;
                    }
                }
            }
            looks += 1;
            if looks == MOST_LOOKS {
                break;
            }
        }
        footing
    }

    /// Whether the cloud could show no machine of any of these Nodes, whatever its credential: it was never
    /// told how to look for them, as for the dedicated servers of an account that it has no login for.
    pub(crate) async fn can_show_none_of(&self, nodes: &[Arc<NodeView>]) -> bool {
        let Some(instances) = self.provider.instances() else {
            return true;
        };
        for node in nodes {
            let answer = instances.find(&node.facts, None).await;
            if !matches!(answer, Existence::Unknown(Doubt::NotOurs { .. })) {
                return false;
            }
        }
        true
    }
}

/// Whether a machine of a Node's ID is another one all the same: it has neither the name nor the system UUID that the
/// Node has. Numeric IDs of two projects may overlap.
pub(crate) fn is_another_machine(instance: &Instance, node: &NodeFacts) -> bool {
    let uuids = (&instance.system_uuid, &node.system_uuid);
    let differ = matches!(uuids, (Some(a), Some(b)) if !a.eq_ignore_ascii_case(b));
    differ && !instance.answers_to(&node.name)
}

/// Those first whose machines are likely there, and the youngest and the oldest in turn. Of Nodes that are Ready,
/// many may have lost their machines moments ago: in a rolling replacement the oldest, with a pool that is removed
/// the youngest.
fn likely_first(
    nodes: Vec<Arc<NodeView>>,
    is_likely: impl Fn(&NodeView) -> bool,
) -> Vec<Arc<NodeView>> {
    let (likely, others): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| is_likely(node));
    let in_turn = |mut nodes: Vec<Arc<NodeView>>| {
        nodes.sort_by_key(|node| node.facts.created);
        let mut nodes = std::collections::VecDeque::from(nodes);
        let mut from_the_end = false;
        std::iter::from_fn(move || {
            from_the_end = !from_the_end;
            if from_the_end {
                nodes.pop_back()
            } else {
                nodes.pop_front()
            }
        })
    };
    in_turn(likely).chain(in_turn(others)).collect()
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use cloudkeel_api::{CloudProvider, Instances, ScopeFingerprint, SystemClock};
    use jiff::Timestamp;

    use super::*;

    /// Writes IDs as `new://1`, and reads those that were once written as `old://1`.
    struct Renamed;

    fn present(id: &ProviderId) -> ProviderId {
        ProviderId::new("new", id.rest())
    }

    impl CloudProvider for Renamed {
        fn name(&self) -> &'static str {
            "new"
        }
        fn instances(&self) -> Option<&dyn Instances> {
            Some(self)
        }
    }

    #[async_trait]
    impl Instances for Renamed {
        async fn sweep(&self) -> Result<Sweep, CloudError> {
            Ok(sweep())
        }
        async fn find(&self, node: &NodeFacts, _: Option<&Sighting>) -> Existence {
            let id = node.provider_id.clone().unwrap();
            match id.as_str() {
                "new://1" => Existence::present(Instance::new(id, "n")),
                "new://2" => Existence::Unknown(Doubt::NoMatch {
                    looked_for: id.to_string(),
                }),
                _ => Existence::Unknown(Doubt::NotOurs {
                    id,
                    why: "no login".into(),
                }),
            }
        }
        fn identify<'a>(&self, node: &NodeFacts, sweep: &'a Sweep) -> Match<'a> {
            let shown = node.provider_id.as_ref().map(present);
            let shown = shown.and_then(|id| sweep.get(&id));
            shown.map_or(Match::None, Match::One)
        }
    }

    fn sweep() -> Sweep {
        let machine = Instance::new("new://1".parse().unwrap(), "n");
        Sweep::complete(ScopeFingerprint::new("s"), Timestamp::UNIX_EPOCH, [machine])
    }

    fn node(id: &str) -> Arc<NodeView> {
        let mut node = NodeView::default();
        node.facts.name = "n".into();
        node.facts.provider_id = id.parse().ok();
        Arc::new(node)
    }

    #[tokio::test]
    async fn a_machine_is_shown_however_its_id_is_spelled_and_a_name_shows_nothing() {
        let cloud = Cloud::new("c", Arc::new(Renamed), None, Arc::new(SystemClock));
        let began = Instant::now();
        cloud.inventory.begun_after(began).await.unwrap();
        for (case, id, is_shown) in [
            ("as it is written now", "new://1", true),
            ("as it was written once", "old://1", true),
            ("another machine", "old://2", false),
            ("no ID", "", false),
        ] {
            let ours = [node(id)];
            assert_eq!(cloud.shows_any_of(&sweep(), &ours), is_shown, "{case}");
        }
        let footing = cloud.footing(began, || vec![node("old://1")]).await;
        assert!(matches!(footing, Footing::Ours), "{footing:?}");
    }

    #[tokio::test]
    async fn a_machine_of_the_same_id_with_another_name_and_uuid_is_not_ours() {
        let cloud = Cloud::new("c", Arc::new(Renamed), None, Arc::new(SystemClock));
        let machine = |uuid: Option<&str>| Instance {
            system_uuid: uuid.map(str::to_owned),
            ..Instance::new("new://1".parse().unwrap(), "n")
        };
        for (case, name, machine_has, node_has, is_ours) in [
            ("its name", "n", Some("a"), Some("b"), true),
            ("its UUID, in capitals", "other", Some("a"), Some("A"), true),
            ("neither", "other", Some("a"), Some("b"), false),
            (
                "a UUID that the cloud does not know",
                "other",
                None,
                Some("b"),
                true,
            ),
        ] {
            let mut ours = NodeView::clone(&node("new://1"));
            ours.facts.name = name.into();
            ours.facts.system_uuid = node_has.map(str::to_owned);
            let shown = [machine(machine_has)];
            let scope = ScopeFingerprint::new("s");
            let sweep = Sweep::complete(scope, Timestamp::UNIX_EPOCH, shown);
            let shows = cloud.shows_any_of(&sweep, &[Arc::new(ours)]);
            assert_eq!(shows, is_ours, "{case}");
        }
    }

    #[test]
    fn the_youngest_and_the_oldest_are_looked_for_in_turn_and_those_that_were_listed_first() {
        let aged = |number: i64| {
            let mut node = NodeView::default();
            node.facts.name = number.to_string();
            node.facts.created = Timestamp::from_second(number).ok();
            Arc::new(node)
        };
        let nodes = (0..7).map(aged).collect();
        let order = likely_first(nodes, |node| {
            ["0", "3", "4", "5"].contains(&&*node.facts.name)
        });
        let order: Vec<_> = order.iter().map(|node| node.facts.name.as_str()).collect();
        assert_eq!(order, ["5", "0", "4", "3", "6", "1", "2"]);
    }

    #[tokio::test]
    async fn nodes_that_a_cloud_cannot_be_asked_about_vouch_for_nothing_and_against_nothing() {
        let cloud = Cloud::new("c", Arc::new(Renamed), None, Arc::new(SystemClock));
        let many = |ids: &[&str]| -> Vec<_> {
            let unasked = (0..10).map(|number| format!("robot://{number}"));
            let ids = unasked.chain(ids.iter().map(ToString::to_string));
            ids.map(|id| node(&id)).collect()
        };
        for (case, ours, is_ours) in [
            ("nobody else", many(&[]), true),
            ("one that is there", many(&["new://2", "new://1"]), true),
            ("one that is not", many(&["new://2"]), false),
        ] {
            let footing = cloud.footing(Instant::now(), || ours.clone()).await;
            assert_eq!(matches!(footing, Footing::Ours), is_ours, "{case}");
            let is_blind = cloud.can_show_none_of(&ours).await;
            assert_eq!(is_blind, ours.len() == 10, "{case}");
        }
    }
}
