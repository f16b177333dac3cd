//! Why a cloud's answers are in doubt. Before a Node is deleted, the cloud's list has to agree with what the cluster
//! itself knows: its Nodes and the heartbeats of their kubelets. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{InstanceList, ScopeFingerprint};
use tokio::time::Instant;

use super::heartbeat::Heartbeat;
use crate::view::{NodeView, Readiness};

/// More Ready Nodes than this have to be missing before their share counts.
const FEW: usize = 2;
/// One Ready Node in so many may be missing: instances that went moments ago.
const ONE_IN: usize = 5;
/// A Node that is Ready for so long after its instance went has a live kubelet: where Leases cannot be read, the
/// node lifecycle controller of the cluster marks Nodes without heartbeats in less than a minute.
const READY_TOO_LONG: Duration = Duration::from_mins(2);

/// Why nothing may be deleted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeDoubt {
    /// A kubelet sent a heartbeat after a list began that does not show its instance.
    #[error("the machine of {node} is not found, but its kubelet still sends heartbeats")]
    KubeletAlive {
        /// The Node.
        node: String,
    },
    /// Too many of the Ready Nodes have no instance.
    #[error("the machines of {missing} of {ready} Ready Nodes are not found, {node} among them")]
    ManyReadyMissing {
        /// How many.
        missing: usize,
        /// Of how many.
        ready: usize,
        /// One of them.
        node: String,
    },
    /// None of the cluster's instances is seen.
    #[error("the cloud shows none of the {known} machines of this cluster in {scope} any more")]
    NothingKnownSeen {
        /// How many Nodes have an instance of this cloud.
        known: usize,
        /// Where.
        scope: ScopeFingerprint,
    },
    /// The credential sees another scope than before, and nothing known in it yet.
    #[error("the credential now shows {now} instead of {was}, and no known machine in it yet")]
    ScopeChanged {
        /// Before.
        was: ScopeFingerprint,
        /// Now.
        now: ScopeFingerprint,
    },
    /// There is no recent list.
    #[error("the machines of the cloud have not been listed recently")]
    NotListed,
    /// The API server did not answer, so no heartbeat could be read.
    #[error("the API server does not answer, so the heartbeats of kubelets cannot be read")]
    ClusterUnavailable,
}

impl ScopeDoubt {
    /// Whether proofs from before the doubt count when it is over. They do where it says nothing against
    /// the credential that gave them.
    pub const fn keeps_proofs(&self) -> bool {
        matches!(self, Self::ManyReadyMissing { .. } | Self::NotListed)
    }

    /// What the operator can do about it.
    pub const fn what_to_do(&self) -> &'static str {
        match self {
            Self::KubeletAlive { .. } => {
                "check that the credential belongs to the project of this cluster; if that machine was \
                 really removed, stop its kubelet or delete the Node"
            }
            Self::ManyReadyMissing { .. } => {
                "check that the credential sees all of the project and every zone of it; if the machines \
                 were really removed, deletions resume when their Nodes are no longer Ready"
            }
            Self::NothingKnownSeen { .. } => {
                "check that the credential belongs to the project of this cluster; if all machines were \
                 really removed, delete their Nodes"
            }
            Self::ScopeChanged { .. } => {
                "restore the previous credential, or wait until a Node of the new scope has joined"
            }
            Self::NotListed => {
                "find out why the cloud does not answer; deletions resume when it does"
            }
            Self::ClusterUnavailable => {
                "find out why the API server does not answer; deletions resume when it does"
            }
        }
    }
}

/// A Node of a cloud beside a list of its instances.
#[derive(Debug, Clone)]
pub struct ComparedNode {
    /// The Node.
    pub node: Arc<NodeView>,
    /// Whether its instance is found, in the list or by a look-up: lists may lag.
    pub is_found: bool,
    /// Whether it is Ready and nothing has announced that it goes.
    pub is_staying: bool,
}

