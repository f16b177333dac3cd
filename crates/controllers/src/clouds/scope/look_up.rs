//! Look-ups of a few Nodes, where no list shows a known instance.

use std::collections::VecDeque;
use std::sync::Arc;

use cloudkeel_api::{Doubt, Existence};
use tokio::time::Instant;

use super::{Cloud, ScopeCheck, count_ready, is_another_instance, is_instance_of};
use crate::view::{NodeView, Readiness};

/// Nodes that are looked up before it is concluded that no known instance is seen. One may be gone for good.
const MOST_LOOK_UPS: usize = 3;

/// Looks up a few of these Nodes by ID until one has a known instance.
pub(super) async fn look_up(cloud: &Cloud, nodes: &[Arc<NodeView>]) -> ScopeCheck {
    let compares_names = cloud.scope.compares_names();
    let provider = cloud.provider();
    let Some(instances) = provider.instances() else {
        return ScopeCheck::Confirmed;
    };
    let asked = Instant::now();
    let (mut check, mut look_ups, mut ready) = (ScopeCheck::Confirmed, 0, 0);
    for node in nodes {
        let began = Instant::now();
        match instances.find(&node.facts, None).await {
            Existence::Present(instance)
                if !is_another_instance(&instance, &node.facts)
                    && (!compares_names || is_instance_of(&instance, &node.facts)) =>
            {
                cloud.scope.memory.lock().confirm(began);
                return ScopeCheck::Confirmed;
            }
            // The cloud was not configured to look for this one, so the next has to do.
            Existence::Unknown(Doubt::NotOurs { .. }) => continue,
            Existence::Unknown(Doubt::NoAnswer(error)) => check = ScopeCheck::Unavailable(error),
            Existence::Present(_) | Existence::Gone(_) | Existence::Unknown(_) => {
                // Ready Nodes come first.
                if node.readiness == Readiness::Ready {
                    ready = count_ready(nodes);
                }
                if !matches!(check, ScopeCheck::Unavailable(_)) {
                    check = ScopeCheck::Unrecognized { ready };
                }
            }
        }
        look_ups += 1;
        if look_ups == MOST_LOOK_UPS {
            break;
        }
    }
    if matches!(check, ScopeCheck::Unrecognized { .. }) {
        cloud.scope.memory.lock().doubt(asked);
    }
    check
}

/// Whether the cloud is configured to look for any of these Nodes, unlike dedicated servers of an account that it has
/// no login for.
pub(super) async fn can_ask_for_any(cloud: &Cloud, nodes: &[Arc<NodeView>]) -> bool {
    let provider = cloud.provider();
    let Some(instances) = provider.instances() else {
        return false;
    };
    for node in nodes {
        let answer = instances.find(&node.facts, None).await;
        if !matches!(answer, Existence::Unknown(Doubt::NotOurs { .. })) {
            return true;
        }
    }
    false
}

/// Ready Nodes first, of them those that were listed, and the youngest and the oldest in turn. Of Nodes that are Ready,
/// many may have lost their instances moments ago: in a rolling replacement the oldest, with a pool that is removed
/// the youngest.
pub(super) fn likely_first(
    mut nodes: Vec<Arc<NodeView>>,
    was_listed: impl Fn(&NodeView) -> bool,
) -> Vec<Arc<NodeView>> {
    nodes.sort_by_key(|node| node.facts.created);
    let mut groups = [const { VecDeque::new() }; 3];
    let [likely, ready, others] = &mut groups;
    for node in nodes {
        match node.readiness {
            Readiness::Ready if was_listed(&node) => likely.push_back(node),
            Readiness::Ready => ready.push_back(node),
            Readiness::NotReady | Readiness::Unknown => others.push_back(node),
        }
    }
    let in_turn = |mut nodes: VecDeque<_>| {
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
    groups.into_iter().flat_map(in_turn).collect()
}
