//! What becomes of the process of a manager: it crashes, at any time or exactly before or after something it does, or it
//! is frozen for a while.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

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
    frozen: Option<Frozen>,
}

/// A process that stands still, or stood still last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frozen {
    until: Instant,
    /// Whether it led when that began.
    pub(crate) led: bool,
    /// Whether it has run since.
    has_woken: bool,
}

/// After a standstill, timers and other background tasks run so much later than the work that waits for nothing.
const BACKGROUND_DELAY: Duration = Duration::from_millis(10);

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
    pub(crate) fn freeze(&self, until: Instant, leads: bool) {
        let mut state = self.state();
        let before = state.frozen.filter(|frozen| !frozen.has_woken);
        state.frozen = Some(Frozen {
            until: before.map_or(until, |before| until.max(before.until)),
            led: leads || before.is_some_and(|before| before.led),
            has_woken: false,
        });
    }

    pub(crate) fn thaw(&self) {
        if let Some(frozen) = &mut self.state().frozen {
            frozen.until = frozen.until.min(Instant::now());
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// When it wakes up, if it is frozen.
    fn wakes_at(&self) -> Option<Instant> {
        let frozen = self.state().frozen?;
        (Instant::now() < frozen.until).then_some(frozen.until)
    }

    /// The standstill that has just ended, once.
    fn wake(&self) -> Option<Frozen> {
        let mut state = self.state();
        let frozen = state.frozen.as_mut()?;
        let wakes = !frozen.has_woken && frozen.until <= Instant::now();
        frozen.has_woken |= wakes;
        wakes.then_some(*frozen)
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

/// Runs the work of a process, but not while it is frozen. Says so when it wakes up, before anything is done.
pub(crate) async fn run_unless_frozen<F: Future>(
    switch: Arc<CrashSwitch>,
    on_wake: impl Fn(Frozen),
    work: F,
) -> F::Output {
    let wakes_at = || switch.wakes_at();
    let says = || {
        if let Some(frozen) = switch.wake() {
            on_wake(frozen);
        }
    };
    run_while_awake(wakes_at, says, work).await
}

/// Runs a task beside that work, such as the timer of its fence. It stands still too, and wakes up after it: whatever
/// the work does before its timers run, it does here.
pub(crate) async fn run_in_background<F: Future>(switch: Arc<CrashSwitch>, task: F) -> F::Output {
    let wakes_at = || {
        let until = switch.state().frozen?.until + BACKGROUND_DELAY;
        (Instant::now() < until).then_some(until)
    };
    run_while_awake(wakes_at, || (), task).await
}

async fn run_while_awake<F: Future>(
    wakes_at: impl Fn() -> Option<Instant>,
    before: impl Fn(),
    work: F,
) -> F::Output {
    let mut work = pin!(work);
    let mut wake_up = None;
    poll_fn(|context| {
        while let Some(until) = wakes_at() {
            let timer = wake_up.insert(Box::pin(sleep_until(until)));
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        before();
        work.as_mut().poll(context)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_frozen_process_does_nothing_until_it_wakes_up() {
        let switch = Arc::<CrashSwitch>::default();
        let started = Instant::now();
        let ends = async || {
            tokio::time::sleep(Duration::from_secs(10)).await;
            started.elapsed()
        };
        let wakes = RefCell::new(Vec::new());
        let says = |frozen: Frozen| wakes.borrow_mut().push((started.elapsed(), frozen.led));
        let standstill = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            switch.freeze(started + Duration::from_mins(3), true);
        };
        let (work, timer, ()) = tokio::join!(
            run_unless_frozen(Arc::clone(&switch), says, ends()),
            run_in_background(Arc::clone(&switch), ends()),
            standstill,
        );
        assert_eq!(work, Duration::from_mins(3));
        assert_eq!(timer, work + BACKGROUND_DELAY, "its timers run after it");
        assert_eq!(*wakes.borrow(), [(work, true)]);
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