/// Compares a list with the Nodes of its cloud. `is_confirmed` says whether it shows a known instance, and `last_scope`
/// where one was last listed.
pub fn compare(
    list: &InstanceList,
    is_confirmed: bool,
    last_scope: Option<ScopeFingerprint>,
    nodes: &[ComparedNode],
) -> Result<(), ScopeDoubt> {
    if !is_confirmed {
        let now = list.scope().clone();
        return Err(match last_scope {
            Some(was) if was != now => ScopeDoubt::ScopeChanged { was, now },
            _ => ScopeDoubt::NothingKnownSeen {
                known: nodes.len(),
                scope: now,
            },
        });
    }
    let ready = nodes.iter().filter(|node| node.is_staying);
    let missing: Vec<_> = ready.clone().filter(|node| !node.is_found).collect();
    match missing.first() {
        Some(first) if too_many(missing.len(), ready.clone().count()) => {
            Err(ScopeDoubt::ManyReadyMissing {
                missing: missing.len(),
                ready: ready.count(),
                node: first.node.facts.name.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// Nodes whose instances the last list does not show, by UID: since when, and the last heartbeat.
#[derive(Debug, Default)]
pub struct MissingNodes(BTreeMap<String, (Instant, Heartbeat)>);

impl MissingNodes {
    /// Whether heartbeats of all of these were read before.
    pub fn contains_all(&self, nodes: &[ComparedNode]) -> bool {
        let mut nodes = nodes.iter();
        nodes.all(|it| self.0.contains_key(&it.node.facts.uid))
    }

    /// Takes the heartbeats of these Nodes, and returns the Nodes that have a new one since their instances were
    /// missed. Each is compared with the one before it, and with no clock.
    pub fn update(
        &mut self,
        nodes: Vec<ComparedNode>,
        heartbeats: &[Heartbeat],
    ) -> Vec<Arc<NodeView>> {
        let mut before = std::mem::take(&mut self.0);
        let mut alive = Vec::new();
        for (ComparedNode { node, .. }, now) in nodes.into_iter().zip(heartbeats) {
            let known = before.remove(&node.facts.uid);
            let since = known.map_or_else(Instant::now, |(since, _)| since);
            self.0.insert(node.facts.uid.clone(), (since, *now));
            let is_alive = known.is_some_and(|(since, before)| match now {
                Heartbeat::NotAllowed => {
                    node.readiness == Readiness::Ready && since.elapsed() >= READY_TOO_LONG
                }
                _ => now.is_newer_than(before),
            });
            if is_alive {
                alive.push(node);
            }
        }
        alive
    }

    /// How long any of their kubelets may go without a heartbeat.
    pub fn longest_gap(&self) -> Duration {
        let gaps = self
            .0
            .values()
            .map(|(_, heartbeat)| heartbeat.longest_gap());
        gaps.max().unwrap_or_default()
    }
}

/// Whether so many missing instances of so many Ready Nodes are more than ordinary change.
pub const fn too_many(missing: usize, ready: usize) -> bool {
    missing > FEW && missing.saturating_mul(ONE_IN) > ready
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{Instance, ProviderId};
    use jiff::Timestamp;

    use super::*;

    fn id(number: u32) -> ProviderId {
        format!("local://p/{number}").parse().unwrap()
    }

    fn list(scope: &str, machines: &[u32]) -> InstanceList {
        let machines = machines
            .iter()
            .map(|n| Instance::new(id(*n), format!("m{n}")));
        InstanceList::complete(
            ScopeFingerprint::new(scope),
            Timestamp::UNIX_EPOCH,
            machines,
        )
    }

    fn compared_node(number: u32, is_found: bool, is_staying: bool) -> ComparedNode {
        let mut node = NodeView::default();
        node.facts.name = format!("n{number}");
        node.facts.uid = format!("u{number}");
        ComparedNode {
            node: Arc::new(node),
            is_found,
            is_staying,
        }
    }

    /// Nodes by number; those in `staying` are Ready.
    fn compared(
        last_scope: Option<&str>,
        list: &InstanceList,
        nodes: std::ops::Range<u32>,
        staying: std::ops::Range<u32>,
    ) -> Result<(), ScopeDoubt> {
        let is_shown = |number: u32| list.get(&id(number)).is_some();
        let is_confirmed = nodes.clone().any(is_shown);
        let nodes = nodes.map(|n| compared_node(n, is_shown(n), staying.contains(&n)));
        let last_scope = last_scope.map(ScopeFingerprint::new);
        compare(list, is_confirmed, last_scope, &nodes.collect::<Vec<_>>())
    }

    #[test]
    fn more_than_two_and_more_than_a_fifth_of_the_ready_nodes_are_too_many() {
        for (case, missing, ready, expected) in [
            ("none", 0, 10, false),
            ("two of three", 2, 3, false),
            ("three of fifteen", 3, 15, false),
            ("three of fourteen", 3, 14, true),
            ("nine of a hundred", 9, 100, false),
            ("twenty-one of a hundred", 21, 100, true),
            ("all", 5, 5, true),
        ] {
            assert_eq!(too_many(missing, ready), expected, "{case}");
        }
    }

    #[test]
    fn a_few_ready_nodes_whose_machines_went_are_ordinary() {
        let shown = list("p", &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(compared(None, &shown, 0..10, 0..10), Ok(()));
        let shown = list("p", &[0, 1, 2, 3, 4, 5, 6]);
        let doubt = compared(None, &shown, 0..10, 0..10).unwrap_err();
        let expected = ScopeDoubt::ManyReadyMissing {
            missing: 3,
            ready: 10,
            node: "n7".into(),
        };
        assert_eq!(doubt, expected);
        assert!(doubt.keeps_proofs());
        // Those that are not Ready, or announced to go, are no part of it.
        assert_eq!(compared(None, &shown, 0..10, 0..9), Ok(()));
    }

    #[test]
    fn a_list_that_lags_behind_a_look_up_is_no_reason_to_doubt() {
        let found = [0, 1, 2, 3].map(|number| compared_node(number, true, true));
        assert_eq!(compare(&list("p", &[]), true, None, &found), Ok(()));
    }

    #[test]
    fn seeing_nothing_known_stops_everything_however_much_else_is_seen() {
        for machines in [&[][..], &[8, 9]] {
            let doubt = compared(Some("p"), &list("p", machines), 1..3, 0..0).unwrap_err();
            assert!(
                matches!(doubt, ScopeDoubt::NothingKnownSeen { known: 2, .. }),
                "{doubt}"
            );
            assert!(!doubt.keeps_proofs());
        }
    }

    #[test]
    fn another_scope_is_doubted_until_something_known_is_seen_in_it() {
        let doubt = compared(Some("p1"), &list("p2", &[8]), 1..3, 0..0).unwrap_err();
        assert!(matches!(doubt, ScopeDoubt::ScopeChanged { .. }), "{doubt}");
        assert_eq!(compared(Some("p1"), &list("p2", &[1]), 1..3, 0..0), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_kubelet_is_alive_if_its_heartbeat_changed_since_its_instance_was_missed() {
        let heartbeat = |second| Heartbeat::At {
            renewed: Timestamp::from_second(second).unwrap(),
            lasts: Duration::from_secs(40),
        };
        let mut missing = MissingNodes::default();
        let mut update = |heartbeat| {
            missing
                .update(vec![compared_node(1, false, true)], &[heartbeat])
                .len()
        };
        assert_eq!(update(heartbeat(7)), 0, "missed now");
        assert_eq!(update(heartbeat(7)), 0, "silent");
        assert_eq!(
            update(heartbeat(3)),
            1,
            "alive, by a clock that was set back"
        );
        assert_eq!(update(heartbeat(3)), 0, "silent again");
        assert_eq!(missing.longest_gap(), Duration::from_secs(30));
        assert!(missing.contains_all(&[compared_node(1, false, true)]));
        assert!(!missing.contains_all(&[compared_node(2, false, true)]));
        missing.update(Vec::new(), &[]);
        assert!(missing.0.is_empty(), "found again");
    }
}
