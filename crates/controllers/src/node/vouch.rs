//! A name proves little: another project may have a machine of the same one. So a machine that was found by
//! name counts only if the same credential shows machines of Nodes that are at work here. If no Node is at
//! work, as in a new cluster or one whose machines were all replaced, nobody can vouch, and nobody has to.

use std::sync::Arc;

use tokio::time::Instant;

use super::find::{Found, Reason, no_answer};
use super::{NodeController, lock};
use crate::clouds::{Cloud, Footing, Snapshot, with_machines};
use crate::runtime::{Cause, Verdict};
use crate::view::{NodeView, Readiness};

impl NodeController {
    /// Whether a machine that was found by name can be one of ours.
    pub(super) async fn vouch(&self, cloud: &Cloud, found: &Found) -> Result<(), Reason> {
        match found {
            Found::Listed { by, .. } => self.vouch_for_sweep(cloud, by).await,
            Found::LookedUp { began, .. } => self.vouch_for_look_up(cloud, *began).await,
        }
    }

    /// The sweep itself has to show machines of Nodes that are at work: a later look may be by another
    /// credential. Worked out once for all newcomers that it serves.
    async fn vouch_for_sweep(&self, cloud: &Cloud, by: &Snapshot) -> Result<(), Reason> {
        let at_work = || self.at_work(cloud);
        let is_ours = match self.known_of(cloud, by) {
            Some(is_ours) => is_ours,
            None => self.shows_ours(cloud, by) || cloud.can_show_none_of(&at_work()).await,
        };
        lock(&self.vouched).insert(cloud.name.clone(), (by.began, is_ours));
        if is_ours {
            Ok(())
        } else {
            Err(strange(cloud, at_work().len()))
        }
    }

    /// Whether a sweep can be believed about machines that it shows by name, as far as that is known
    /// without another look.
    pub(super) fn vouches_for(&self, cloud: &Cloud, by: &Snapshot) -> bool {
        let known = self.known_of(cloud, by);
        known.unwrap_or_else(|| self.shows_ours(cloud, by))
    }

    fn known_of(&self, cloud: &Cloud, by: &Snapshot) -> Option<bool> {
        let vouched = lock(&self.vouched);
        let (began, is_ours) = vouched.get(&cloud.name)?;
        (*began == by.began).then_some(*is_ours)
    }

    fn shows_ours(&self, cloud: &Cloud, by: &Snapshot) -> bool {
        let at_work = self.at_work(cloud);
        at_work.is_empty() || cloud.shows_any_of(&by.sweep, &at_work)
    }

    async fn vouch_for_look_up(&self, cloud: &Cloud, began: Instant) -> Result<(), Reason> {
        match cloud.footing(began, || self.at_work(cloud)).await {
            Footing::Ours => Ok(()),
            Footing::Strange => Err(strange(cloud, self.at_work(cloud).len())),
            Footing::Unanswered(error) => Err(no_answer(cloud, &error)),
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
    let why = Cause::of_text(format_args!(
        "there is a machine of this name, but none of the machines of the {at_work} Nodes that are \
         Ready: its credential may be that of another project"
    ));
    (why.in_cloud(&cloud.name), Verdict::Failed, true)
}
