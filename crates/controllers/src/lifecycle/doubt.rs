//! Why a cloud is in doubt. Pure: before anything is deleted, its list has to agree with what the cluster knows by
//! itself, the Nodes and what their kubelets say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{ScopeFingerprint, Sweep};
use tokio::time::Instant;

use super::heartbeat::Heartbeat;
use crate::view::{NodeView, Readiness};

/// More Ready Nodes than this have to be missing before their share counts.
const FEW: usize = 2;
/// One Ready Node in so many may be missing: machines that went moments ago.
const ONE_IN: usize = 5;
/// A Node that is Ready for so long after its machine went has a kubelet that is heard: without leases
/// to read, the cluster's own word has to do, and that takes less than a minute.
const READY_TOO_LONG: Duration = Duration::from_mins(2);

/// Why nothing may be deleted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeDoubt {
    /// A kubelet was heard after a list began that does not show its machine.
    #[error("the machine of {node} is not found, but its kubelet is heard")]
    HeardButMissing {
        /// The Node.
        node: String,
    },
    /// Too many of the Ready Nodes have no machine.
    #[error("the machines of {missing} of {ready} Ready Nodes are not found, {node} among them")]
    ManyReadyMissing {
        /// How many.
        missing: usize,
        /// Of how many.
        ready: usize,
        /// One of them.
        node: String,
    },
    /// None of the cluster's machines is seen.
    #[error("none of the {known} machines of this cluster is seen in {scope} any more")]
    NothingKnownSeen {
        /// How many Nodes have a machine of this cloud.
        known: usize,
        /// Where they were looked for.
        scope: ScopeFingerprint,
    },
    /// The credential sees another world than before, and nothing known in it yet.
    #[error("the credential now sees {now} instead of {was}, and nothing known in it yet")]
    ScopeChanged {
        /// Before.
        was: ScopeFingerprint,
        /// Now.
        now: ScopeFingerprint,
    },
    /// There is no list to judge by.
    #[error("the machines of the cloud could not be listed lately")]
    NotListed,
    /// The API server did not answer, so no kubelet could be heard.
    #[error("the API server does not answer, so kubelets cannot be heard")]
    ClusterUnavailable,
}

impl ScopeDoubt {
    /// Whether proofs from before the doubt count when it is over. They do where it says nothing against
    /// the credential that gave them.
    pub const fn keeps_proofs(&self) -> bool {
        matches!(self, Self::ManyReadyMissing { .. } | Self::NotListed)
    }

    /// What a person can do about it.
    pub const fn what_to_do(&self) -> &'static str {
        match self {
            Self::HeardButMissing { .. } => {
                "check that the credential belongs to the project of this cluster; if that machine was \
                 really removed, stop its kubelet or delete the Node"
            }
            Self::ManyReadyMissing { .. } => {
                "check that the credential sees all of the project and every zone of it; if the machines \
                 were really removed, it goes on when their Nodes are no longer Ready"
            }
            Self::NothingKnownSeen { .. } => {
                "check that the credential belongs to the project of this cluster; if all machines were \
                 really removed, delete their Nodes"
            }
            Self::ScopeChanged { .. } => {
                "put back the credential of before, or wait until a Node of the new scope has joined"
            }
            Self::NotListed => {
                "see why the cloud does not answer; it goes on by itself when it does"
            }
            Self::ClusterUnavailable => {
                "see why the API server does not answer; it goes on by itself when it does"
            }
        }
    }
}

/// A Node of a cloud beside a list of its instances.
#[derive(Debug, Clone)]
pub struct Member {
    /// The Node.
    pub node: Arc<NodeView>,
    /// Whether its instance is found, in the list or by a look-up: lists may lag.
    pub is_seen: bool,
    /// Whether it is Ready and nothing has announced that it goes.
    pub is_staying: bool,
}

/// Compares a list with the Nodes of its cloud. `is_confirmed` says whether it shows a known instance, and `last_scope`
/// where one was last listed.
pub fn compare(
    list: &Sweep,
    is_confirmed: bool,
    last_scope: Option<ScopeFingerprint>,
    members: &[Member],
) -> Result<(), ScopeDoubt> {
    if !is_confirmed {
        let now = list.scope().clone();
        return Err(match last_scope {
            Some(was) if was != now => ScopeDoubt::ScopeChanged { was, now },
            _ => ScopeDoubt::NothingKnownSeen {
                known: members.len(),
                scope: now,
            },
        });
    }
    let ready = members.iter().filter(|member| member.is_staying);
    let missing = ready.clone().filter(|member| !member.is_seen);
    let (ready, count) = (ready.count(), missing.clone().count());
    match missing.clone().next() {
        Some(member) if too_many(count, ready) => Err(ScopeDoubt::ManyReadyMissing {
            missing: count,
            ready,
            node: member.node.facts.name.clone(),
        }),
        _ => Ok(()),
    }
}

