//! A name proves little: another project may have a machine of the same one. So a machine that was found by
//! name counts only if the same credential shows machines of Nodes that are at work here. If no Node is at
//! work, as in a new cluster or one whose machines were all replaced, nobody can vouch, and nobody has to.

use std::sync::Arc;

use tokio::time::Instant;

use super::find::{Found, Reason};
use super::{NodeController, lock};
use crate::clouds::{Cloud, Footing, Snapshot, with_machines};
use crate::runtime::Verdict;
use crate::view::{NodeView, Readiness};

impl NodeController {
    /// Whether a machine that was found by name can be one of ours.
    pub(super) async fn vouch(&self, cloud: &Cloud, found: &Found) -> Result<(), Reason> {
        match found {
            Found::Listed { by, .. } => self.vouch_for_sweep(cloud, by),
            Found::LookedUp { began, .. } => self.vouch_for_look_up(cloud, *began).await,
        }
    }

    /// The sweep itself has to show them: a later look may be by another credential. Worked out once for
    /// all newcomers that it serves.
    pub(super) fn vouch_for_sweep(&self, cloud: &Cloud, by: &Snapshot) -> Result<(), Reason> {
        if lock(&self.vouched).get(&cloud.name) == Some(&by.began) {
            return Ok(());
        }
        let at_work = self.at_work(cloud);
        if !at_work.is_empty() && !cloud.shows_any_of(&by.sweep, &at_work) {
            return Err(strange(cloud, at_work.len()));
        }
        lock(&self.vouched).insert(cloud.name.clone(), by.began);
        Ok(())
    }

    async fn vouch_for_look_up(&self, cloud: &Cloud, began: Instant) -> Result<(), Reason> {
        match cloud.footing(began, || self.at_work(cloud)).await {
            Footing::Ours => Ok(()),
            Footing::Strange => Err(strange(cloud, self.at_work(cloud).len())),
            Footing::Unanswered(error) => {
                let why = format!("cloud {}: {error}", cloud.name);
                Err((why, Verdict::of(&error), true))
            }
        }
    }

    fn at_work(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        let nodes = self.nodes.all();
        let mut nodes = with_machines(nodes, &self.clouds, |owner| owner.is(cloud));
        nodes.retain(|node| node.readiness == Readiness::Ready);
        nodes
    }
}

fn strange(cloud: &Cloud, at_work: usize) -> Reason {
    let why = format!(
        "cloud {}: there is a machine of this name, but none of the machines of the {at_work} Nodes that are \
         Ready: its credential may be that of another project",
        cloud.name
    );
    (why, Verdict::Failed, true)
}
