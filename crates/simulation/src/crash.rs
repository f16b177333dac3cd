//! What becomes of the process of a manager: it crashes, at any time or exactly before or after something it does, or it
//! is frozen for a while.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::time::{Instant, sleep_until};

/// What a manager is doing when it crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CrashPoint {
    /// A write to the API is about to be sent.
    BeforeWrite,
    /// A write to the API was carried out, and the answer is not read yet.
    AfterWrite,
    /// A change in the cloud is about to be sent.
    BeforeChange,
    /// A change in the cloud was carried out, and the answer is not read yet.
    AfterChange,
}

impl CrashPoint {
    pub(crate) const ALL: [Self; 4] = [
        Self::BeforeWrite,
        Self::AfterWrite,
        Self::BeforeChange,
        Self::AfterChange,
    ];
}

/// The state of one process, shared by its connections to the API and to the cloud.
#[derive(Debug, Default)]
pub(crate) struct CrashSwitch(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    dead: bool,
    armed: Option<(CrashPoint, u32)>,
    frozen_until: Option<Instant>,
}

impl CrashSwitch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It crashes now: whatever is still under way never ends.
    pub(crate) fn kill(&self) {
        self.state().dead = true;
    }

    /// It crashes when it does this for the `nth` time from now.
    pub(crate) fn crash_at(&self, point: CrashPoint, nth: u32) {
        self.state().armed = Some((point, nth));
    }

    pub(crate) fn disarm(&self) {
        self.state().armed = None;
    }

    /// It does nothing until then, as a process that got a SIGSTOP, or on a virtual machine that is paused.
    pub(crate) fn freeze(&self, until: Instant) {
        self.state().frozen_until = Some(until);
    }

    pub(crate) fn thaw(&self) {
        self.state().frozen_until = None;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// When it wakes up, if it is frozen.
    fn wakes_at(&self) -> Option<Instant> {
        let until = self.state().frozen_until;
        until.filter(|until| Instant::now() < *until)
    }

    /// Never returns for a process that is dead, nor for one that crashes at this point; for one that is frozen, when it
    /// wakes up.
    pub(crate) async fn reach(&self, point: Option<CrashPoint>) {
        while let Some(until) = self.wakes_at() {
            sleep_until(until).await;
        }
        if self.crashes_at(point) {
            std::future::pending::<()>().await;
        }
    }

    fn crashes_at(&self, point: Option<CrashPoint>) -> bool {
        let mut state = self.state();
        if let (Some(point), Some((at, nth))) = (point, state.armed)
            && point == at
        {
            state.armed = Some((at, nth.saturating_sub(1)));
            state.dead |= nth <= 1;
        }
        state.dead
    }
}

/// Runs the work of a process, but not while it is frozen.
pub(crate) async fn run_unless_frozen<F: Future>(switch: Arc<CrashSwitch>, work: F) -> F::Output {
    let mut work = pin!(work);
    let mut wake_up = None;
    poll_fn(|context| {
        while let Some(until) = switch.wakes_at() {
            let timer = wake_up.insert(Box::pin(sleep_until(until)));
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        work.as_mut().poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_frozen_process_does_nothing_until_it_wakes_up() {
        let switch = Arc::<CrashSwitch>::default();
        let started = Instant::now();
        let work = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Instant::now()
        };
        let running = tokio::spawn(run_unless_frozen(Arc::clone(&switch), work));
        tokio::time::sleep(Duration::from_secs(1)).await;
        switch.freeze(started + Duration::from_mins(3));
        let ended = running.await.expect("its work ends");
        assert_eq!(ended - started, Duration::from_mins(3));
        switch.reach(None).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_crashes_when_it_does_something_for_the_nth_time() {
        let switch = CrashSwitch::default();
        switch.crash_at(CrashPoint::AfterWrite, 2);
        for point in [CrashPoint::AfterWrite, CrashPoint::BeforeWrite] {
            switch.reach(Some(point)).await;
            assert!(!switch.is_dead(), "{point:?}");
        }
        let last = switch.reach(Some(CrashPoint::AfterWrite));
        let waited = tokio::time::timeout(Duration::from_hours(1), last).await;
        assert!(waited.is_err() && switch.is_dead());
    }
}
