//! Can the credential be trusted to see what is there? Pure.
//!
//! A token of another project answers "no such machine" in all honesty. So before anything is
//! deleted, the whole picture has to make sense: the cluster's running Nodes must have machines.

use cloudkeel_api::{ScopeFingerprint, Sweep};

/// Why the picture makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeDoubt {
    /// A Node that runs has no machine.
    #[error("the machine of {node}, which is Ready, looks gone too")]
    ReadyNodeLooksGone {
        /// The Node.
        node: String,
    },
    /// None of the cluster's machines is seen.
    #[error("none of the {known} machines of this cluster is seen in {scope} any more")]
    NothingKnownSeen {
        /// How many Nodes have a machine of this cloud.
        known: usize,
        /// Where was looked.
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
    /// There is no picture at all.
    #[error("the cloud has not been seen whole lately")]
    NotSeen,
}

impl ScopeDoubt {
    /// What a person can do about it.
    pub const fn what_to_do(&self) -> &'static str {
        match self {
            Self::ReadyNodeLooksGone { .. } => {
                "check that the credential belongs to the project of this cluster; if that machine was \
                 really removed, stop its kubelet or delete the Node"
            }
            Self::NothingKnownSeen { .. } => {
                "check that the credential belongs to the project of this cluster; if all machines were \
                 really removed, delete their Nodes"
            }
            Self::ScopeChanged { .. } => {
                "put back the credential of before, or wait until a Node of the new scope has joined"
            }
            Self::NotSeen => "see why the cloud does not answer; it goes on by itself when it does",
        }
    }
}

/// Remembers in which scope machines of the cluster were last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeMemory {
    trusted: Option<ScopeFingerprint>,
}

/// A Node of the cluster, as far as the scope is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether its machine is seen, in a sweep or by a look-up: lists may lag.
    pub is_seen: bool,
    /// Whether it is Ready, and old enough that every list should show its machine.
    pub surely_running: bool,
}

impl ScopeMemory {
    /// Looks at a sweep and the cluster's Nodes.
    pub fn judge<'a>(
        &mut self,
        sweep: &Sweep,
        nodes: impl IntoIterator<Item = KnownNode<'a>>,
    ) -> Result<(), ScopeDoubt> {
        let mut known = 0_usize;
        let mut seen = 0_usize;
        let mut ready_but_gone = None;
        for node in nodes {
            known += 1;
            if node.is_seen {
                seen += 1;
            } else if node.surely_running && sweep.is_complete() {
                ready_but_gone.get_or_insert_with(|| node.name.to_owned());
            }
        }
        if let (0, Some(was)) = (seen, &self.trusted)
            && was != sweep.scope()
        {
            return Err(ScopeDoubt::ScopeChanged {
                was: was.clone(),
                now: sweep.scope().clone(),
            });
        }
        if seen == 0 {
            return Err(ScopeDoubt::NothingKnownSeen {
                known,
                scope: sweep.scope().clone(),
            });
        }
        if let Some(node) = ready_but_gone {
            return Err(ScopeDoubt::ReadyNodeLooksGone { node });
        }
        self.trusted = Some(sweep.scope().clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{BlindSpot, CloudError, ErrorKind, Instance, ProviderId};
    use jiff::Timestamp;

    use super::*;

    fn id(number: u32) -> ProviderId {
        format!("local://p/{number}").parse().unwrap()
    }

    fn sweep(scope: &str, machines: &[u32]) -> Sweep {
        let machines = machines
            .iter()
            .map(|n| Instance::new(id(*n), format!("m{n}")));
        Sweep::complete(
            ScopeFingerprint::new(scope),
            Timestamp::UNIX_EPOCH,
            machines,
        )
    }

    /// Nodes by number; those in `ready` surely run.
    fn judge(
        memory: &mut ScopeMemory,
        sweep: &Sweep,
        nodes: &[u32],
        ready: &[u32],
    ) -> Result<(), ScopeDoubt> {
        let ids: Vec<_> = nodes
            .iter()
            .map(|n| (format!("n{n}"), id(*n), ready.contains(n)))
            .collect();
        let known = ids.iter().map(|(name, id, surely_running)| KnownNode {
            name,
            is_seen: sweep.get(id).is_some(),
            surely_running: *surely_running,
        });
        memory.judge(sweep, known)
    }

    #[test]
    fn a_picture_that_makes_sense_is_trusted() {
        let mut memory = ScopeMemory::default();
        assert_eq!(
            judge(&mut memory, &sweep("p", &[1, 2]), &[1, 2, 3], &[1, 2]),
            Ok(())
        );
    }

    #[test]
    fn a_ready_node_without_a_machine_stops_everything() {
        let mut memory = ScopeMemory::default();
        let doubt = judge(&mut memory, &sweep("p", &[1]), &[1, 2, 3], &[1, 2]).unwrap_err();
        assert_eq!(doubt, ScopeDoubt::ReadyNodeLooksGone { node: "n2".into() });
    }

    #[test]
    fn a_list_that_lags_behind_a_look_up_is_no_reason_to_doubt() {
        let mut memory = ScopeMemory::default();
        let found = [KnownNode {
            name: "n1",
            is_seen: true,
            surely_running: true,
        }];
        assert_eq!(memory.judge(&sweep("p", &[]), found), Ok(()));
    }

    #[test]
    fn seeing_nothing_known_stops_everything_however_much_else_is_seen() {
        let mut memory = ScopeMemory::default();
        for machines in [&[][..], &[8, 9]] {
            let doubt = judge(&mut memory, &sweep("p", machines), &[1, 2], &[]).unwrap_err();
            assert!(
                matches!(doubt, ScopeDoubt::NothingKnownSeen { known: 2, .. }),
                "{doubt}"
            );
        }
    }

    #[test]
    fn another_scope_is_doubted_until_something_known_is_seen_in_it() {
        let mut memory = ScopeMemory::default();
        judge(&mut memory, &sweep("p1", &[1, 2]), &[1, 2], &[]).unwrap();
        let doubt = judge(&mut memory, &sweep("p2", &[8]), &[1, 2], &[]).unwrap_err();
        assert!(matches!(doubt, ScopeDoubt::ScopeChanged { .. }), "{doubt}");
        assert_eq!(judge(&mut memory, &sweep("p2", &[1]), &[1, 2], &[]), Ok(()));
        assert_eq!(judge(&mut memory, &sweep("p2", &[1]), &[1, 2], &[]), Ok(()));
    }

    #[test]
    fn a_blind_spot_excuses_ready_nodes_that_it_may_hide() {
        let error = CloudError::new("login", ErrorKind::Unavailable, "down");
        let blind = BlindSpot {
            part: "vcenter-2".into(),
            error,
        };
        let partial = sweep("p", &[1]).with_blind_spots(vec![blind]);
        let mut memory = ScopeMemory::default();
        assert_eq!(judge(&mut memory, &partial, &[1, 2], &[1, 2]), Ok(()));
    }
}
