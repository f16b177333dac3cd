//! The condition `NetworkUnavailable`, word for word as upstream has it.

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tracing::warn;

use super::RouteController;
use super::plan::Plan;
use super::reconcile::{Nodes, Results, is_implemented_elsewhere};
use crate::log_messages::NETWORK_CONDITION_FAILED;
use crate::runtime::{Verdict, WriteError};
use crate::view::NodeView;

/// How many Nodes are written at once.
const AT_ONCE: usize = 30;
/// How often a write is tried at once, as upstream does.
const TRIES: u32 = 5;
/// Pause after the first conflict, which grows by itself.
const PAUSE: Duration = Duration::from_millis(100);

/// What the condition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Every Pod CIDR of the Node has its route.
    Available,
    /// Some have none.
    Unavailable,
}

impl Network {
    /// Status, reason and message.
    const fn words(self) -> [&'static str; 3] {
        match self {
            Self::Available => ["False", "RouteCreated", "RouteController created a route"],
            Self::Unavailable => [
                "True",
                "NoRouteCreated",
                "RouteController failed to create a route",
            ],
        }
    }

    /// Whether the Node has it already, status and reason. Another component's reason is replaced.
    pub(super) fn is_on(self, node: &NodeView) -> bool {
        let [status, reason, _] = self.words();
        let standing = node.network_unavailable.as_ref();
        standing
            .is_some_and(|(has_status, has_reason)| has_status == status && has_reason == reason)
    }

    pub(super) fn condition(self, now: Timestamp) -> NodeCondition {
        let [status, reason, message] = self.words().map(str::to_owned);
        NodeCondition {
            type_: "NetworkUnavailable".to_owned(),
            status,
            reason: Some(reason),
            message: Some(message),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(Time(now)),
        }
    }
}

impl RouteController {
    /// Writes the conditions that differ. Anything but [`Verdict::Done`] is to be tried again.
    pub(super) async fn write_conditions(
        &self,
        nodes: &Nodes,
        plan: &Plan,
        results: &Results,
    ) -> Verdict {
        let is_created = |change: usize| match results.get(change) {
            Some(Ok(())) => Some(true),
            Some(Err(error)) if is_implemented_elsewhere(error) => None,
            Some(Err(_)) | None => Some(false),
        };
        let writes = plan.nodes.iter().filter_map(|planned| {
            let (node, _) = nodes.get(&planned.name)?;
            let network = planned.network(is_created)?;
            (!network.is_on(node)).then(|| self.write_condition(node, network))
        });
        let writes: Vec<_> = writes.collect();
        let verdicts: Vec<_> = futures::stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let worst = [Verdict::Failed, Verdict::UserAction];
        let worst = worst.into_iter().find(|verdict| verdicts.contains(verdict));
        worst.unwrap_or(Verdict::Done)
    }

    async fn write_condition(&self, node: &NodeView, network: Network) -> Verdict {
        let mut tried = 0;
        loop {
            let condition = network.condition(self.parts.clock.now());
            let error = match self.parts.writer.write_condition(node, &condition).await {
                Ok(()) | Err(WriteError::Gone) => return Verdict::Done,
                Err(error) => error,
            };
            tried += 1;
            if !matches!(error, WriteError::Conflict) || tried == TRIES {
                let node = &node.facts.name;
                warn!(node, err = %error, "{NETWORK_CONDITION_FAILED}");
                let needs_role = error.is_forbidden();
                return if needs_role {
                    Verdict::UserAction
                } else {
                    Verdict::Failed
                };
            }
            tokio::time::sleep(PAUSE * tried).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_unless_status_and_reason_stand() {
        for (case, standing, network, expected) in [
            ("absent", None, Network::Available, false),
            (
                "equal",
                Some(("False", "RouteCreated")),
                Network::Available,
                true,
            ),
            (
                "another component's reason",
                Some(("False", "CalicoIsUp")),
                Network::Available,
                false,
            ),
            (
                "it flips to bad",
                Some(("False", "RouteCreated")),
                Network::Unavailable,
                false,
            ),
            (
                "it flips to good",
                Some(("True", "NoRouteCreated")),
                Network::Available,
                false,
            ),
            (
                "equally bad",
                Some(("True", "NoRouteCreated")),
                Network::Unavailable,
                true,
            ),
        ] {
            let node = NodeView {
                network_unavailable: standing.map(|(s, r)| (s.to_owned(), r.to_owned())),
                ..NodeView::default()
            };
            assert_eq!(network.is_on(&node), expected, "{case}");
        }
    }

    #[test]
    fn the_words_are_upstreams() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let words = |network: Network| serde_json::to_value(network.condition(now)).unwrap();
        assert_eq!(
            words(Network::Available),
            serde_json::json!({
                "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
                "message": "RouteController created a route",
                "lastHeartbeatTime": "2026-01-02T03:04:05Z",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            })
        );
        let bad = words(Network::Unavailable);
        assert_eq!(bad["status"], "True");
        assert_eq!(bad["reason"], "NoRouteCreated");
        assert_eq!(bad["message"], "RouteController failed to create a route");
    }
}
