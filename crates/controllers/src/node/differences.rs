//! Tells where a Node and its machine differ in ways that are not ours to mend.

use cloudkeel_api::{Instance, Match};

use super::{NodeController, labels, plan};
use crate::clouds::{Cloud, Snapshot, is_surely_listed};
use crate::view::{NodeView, Readiness};

impl NodeController {
    /// Tells, once, what a sweep says about an initialised Node that nobody will change.
    pub(super) fn tell_differences(&self, cloud: &Cloud, snapshot: &Snapshot, node: &NodeView) {
        let (mut not_listed, mut moved) = (None, None);
        match self.match_in(cloud, snapshot, node) {
            Match::None => not_listed = self.not_listed(snapshot, node),
            Match::One(instance) => {
                moved = self.moved(instance, node);
                let what = self.settings.follow;
                let (_, declined) = plan::labels_to_refresh(node, instance, what);
                self.report_declined(node, &declined);
            }
            Match::Many(_) => {}
        }
        self.report_once(node, "MachineNotListed", not_listed);
        self.report_once(node, "TopologyChanged", moved);
    }

    fn not_listed(&self, snapshot: &Snapshot, node: &NodeView) -> Option<String> {
        let id = node.facts.provider_id.as_ref()?;
        let missed = snapshot.sweep.is_complete()
            && node.readiness == Readiness::Ready
            && is_surely_listed(&node.facts, self.clock.now());
        missed.then(|| {
            format!(
                "The node is Ready, but the cloud no longer lists its machine {id}; it is kept while it is \
                 Ready"
            )
        })
    }

    fn moved(&self, instance: &Instance, node: &NodeView) -> Option<String> {
        if self.settings.follow.topology {
            return None;
        }
        let moved = labels::moved(instance, &node.facts).into_iter();
        let moved = moved.map(|(key, was, now)| format!("{key} is {was}, the machine says {now}"));
        let moved: Vec<_> = moved.collect();
        (!moved.is_empty()).then(|| format!("The machine has moved: {}", moved.join("; ")))
    }
}
