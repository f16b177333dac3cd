//! Whether a cloud shows machines of this cluster: the only sign, in most clouds, that a credential still
//! belongs to the project that the cluster lives in.

use std::sync::Arc;

use cloudkeel_api::{CloudError, Doubt, Existence};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Cloud;
use crate::view::NodeView;

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
    /// What a look for the machines of `ours` tells, if it began at or after `moment`. All who ask meanwhile
    /// share it, and a sweep will do as well. Who is ours is worked out only if somebody has to look.
    pub async fn footing(
        &self,
        moment: Instant,
        ours: impl FnOnce() -> Vec<Arc<NodeView>>,
    ) -> Footing {
        let Some(instances) = self.provider.instances() else {
            return Footing::Ours;
        };
        let mut found = self.foothold.0.lock().await;
        if found.is_some_and(|found| found >= moment) {
            return Footing::Ours;
        }
        let ours = ours();
        let fresh = self.inventory.latest().filter(|seen| seen.began >= moment);
        if ours.is_empty() || fresh.is_some_and(|seen| seen.shows_any_of(&ours)) {
            return Footing::Ours;
        }
        let mut footing = Footing::Strange;
        for node in ours.iter().take(MOST_LOOKS) {
            let began = Instant::now();
            match instances.find(&node.facts, None).await {
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
