//! Whether a cloud shows machines of this cluster: the only sign, in most clouds, that a credential still
//! belongs to the project that the cluster lives in.

use cloudkeel_api::{CloudError, Doubt, Existence, NodeFacts};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Cloud, Inventory};

/// Machines that are looked for before it is concluded that none is shown. One may be gone for good.
const MOST_LOOKS: usize = 3;

/// What a look for our own machines told.
#[derive(Debug)]
pub enum Footing {
    /// One of them is there; or there is none to look for.
    Ours,
    /// None of them is.
    Strange,
    /// The cloud gave no usable answer.
    Unanswered(CloudError),
}

/// When the last look began that found a machine of this cluster.
#[derive(Debug, Default)]
pub(super) struct Foothold(Mutex<Option<Instant>>);

impl Cloud {
    /// What a look for these machines tells, if it began at or after `moment`. All who ask meanwhile share
    /// it, and a sweep will do as well.
    pub async fn footing(&self, moment: Instant, ours: &[&NodeFacts]) -> Footing {
        let instances = self.provider.instances().filter(|_| !ours.is_empty());
        let Some(instances) = instances else {
            return Footing::Ours;
        };
        let mut found = self.foothold.0.lock().await;
        if found.is_some_and(|found| found >= moment) || is_listed(&self.inventory, ours, moment) {
            return Footing::Ours;
        }
        let mut footing = Footing::Strange;
        for node in ours.iter().take(MOST_LOOKS) {
            let began = Instant::now();
            match instances.find(node, None).await {
                Existence::Present(_) => {
                    *found = Some(began);
                    return Footing::Ours;
                }
                Existence::Unknown(Doubt::NoAnswer(error)) => footing = Footing::Unanswered(error),
                Existence::Gone(_) | Existence::Unknown(_) => {}
            }
        }
        footing
    }
}

/// Whether a sweep since then has seen one of them.
fn is_listed(inventory: &Inventory, ours: &[&NodeFacts], moment: Instant) -> bool {
    let fresh = inventory.latest().filter(|seen| seen.began >= moment);
    fresh.is_some_and(|seen| {
        let mut ids = ours.iter().filter_map(|node| node.provider_id.as_ref());
        ids.any(|id| seen.sweep.get(id).is_some())
    })
}
