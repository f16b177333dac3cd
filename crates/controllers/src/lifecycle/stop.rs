//! The stop of deletions of a cloud that is in doubt: when it begins, how it is reported, and its end.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{error, info};

use super::judge::Decision;
use super::scope::ScopeDoubt;
use super::{LifecycleController, Verdict};
use crate::clouds::Cloud;
use crate::view::NodeView;

/// A kubelet that was heard this recently lives: it reports more often than that.
const LIVES: Duration = Duration::from_secs(15);
/// A stop is not reported to be over before no kubelet was heard for this long.
const HEARD_LATELY: Duration = Duration::from_secs(30);

/// Deletions of a cloud are stopped.
pub(super) struct Halt {
    pub(super) since: Timestamp,
    pub(super) at: Instant,
    pub(super) doubt: ScopeDoubt,
}

impl LifecycleController {
    /// A machine was not found, but by a credential that may be blind. That proves nothing, yet people
    /// have to hear of it.
    pub(super) async fn suspect_blindness(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Verdict {
        self.give_up_turn(node);
        if let Err(doubt) = self.check_scopes(clouds, self.a_minute_ago()).await {
            return self.leave(node, Decision::Halt { doubt });
        }
        self.end_row(node);
        self.ask_later(node)
    }

    /// Why a suspect that was not found need not be looked for again yet: its cloud is in doubt still, and no
    /// answer would count.
    pub(super) async fn is_still_stopped(
        &self,
        node: &NodeView,
        clouds: &[Arc<Cloud>],
    ) -> Option<Verdict> {
        let is_stopped =
            |cloud: &Arc<Cloud>| self.with_guard(cloud, |guard| guard.halted.is_some());
        let pause = self.settings.longest_pause;
        let missed = self
            .histories
            .with(&node.facts.uid, |history| history.missed);
        let was_missed_lately = missed
            .flatten()
            .is_some_and(|missed| missed.elapsed() < pause);
        if !was_missed_lately || !clouds.iter().any(is_stopped) {
            return None;
        }
        let scope = self.check_scopes(clouds, self.a_minute_ago()).await;
        let scope = scope.map(|_lists| ());
        let mut doubts = clouds.iter();
        let doubt = doubts.find_map(|cloud| self.doubt_of(cloud, &scope, LIVES))?;
        Some(self.leave(node, Decision::Halt { doubt }))
    }

    /// Looks again at clouds whose deletions are stopped: if all machines are there after all, no
    /// suspect is left whose turn would end the stop.
    pub(super) async fn review_stops(&self) {
        loop {
            tokio::time::sleep(self.settings.longest_pause).await;
            self.learn_homes();
            for cloud in &self.parts.clouds {
                if self.with_guard(cloud, |guard| guard.halted.is_some()) {
                    let cloud = std::slice::from_ref(cloud);
                    // Whatever it is now, it is noted.
                    let _ = self.check_scopes(cloud, self.a_minute_ago()).await;
                }
            }
        }
    }

    /// Lists from before this moment are too old to tell how a stop stands.
    fn a_minute_ago(&self) -> Instant {
        let now = Instant::now();
        now.checked_sub(self.settings.longest_pause).unwrap_or(now)
    }

    pub(super) fn note_verdict(&self, cloud: &Cloud, verdict: &Result<(), ScopeDoubt>) {
        let doubt = self.doubt_of(cloud, verdict, HEARD_LATELY);
        let is_stopped = doubt.is_some();
        let since = self.parts.clock.now();
        let was_stopped = self.with_guard(cloud, |guard| {
            let before = guard.halted.take();
            let was_stopped = before.is_some();
            let (since, at) = before.map_or((since, Instant::now()), |it| (it.since, it.at));
            guard.halted = doubt.clone().map(|doubt| Halt { since, at, doubt });
            was_stopped
        });
        if was_stopped == is_stopped {
            return;
        }
        self.parts.observer.halted(&cloud.name, is_stopped);
        if let Some(doubt) = doubt {
            error!(cloud = cloud.name, %doubt, "deletions of nodes are stopped");
        } else {
            info!(cloud = cloud.name, "deletions of nodes may go on");
        }
    }
}
