//! The four conditions of a Node, as its kubelet and the node lifecycle controller write them.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";

/// How a Node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// Its kubelet says that it is ready.
    Ready,
    /// Its kubelet says that it is not.
    NotReady,
    /// Its kubelet says nothing any more.
    Silent,
}

/// A kubelet's pressure conditions with the reason and message of a healthy machine. Ready comes last.
const PRESSURES: [(&str, &str, &str); 3] = [
    (
        "MemoryPressure",
        "KubeletHasSufficientMemory",
        "kubelet has sufficient memory available",
    ),
    (
        "DiskPressure",
        "KubeletHasNoDiskPressure",
        "kubelet has no disk pressure",
    ),
    (
        "PIDPressure",
        "KubeletHasSufficientPID",
        "kubelet has sufficient PID available",
    ),
];

/// The conditions of a Node in this health, given those it had before.
///
/// A transition time moves only when the status changes, and a silent kubelet sends no heartbeat.
pub(super) fn conditions(
    before: &[NodeCondition],
    health: Health,
    now: Timestamp,
) -> Vec<NodeCondition> {
    PRESSURES
        .into_iter()
        .map(|(kind, reason, message)| (kind, "False", reason, message))
        .chain([ready(health)])
        .map(|(kind, status, reason, message)| {
            let old = before.iter().find(|condition| condition.type_ == kind);
            let (status, reason, message) = if health == Health::Silent {
                (
                    "Unknown",
                    "NodeStatusUnknown",
                    "Kubelet stopped posting node status.",
                )
            } else {
                (status, reason, message)
            };
            let heartbeat = match (health, old) {
                (Health::Silent, Some(old)) => old.last_heartbeat_time.clone(),
                _ => Some(Time(now)),
            };
            let transition = match old {
                Some(old) if old.status == status => old.last_transition_time.clone(),
                _ => Some(Time(now)),
            };
            NodeCondition {
                type_: kind.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_heartbeat_time: heartbeat,
                last_transition_time: transition,
            }
        })
        .collect()
}

fn ready(health: Health) -> (&'static str, &'static str, &'static str, &'static str) {
    match health {
        Health::Ready => (
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        ),
        Health::NotReady | Health::Silent => (
            "Ready",
            "False",
            "KubeletNotReady",
            "container runtime network not ready: NetworkReady=false",
        ),
    }
}

/// The taints of a Node in this health: the lifecycle controller owns two keys and leaves all others alone.
pub(super) fn taints(before: &[Taint], health: Health) -> Vec<Taint> {
    let owned = match health {
        Health::Ready => None,
        Health::NotReady => Some(NOT_READY_TAINT),
        Health::Silent => Some(UNREACHABLE_TAINT),
    };
    let others = before
        .iter()
        .filter(|taint| taint.key != NOT_READY_TAINT && taint.key != UNREACHABLE_TAINT)
        .cloned();
    let ours = owned.into_iter().flat_map(|key| {
        ["NoSchedule", "NoExecute"].map(|effect| Taint {
            key: key.to_owned(),
            effect: effect.to_owned(),
            ..Taint::default()
        })
    });
    others.chain(ours).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// The type, status and the seconds of the heartbeat and of the transition.
    fn gist(condition: &NodeCondition) -> (&str, &str, i64, i64) {
        let second = |time: &Option<Time>| time.as_ref().unwrap().0.as_second();
        (
            condition.type_.as_str(),
            condition.status.as_str(),
            second(&condition.last_heartbeat_time),
            second(&condition.last_transition_time),
        )
    }

    #[test]
    fn a_heartbeat_moves_the_transition_time_only_when_the_status_changes() {
        let first = conditions(&[], Health::NotReady, at(10));
        let second = conditions(&first, Health::Ready, at(20));
        let third = conditions(&second, Health::Ready, at(30));
        for (case, seen, memory, ready) in [
            ("first sight", first, ("False", 10, 10), ("False", 10, 10)),
            ("becomes ready", second, ("False", 20, 10), ("True", 20, 20)),
            ("stays ready", third, ("False", 30, 10), ("True", 30, 20)),
        ] {
            let order: Vec<_> = seen
                .iter()
                .map(|condition| condition.type_.as_str())
                .collect();
            assert_eq!(
                order,
                ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"],
                "{case}"
            );
            let (status, heartbeat, transition) = memory;
            assert_eq!(
                gist(&seen[0]),
                ("MemoryPressure", status, heartbeat, transition),
                "{case}"
            );
            let (status, heartbeat, transition) = ready;
            assert_eq!(
                gist(&seen[3]),
                ("Ready", status, heartbeat, transition),
                "{case}"
            );
        }
    }

    #[test]
    fn a_silent_kubelet_leaves_its_last_heartbeat_and_an_unknown_state() {
        let before = conditions(&[], Health::Ready, at(10));
        let after = conditions(&before, Health::Silent, at(60));
        for condition in &after {
            let (kind, status, heartbeat, transition) = gist(condition);
            assert_eq!(
                (status, heartbeat, transition),
                ("Unknown", 10, 60),
                "{kind}"
            );
            assert_eq!(
                condition.reason.as_deref(),
                Some("NodeStatusUnknown"),
                "{kind}"
            );
        }
    }

    #[test]
    fn only_the_two_taints_of_the_lifecycle_controller_change() {
        let foreign = Taint {
            key: "example.com/mine".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        let mut now = vec![foreign.clone()];
        for (health, expected) in [
            (
                Health::NotReady,
                vec!["example.com/mine", NOT_READY_TAINT, NOT_READY_TAINT],
            ),
            (
                Health::Silent,
                vec!["example.com/mine", UNREACHABLE_TAINT, UNREACHABLE_TAINT],
            ),
            (Health::Ready, vec!["example.com/mine"]),
        ] {
            now = taints(&now, health);
            let keys: Vec<_> = now.iter().map(|taint| taint.key.as_str()).collect();
            assert_eq!(keys, expected, "{health:?}");
        }
        assert_eq!(now, [foreign]);
    }
}
