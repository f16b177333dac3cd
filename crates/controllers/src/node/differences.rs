//! Tells where a Node and its machine differ in ways that are not ours to mend.

use cloudkeel_api::{Event, Match, Subject};
use tracing::warn;

use super::{NodeController, labels, lock};
use crate::clouds::{Cloud, Snapshot, is_surely_listed};
use crate::view::{NodeView, Readiness};

impl NodeController {
    /// Tells, once, what a sweep says about an initialised Node that nobody will change.
    pub(super) fn tell_differences(&self, cloud: &Cloud, snapshot: &Snapshot, node: &NodeView) {
        let Some((reason, message)) = self.difference(cloud, snapshot, node) else {
            lock(&self.told).remove(&node.facts.uid);
            return;
        };
        let before = lock(&self.told).insert(node.facts.uid.clone(), message.clone());
        if before.as_ref() != Some(&message) {
            warn!(node = node.facts.name, message, "node and machine differ");
            let subject = Subject::from(&node.facts);
            self.events.emit(Event::warning(subject, reason, message));
        }
    }

    fn difference(
        &self,
        cloud: &Cloud,
        snapshot: &Snapshot,
        node: &NodeView,
    ) -> Option<(&'static str, String)> {
        let instances = cloud.provider.instances()?;
        match instances.identify(&node.facts, &snapshot.sweep) {
            Match::None => {
                let missed = snapshot.sweep.is_complete()
                    && node.readiness == Readiness::Ready
                    && is_surely_listed(&node.facts, self.clock.now());
                let id = node.facts.provider_id.as_ref()?;
                missed.then(|| {
                    let message = format!(
                        "The node is Ready, but the cloud no longer lists its machine {id}; it is \
                         kept while it is Ready"
                    );
                    ("MachineNotListed", message)
                })
            }
            Match::One(instance) if !self.settings.follow.topology => {
                let moved = labels::moved(instance, &node.facts);
                let moved: Vec<_> = moved
                    .into_iter()
                    .map(|(key, was, now)| format!("{key} is {was}, the machine says {now}"))
                    .collect();
                let message = format!("The machine has moved: {}", moved.join("; "));
                (!moved.is_empty()).then_some(("TopologyChanged", message))
            }
            Match::One(_) | Match::Many(_) => None,
        }
    }
}
