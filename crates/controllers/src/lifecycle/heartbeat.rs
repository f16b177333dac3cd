//! Does the kubelet still send heartbeats? An instance whose kubelet does is not gone, whatever the cloud says.
//!
//! Clocks of machines differ, and after an outage of the API server every heartbeat is old. So a heartbeat is never
//! compared with a clock: it is read twice, and one that changed meanwhile is new by any clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use tracing::warn;

use crate::log_messages::{LEASE_GET_FORBIDDEN, LEASE_LIST_FORBIDDEN, NODE_LEASE_FAILED};
use crate::runtime::ErrorText;

/// From so many Nodes on, one list of all Leases costs less than a read of each.
const LIST_FROM: usize = 20;
/// Leases in one page of a list.
const PAGE: u32 = 500;
/// The longest time between two heartbeats that is waited for: a Lease that lasts for hours says nothing.
const LONGEST_GAP: Duration = Duration::from_mins(5);

/// The last heartbeat of a kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// It was sent at this moment by the clock of the machine, and is good for so long.
    At {
        /// When.
        renewed: Timestamp,
        /// How long that is good.
        lasts: Duration,
    },
    /// There never was one.
    Never,
    /// Our role may not read it. The other checks have to do.
    NotAllowed,
    /// The API server did not answer.
    NoAnswer,
}

impl Heartbeat {
    /// Whether it is good by our clock. That is enough only for a Node that the operator wants deleted.
    pub fn is_valid(self, now: Timestamp) -> bool {
        // Clocks of machines differ: a heartbeat from the near future is one.
        matches!(self, Self::At { renewed, lasts }
            if now.duration_since(renewed).unsigned_abs() <= lasts)
    }

    /// Whether it is another one than at an earlier reading. No clock can be wrong about that.
    pub fn is_newer_than(self, earlier: Self) -> bool {
        match (earlier, self) {
            (Self::At { renewed: then, .. }, Self::At { renewed: now, .. }) => then != now,
            (Self::Never, Self::At { .. }) => true,
            _ => false,
        }
    }

    /// How long a live kubelet may go without a heartbeat. It renews four times in the life of a Lease.
    pub fn longest_gap(self) -> Duration {
        match self {
            Self::At { lasts, .. } => (lasts * 3 / 4).min(LONGEST_GAP),
            Self::Never | Self::NotAllowed | Self::NoAnswer => Duration::ZERO,
        }
    }
}

/// Reads the Leases of kubelets, and the status of Nodes whose kubelets have none. That the role may not read Leases
/// is warned about once.
pub struct LeaseHeartbeats {
    leases: Api<Lease>,
    nodes: Api<Node>,
    warned: AtomicBool,
    may_not_list: AtomicBool,
}

impl LeaseHeartbeats {
    const NAMESPACE: &'static str = "kube-node-lease";
    /// What a kubelet writes into its Lease by default.
    const DEFAULT_DURATION: i32 = 40;
    /// A kubelet without a Lease updates its status four times in this time.
    const STATUS_LASTS: Duration = Duration::from_secs(40);

    /// Reads leases with one client, and Nodes with another: their accounts may differ.
    pub fn new(leases: Client, nodes: Client) -> Self {
        Self {
            leases: Api::namespaced(leases, Self::NAMESPACE),
            nodes: Api::all(nodes),
            warned: AtomicBool::new(false),
            may_not_list: AtomicBool::new(false),
        }
    }

    /// What the status of a Node says, for a kubelet that has no Lease.
    async fn of_status(&self, node: &str) -> Heartbeat {
        match self.nodes.get_opt(node).await {
            Ok(Some(node)) => read_status(&node),
            Ok(None) => Heartbeat::Never,
            // A deletion has to read the Node too, and reports that it may not.
            Err(error) if is_forbidden(&error) => Heartbeat::NotAllowed,
            Err(error) => no_answer(node, &error),
        }
    }

