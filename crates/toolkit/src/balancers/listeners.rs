//! Which listeners of a balancer change, and in which order. Pure.

use std::fmt;

use cloudkeel_api::{ErrorKind, Failures, Listener, Protocol};

/// What tells the listeners of a balancer apart, in every cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerKey {
    /// Transport: a listener for HTTP is one for TCP.
    pub protocol: Protocol,
    /// Where the balancer listens.
    pub port: u16,
}

impl ListenerKey {
    /// Of what listens for connections.
    pub const fn tcp(port: u16) -> Self {
        let protocol = Protocol::Tcp;
        Self { protocol, port }
    }

    /// Of what listens for datagrams.
    pub const fn udp(port: u16) -> Self {
        let protocol = Protocol::Udp;
        Self { protocol, port }
    }
}

impl fmt::Display for ListenerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.port, self.protocol)
    }
}

/// A listener in the cloud's own terms, as it should be or as it is.
pub trait HasListenerKey {
    /// Its transport and port.
    fn listener_key(&self) -> ListenerKey;
}

impl HasListenerKey for ListenerKey {
    fn listener_key(&self) -> ListenerKey {
        *self
    }
}

impl HasListenerKey for Listener {
    fn listener_key(&self) -> ListenerKey {
        ListenerKey {
            protocol: self.protocol,
            port: self.port,
        }
    }
}

impl<L: HasListenerKey> HasListenerKey for &L {
    fn listener_key(&self) -> ListenerKey {
        (*self).listener_key()
    }
}

/// One change of a balancer's listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerChange<D, P> {
    /// It is not wanted.
    Remove(P),
    /// It is not as it should be. A cloud that cannot change it makes it anew.
    Update {
        /// As it should be.
        desired: D,
        /// As it is.
        present: P,
    },
    /// It is missing.
    Add(D),
}

/// What differs between the desired listeners and those that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerDiff<D, P> {
    /// In the order in which it is done: what is removed frees its place for what is added.
    pub changes: Vec<ListenerChange<D, P>>,
    /// Those that the balancer cannot take.
    pub left_out: Vec<D>,
}

/// What differs from `present`. Listeners for which `keeps` holds stay as they are although they are not desired; they take
/// places of the `limit` too. At the limit, what is there stays, and free places are taken in the given order.
pub fn diff_listeners<D: HasListenerKey, P: HasListenerKey>(
    desired: impl IntoIterator<Item = D>,
    present: &[P],
    limit: usize,
    keeps: impl Fn(&P) -> bool,
    is_met: impl Fn(&D, &P) -> bool,
) -> ListenerDiff<D, &P> {
    let desired: Vec<D> = desired.into_iter().collect();
    let is_desired = |have: &P| {
        let key = have.listener_key();
        desired.iter().any(|wanted| wanted.listener_key() == key)
    };
    let extra = present
        .iter()
        .filter(|have| !is_desired(have) && !keeps(have));
    let mut changes: Vec<_> = extra.map(ListenerChange::Remove).collect();
    let mut left_out = Vec::new();
    let mut count = present.len() - changes.len();
    for desired in desired {
        let key = desired.listener_key();
        match present.iter().find(|have| have.listener_key() == key) {
            Some(have) if is_met(&desired, have) => {}
            Some(present) => changes.push(ListenerChange::Update { desired, present }),
            None if count < limit => {
                count += 1;
                changes.push(ListenerChange::Add(desired));
            }
            None => left_out.push(desired),
        }
    }
    ListenerDiff { changes, left_out }
}

impl<D: HasListenerKey, P> ListenerDiff<D, P> {
    /// What a balancer with this limit cannot meet, for [`Report::unmet`](cloudkeel_api::Report::unmet).
    pub fn over_limit(&self, limit: usize) -> Option<Failures> {
        let ports = self.left_out.iter().map(HasListenerKey::listener_key);
        let ports: Vec<_> = ports.map(|key| key.to_string()).collect();
        (!ports.is_empty()).then(|| Failures {
            kind: ErrorKind::LimitExceeded,
            message: format!(
                "the load balancer accepts at most {limit} listeners; not served: {}",
                ports.join(", ")
            ),
            details: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ListenerChange::{Add, Remove, Update};
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Port(u16, Protocol, u16);

    impl HasListenerKey for Port {
        fn listener_key(&self) -> ListenerKey {
            ListenerKey {
                protocol: self.1,
                port: self.0,
            }
        }
    }

    const fn tcp(port: u16, node_port: u16) -> Port {
        Port(port, Protocol::Tcp, node_port)
    }

    fn diff<'p>(
        desired: &[Port],
        present: &'p [Port],
        limit: usize,
        kept: &[u16],
    ) -> ListenerDiff<Port, &'p Port> {
        let keeps = |have: &Port| kept.contains(&have.0);
        diff_listeners(desired.iter().copied(), present, limit, keeps, Port::eq)
    }

    #[test]
    fn each_port_is_added_changed_removed_or_left_alone() {
        let dns = Port(53, Protocol::Udp, 1);
        for (case, desired, present, kept, changes) in [
            (
                "nothing differs",
                vec![tcp(80, 1)],
                vec![tcp(80, 1)],
                vec![],
                vec![],
            ),
            (
                "the first",
                vec![tcp(80, 1)],
                vec![],
                vec![],
                vec![Add(tcp(80, 1))],
            ),
            (
                "another node port",
                vec![tcp(80, 2)],
                vec![tcp(80, 1)],
                vec![],
                vec![Update {
                    desired: tcp(80, 2),
                    present: &tcp(80, 1),
                }],
            ),
            (
                "the same port of another transport",
                vec![dns, tcp(53, 1)],
                vec![dns],
                vec![],
                vec![Add(tcp(53, 1))],
            ),
            (
                "removed before added",
                vec![tcp(80, 1), tcp(81, 1)],
                vec![tcp(80, 1), tcp(82, 1)],
                vec![],
                vec![Remove(&tcp(82, 1)), Add(tcp(81, 1))],
            ),
            ("kept", vec![], vec![tcp(80, 1)], vec![80], vec![]),
            (
                "kept, and changed as it is desired",
                vec![tcp(80, 2)],
                vec![tcp(80, 1)],
                vec![80],
                vec![Update {
                    desired: tcp(80, 2),
                    present: &tcp(80, 1),
                }],
            ),
        ] {
            let found = diff(&desired, &present, 9, &kept);
            assert_eq!(found.changes, changes, "{case}");
            assert_eq!(found.over_limit(9), None, "{case}");
        }
    }

    #[test]
    fn at_the_limit_what_is_there_stays_and_the_rest_is_left_out() {
        let [a, b, c, d] = [81, 82, 83, 84].map(|port| tcp(port, 1));
        let present = [c, d];
        let found = diff(&[a, b, c], &present, 2, &[]);
        assert_eq!(found.changes, [Remove(&d), Add(a)]);
        assert_eq!(found.left_out, [b]);
        let failures = found.over_limit(2).unwrap();
        assert_eq!(failures.kind, ErrorKind::LimitExceeded);
        assert_eq!(
            failures.message,
            "the load balancer accepts at most 2 listeners; not served: 82/TCP"
        );
        let kept = diff(&[a, b, c], &present, 2, &[84]);
        assert_eq!((kept.changes, kept.left_out), (vec![], vec![a, b]));
    }
}
