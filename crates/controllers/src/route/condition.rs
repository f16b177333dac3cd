//! The condition `NetworkUnavailable`, word for word as upstream has it, and where it is written.

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tracing::warn;

use super::RouteController;
use super::pass::{Members, Results, is_elsewhere};
use super::plan::Plan;
use crate::runtime::{Verdict, WriteError};
use crate::view::NodeView;

/// How many Nodes are written at once.
const AT_ONCE: usize = 30;
/// How often a write is tried at once, as upstream does.
const TRIES: u32 = 5;
/// Pause after the first conflict, which grows by itself.
const PAUSE: Duration = Duration::from_millis(100);

/// What is reported about a Node's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Every network of the Node has its route.
    Available,
    /// Some have none.
    Unavailable,
}

impl Network {
    const fn status(self) -> &'static str {
        match self {
            Self::Available => "False",
            Self::Unavailable => "True",
        }
    }

    const fn reason(self) -> &'static str {
        match self {
            Self::Available => "RouteCreated",
            Self::Unavailable => "NoRouteCreated",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::Available => "RouteController created a route",
            Self::Unavailable => "RouteController failed to create a route",
        }
    }

    /// Whether the Node says so already: in its status and its reason. What another component said
    /// in other words is replaced.
    pub(super) fn stands_on(self, node: &NodeView) -> bool {
        let standing = node.network_unavailable.as_ref();
        standing.is_some_and(|(status, reason)| status == self.status() && reason == self.reason())
    }

    pub(super) fn condition(self, now: Timestamp) -> NodeCondition {
        NodeCondition {
            type_: "NetworkUnavailable".to_owned(),
            status: self.status().to_owned(),
            reason: Some(self.reason().to_owned()),
            message: Some(self.message().to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(Time(now)),
        }
    }
}

impl RouteController {
    /// Writes what the Nodes do not say yet. Anything but [`Verdict::Done`] is to be tried again.
    pub(super) async fn write_conditions(
        &self,
        members: &Members,
        plan: &Plan,
        results: &Results,
    ) -> Verdict {
        let made = |change: usize| match results.get(change) {
            Some(Ok(())) => Some(true),
            Some(Err(error)) if is_elsewhere(error) => None,
            Some(Err(_)) | None => Some(false),
        };
        let mut writes = Vec::new();
        for planned in &plan.nodes {
            if let Some((node, _)) = members.get(&planned.name)
                && let Some(network) = planned.network(made)
                && !network.stands_on(node)
            {
                writes.push(self.write_condition(node, network));
            }
        }
        let verdicts: Vec<_> = futures::stream::iter(writes)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let worst = [Verdict::Failed, Verdict::NeedsPerson];
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
                warn!(node = node.facts.name, %error, "the condition NetworkUnavailable was not written");
                return verdict_of(&error);
            }
            tokio::time::sleep(PAUSE * tried).await;
        }
    }
}

fn verdict_of(error: &WriteError) -> Verdict {
    match error {
        WriteError::Api(kube::Error::Api(status)) if status.code == 403 => Verdict::NeedsPerson,
        _ => Verdict::Failed,
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
            assert_eq!(network.stands_on(&node), expected, "{case}");
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
