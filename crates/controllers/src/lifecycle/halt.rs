//! A stop of deletions that no proof brought about, and its end.

use std::sync::Arc;

use super::ask::FRESH;
use super::judge::Decision;
use super::{LifecycleController, Verdict};
use crate::clouds::Cloud;
use crate::view::NodeView;

impl LifecycleController {
    /// A machine was not found, but by a credential that may be blind. That proves nothing, yet people
    /// have to hear of it.
    pub(super) async fn suspect_blindness(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Verdict {
        self.end_row(&node.facts.uid);
        self.give_up_turn(node);
        match self.judge_all(clouds).await {
            Err(doubt) => self.leave(node, Decision::Halt { doubt }),
            Ok(()) => self.ask_later(&node.facts.uid),
        }
    }

    /// Looks again at clouds whose deletions are stopped: if all machines are there after all, no
    /// suspect is left whose turn would end the stop.
    pub(super) async fn review_halts(&self) {
        loop {
            tokio::time::sleep(self.settings.longest_pause).await;
            for cloud in &self.parts.clouds {
                let halted = self.with_guard(cloud, |guard| guard.halted.is_some());
                if halted && cloud.inventory.no_older_than(FRESH).await.is_ok() {
                    // Whatever it is now, it is noted.
                    let _ = self.judge_scope(cloud).await;
                }
            }
        }
    }
}