/// Nodes whose instances are missing from the last list, by UID: since when, and what their kubelets had said when
/// they were last listened to.
#[derive(Debug, Default)]
pub struct Unseen(BTreeMap<String, (Instant, Heartbeat)>);

impl Unseen {
    /// Whether all of these were listened to before.
    pub fn knows_all(&self, members: &[Member]) -> bool {
        let mut members = members.iter();
        members.all(|member| self.0.contains_key(&member.node.facts.uid))
    }

    /// Takes what the kubelets of these Nodes say now, and returns the Nodes whose kubelets reported since their
    /// instances were missed. Each report is compared with the one before it, and with no clock.
    pub fn hear(&mut self, members: Vec<Member>, heartbeats: &[Heartbeat]) -> Vec<Arc<NodeView>> {
        let mut before = std::mem::take(&mut self.0);
        let mut heard = Vec::new();
        for (Member { node, .. }, now) in members.into_iter().zip(heartbeats) {
            let known = before.remove(&node.facts.uid);
            let since = known.map_or_else(Instant::now, |(since, _)| since);
            self.0.insert(node.facts.uid.clone(), (since, *now));
            let is_heard = known.is_some_and(|(since, before)| match now {
                Heartbeat::NotAllowed => {
                    node.readiness == Readiness::Ready && since.elapsed() >= READY_TOO_LONG
                }
                _ => now.is_newer_than(before),
            });
            if is_heard {
                heard.push(node);
            }
        }
        heard
    }

    /// How long a kubelet that lives may go unheard, of all of these.
    pub fn longest_silence(&self) -> Duration {
        let silences = self.0.values().map(|(_, heartbeat)| heartbeat.silence());
        silences.max().unwrap_or_default()
    }
}

/// Whether so many missing machines of so many Ready Nodes are more than ordinary change.
const fn too_many(missing: usize, ready: usize) -> bool {
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

    fn list(scope: &str, machines: &[u32]) -> Sweep {
        let machines = machines
            .iter()
            .map(|n| Instance::new(id(*n), format!("m{n}")));
        Sweep::complete(
            ScopeFingerprint::new(scope),
            Timestamp::UNIX_EPOCH,
            machines,
        )
    }

    fn member(number: u32, is_seen: bool, is_staying: bool) -> Member {
        let mut node = NodeView::default();
        node.facts.name = format!("n{number}");
        node.facts.uid = format!("u{number}");
        Member {
            node: Arc::new(node),
            is_seen,
            is_staying,
        }
    }

    /// Nodes by number; those in `staying` are Ready.
    fn compared(
        last_scope: Option<&str>,
        list: &Sweep,
        nodes: std::ops::Range<u32>,
        staying: std::ops::Range<u32>,
    ) -> Result<(), ScopeDoubt> {
        let is_shown = |number: u32| list.get(&id(number)).is_some();
        let is_confirmed = nodes.clone().any(is_shown);
        let members = nodes.map(|n| member(n, is_shown(n), staying.contains(&n)));
        let last_scope = last_scope.map(ScopeFingerprint::new);
        compare(list, is_confirmed, last_scope, &members.collect::<Vec<_>>())
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
    fn a_few_ready_nodes_whose_machines_went_are_an_ordinary_day() {
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
        let found = [0, 1, 2, 3].map(|number| member(number, true, true));
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
    async fn a_kubelet_is_heard_if_its_report_changed_since_its_instance_was_missed() {
        let report = |second| Heartbeat::At {
            renewed: Timestamp::from_second(second).unwrap(),
            lasts: Duration::from_secs(40),
        };
        let mut unseen = Unseen::default();
        let mut hear = |heartbeat| {
            unseen
                .hear(vec![member(1, false, true)], &[heartbeat])
                .len()
        };
        assert_eq!(hear(report(7)), 0, "missed now");
        assert_eq!(hear(report(7)), 0, "silent");
        assert_eq!(hear(report(3)), 1, "heard, by a clock that was set back");
        assert_eq!(hear(report(3)), 0, "silent again");
        assert_eq!(unseen.longest_silence(), Duration::from_secs(30));
        assert!(unseen.knows_all(&[member(1, false, true)]));
        assert!(!unseen.knows_all(&[member(2, false, true)]));
        unseen.hear(Vec::new(), &[]);
        assert!(unseen.0.is_empty(), "seen again");
    }
}