    /// All heartbeats by the name of their Node; `None` if Leases cannot be listed.
    async fn list(&self) -> Option<BTreeMap<String, Heartbeat>> {
        let mut page = ListParams::default().limit(PAGE);
        let mut all = BTreeMap::new();
        loop {
            let listed = match self.leases.list(&page).await {
                Ok(listed) => listed,
                Err(error) => {
                    if is_forbidden(&error) && !self.may_not_list.swap(true, Ordering::Relaxed) {
                        let err = ErrorText(&error);
                        warn!(%err, "{LEASE_LIST_FORBIDDEN}");
                    }
                    return None;
                }
            };
            let leases = listed.items.iter();
            all.extend(
                leases.filter_map(|lease| Some((lease.metadata.name.clone()?, read(lease)))),
            );
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Some(all),
            }
        }
    }

    /// The heartbeat of this Node.
    pub(super) async fn of(&self, node: &str) -> Heartbeat {
        match self.leases.get_opt(node).await {
            Ok(Some(lease)) => read(&lease),
            Ok(None) => self.of_status(node).await,
            Err(error) if is_forbidden(&error) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    let err = ErrorText(&error);
                    warn!(%err, "{LEASE_GET_FORBIDDEN}");
                }
                Heartbeat::NotAllowed
            }
            Err(error) => no_answer(node, &error),
        }
    }

    /// Of these Nodes, in their order.
    pub(super) async fn of_all(&self, nodes: &[&str]) -> Vec<Heartbeat> {
        let is_worth_a_list = nodes.len() >= LIST_FROM;
        let listed = if is_worth_a_list && !self.may_not_list.load(Ordering::Relaxed) {
            self.list().await
        } else {
            None
        };
        let reading = nodes.iter().map(|node| async {
            match &listed {
                None => self.of(node).await,
                Some(listed) => match listed.get(*node) {
                    Some(heartbeat) => *heartbeat,
                    None => self.of_status(node).await,
                },
            }
        });
        futures::future::join_all(reading).await
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

fn no_answer(node: &str, error: &kube::Error) -> Heartbeat {
    warn!(node, err = %ErrorText(error), "{NODE_LEASE_FAILED}");
    Heartbeat::NoAnswer
}

fn read(lease: &Lease) -> Heartbeat {
    let spec = lease.spec.as_ref();
    let Some(renewed) = spec.and_then(|spec| spec.renew_time.as_ref()) else {
        return Heartbeat::Never;
    };
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let seconds = seconds.unwrap_or(LeaseHeartbeats::DEFAULT_DURATION).max(1);
    Heartbeat::At {
        renewed: renewed.0,
        lasts: Duration::from_secs(u64::try_from(seconds).unwrap_or(1)),
    }
}

/// Only the kubelet dates the Ready condition; others date conditions of their own.
fn read_status(node: &Node) -> Heartbeat {
    let conditions = node.status.as_ref().and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready");
    let sent = ready.and_then(|condition| condition.last_heartbeat_time.as_ref());
    sent.map_or(Heartbeat::Never, |sent| Heartbeat::At {
        renewed: sent.0,
        lasts: LeaseHeartbeats::STATUS_LASTS,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn lease(renewed: Option<i64>) -> Heartbeat {
        lease_for(renewed, 40)
    }

    fn lease_for(renewed: Option<i64>, seconds: i32) -> Heartbeat {
        read(&Lease {
            spec: Some(LeaseSpec {
                renew_time: renewed.map(|second| MicroTime(at(second))),
                lease_duration_seconds: Some(seconds),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        })
    }

    #[test]
    fn a_lease_is_good_for_as_long_as_it_says() {
        for (case, renewed, expected) in [
            ("just now", Some(1000), true),
            ("within", Some(961), true),
            ("over", Some(959), false),
            ("clock ahead", Some(1010), true),
            ("never", None, false),
        ] {
            assert_eq!(lease(renewed).is_valid(at(1000)), expected, "{case}");
        }
    }

    #[test]
    fn two_readings_show_a_renewal_without_a_clock() {
        let now = lease(Some(1000));
        for (case, earlier, expected) in [
            ("renewed", lease(Some(990)), true),
            (
                "renewed by a clock that was set back",
                lease(Some(4600)),
                true,
            ),
            ("for the first time", lease(None), true),
            ("not renewed", lease(Some(1000)), false),
            ("not seen before", Heartbeat::NoAnswer, false),
        ] {
            assert_eq!(now.is_newer_than(earlier), expected, "{case}");
        }
        assert!(
            !lease(None).is_newer_than(now),
            "a lease that went is no renewal"
        );
    }

    #[test]
    fn a_kubelet_that_renews_seldom_may_be_silent_for_longer() {
        for (case, heartbeat, seconds) in [
            ("as kubelets are shipped", lease_for(Some(1), 40), 30),
            ("a longer lease", lease_for(Some(1), 120), 90),
            ("a lease of a day", lease_for(Some(1), 86_400), 300),
            ("never sent", lease(None), 0),
        ] {
            assert_eq!(
                heartbeat.longest_gap(),
                Duration::from_secs(seconds),
                "{case}"
            );
        }
    }

    #[test]
    fn a_kubelet_without_a_lease_sends_heartbeats_in_its_ready_condition_and_in_no_other() {
        let node = |ready: &str, network: &str| -> Node {
            let conditions = json!([
                {"type": "NetworkUnavailable", "status": "False", "lastHeartbeatTime": network},
                {"type": "Ready", "status": "True", "lastHeartbeatTime": ready},
            ]);
            serde_json::from_value(json!({"status": {"conditions": conditions}})).unwrap()
        };
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z");
        let first = read_status(&node(early, early));
        assert!(read_status(&node(late, early)).is_newer_than(first));
        assert!(!read_status(&node(early, late)).is_newer_than(first));
        assert_eq!(read_status(&Node::default()), Heartbeat::Never);
    }
}
