//! Can the credential of a cloud be trusted to see what is there? Pure.
//!
//! A token of another project answers "no such machine" in all honesty. So before anything is
//! deleted, the list of machines has to agree with what the cluster knows by itself.

use cloudkeel_api::{ScopeFingerprint, Sweep};

/// More Ready Nodes than this have to be missing before their share counts.
const FEW: usize = 2;
/// One Ready Node in so many may be missing: machines that went moments ago.
const ONE_IN: usize = 5;

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
    /// The same for every doubt of a kind, whichever Nodes and numbers it names.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::HeardButMissing { .. } => "heard but missing",
            Self::ManyReadyMissing { .. } => "many Ready Nodes missing",
            Self::NothingKnownSeen { .. } => "nothing known seen",
            Self::ScopeChanged { .. } => "scope changed",
            Self::NotListed => "not listed",
            Self::ClusterUnavailable => "cluster unavailable",
        }
    }

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

/// Remembers in which scope machines of the cluster were last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeMemory {
    trusted: Option<ScopeFingerprint>,
}

/// A Node of the cluster, as far as the scope of a cloud is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether its machine is found, in the list or by a look-up: lists may lag.
    pub is_seen: bool,
    /// Whether the list shows the very machine: of this cloud, by ID and by name or system UUID.
    pub confirms: bool,
    /// Whether it is Ready and nothing has announced that it goes.
    pub is_staying: bool,
}

impl ScopeMemory {
    /// Compares a list with the cluster's Nodes.
    pub fn judge<'a>(
        &mut self,
        list: &Sweep,
        nodes: impl IntoIterator<Item = KnownNode<'a>>,
    ) -> Result<(), ScopeDoubt> {
        let (mut known, mut confirmed) = (0_usize, false);
        let (mut ready, mut missing) = (0_usize, Vec::new());
        for node in nodes {
            known += 1;
            confirmed |= node.confirms;
            if node.is_staying {
                ready += 1;
                if !node.is_seen {
                    missing.push(node.name);
                }
            }
        }
        if !confirmed {
            return Err(self.nothing_known(list, known));
        }
        if let Some(node) = missing.first().filter(|_| too_many(missing.len(), ready)) {
            return Err(ScopeDoubt::ManyReadyMissing {
                missing: missing.len(),
                ready,
                node: (*node).to_owned(),
            });
        }
        self.trusted = Some(list.scope().clone());
        Ok(())
    }

    fn nothing_known(&self, list: &Sweep, known: usize) -> ScopeDoubt {
        let now = list.scope().clone();
        match &self.trusted {
            Some(was) if *was != now => ScopeDoubt::ScopeChanged {
                was: was.clone(),
                now,
            },
            _ => ScopeDoubt::NothingKnownSeen { known, scope: now },
        }
    }
}

/// Whether so many missing machines of so many Ready Nodes are more than ordinary change.
pub(super) const fn too_many(missing: usize, ready: usize) -> bool {
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

    /// Nodes by number; those in `staying` are Ready.
    fn judge(
        memory: &mut ScopeMemory,
        list: &Sweep,
        nodes: std::ops::Range<u32>,
        staying: std::ops::Range<u32>,
    ) -> Result<(), ScopeDoubt> {
        let names: Vec<_> = nodes.map(|n| (n, format!("n{n}"))).collect();
        let known = names.iter().map(|(n, name)| KnownNode {
            name,
            is_seen: list.get(&id(*n)).is_some(),
            confirms: list.get(&id(*n)).is_some(),
            is_staying: staying.contains(n),
        });
        memory.judge(list, known)
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
        let mut memory = ScopeMemory::default();
        let shown = list("p", &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(judge(&mut memory, &shown, 0..10, 0..10), Ok(()));
        let shown = list("p", &[0, 1, 2, 3, 4, 5, 6]);
        let doubt = judge(&mut memory, &shown, 0..10, 0..10).unwrap_err();
        let expected = ScopeDoubt::ManyReadyMissing {
            missing: 3,
            ready: 10,
            node: "n7".into(),
        };
        assert_eq!(doubt, expected);
        assert!(doubt.keeps_proofs());
        // Those that are not Ready, or announced to go, are no part of it.
        assert_eq!(judge(&mut memory, &shown, 0..10, 0..9), Ok(()));
    }

    #[test]
    fn a_list_that_lags_behind_a_look_up_is_no_reason_to_doubt() {
        let mut memory = ScopeMemory::default();
        let node = |number: u32, confirms| KnownNode {
            name: ["a", "b", "c", "d"][number as usize],
            is_seen: true,
            confirms,
            is_staying: true,
        };
        let found = [0, 1, 2, 3].map(|number| node(number, number == 0));
        assert_eq!(memory.judge(&list("p", &[]), found), Ok(()));
    }

    #[test]
    fn seeing_nothing_known_stops_everything_however_much_else_is_seen() {
        let mut memory = ScopeMemory::default();
        for machines in [&[][..], &[8, 9]] {
            let doubt = judge(&mut memory, &list("p", machines), 1..3, 0..0).unwrap_err();
            assert!(
                matches!(doubt, ScopeDoubt::NothingKnownSeen { known: 2, .. }),
                "{doubt}"
            );
            assert!(!doubt.keeps_proofs());
        }
    }

    #[test]
    fn another_scope_is_doubted_until_something_known_is_seen_in_it() {
        let mut memory = ScopeMemory::default();
        judge(&mut memory, &list("p1", &[1, 2]), 1..3, 0..0).unwrap();
        let doubt = judge(&mut memory, &list("p2", &[8]), 1..3, 0..0).unwrap_err();
        assert!(matches!(doubt, ScopeDoubt::ScopeChanged { .. }), "{doubt}");
        assert_eq!(judge(&mut memory, &list("p2", &[1]), 1..3, 0..0), Ok(()));
        let doubt = judge(&mut memory, &list("p2", &[8]), 1..3, 0..0).unwrap_err();
        assert!(
            matches!(doubt, ScopeDoubt::NothingKnownSeen { .. }),
            "{doubt}"
        );
    }
}
