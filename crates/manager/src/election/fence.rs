//! The permission to write, which expires by itself.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_controllers::planted::Bug;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Whether this process may write; checked before every write.
///
/// It opens at most once, when the lease is acquired, and closes for good one renew deadline after the start of the
/// last successful renewal. Other candidates wait for the longer lease duration, counted from the *effect* of that
/// renewal, so it is closed before any of them may write, whether or not the API server answers, and also when this
/// process was suspended: [`Fence::is_open`] reads the clock, not only a timer.
///
/// A write that started while the fence was open must end within the difference of lease duration and renew
/// deadline. Give it the deadline [`Fence::remaining`] and stop it by [`Fence::token`].
#[derive(Debug, Clone)]
pub struct Fence(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    closed: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
enum State {
    NotYet,
    Open { epoch: u32, until: Option<Instant> },
    Closed { epoch: Option<u32> },
}

impl State {
    fn is_open(self, now: Instant) -> bool {
        match self {
            Self::Open { until, .. } => until.is_none_or(|until| now < until),
            Self::NotYet | Self::Closed { .. } => false,
        }
    }
}

impl Fence {
    pub(super) fn not_yet() -> Self {
        Self::with(State::NotYet)
    }

    /// The fence of a process without leader election.
    pub fn always_open() -> Self {
        Self::with(State::Open {
            epoch: 0,
            until: None,
        })
    }

    fn with(state: State) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            closed: CancellationToken::new(),
        }))
    }

    /// Whether this process may write now.
    pub fn is_open(&self) -> bool {
        self.remaining().is_some()
    }

    /// How long this process may write without another renewal; `None` if it may not.
    pub fn remaining(&self) -> Option<Duration> {
        if Bug::FenceByTimerAlone.is_planted() {
            let is_open = matches!(*self.state(), State::Open { .. });
            return is_open.then_some(Duration::MAX);
        }
        self.remaining_by_clock()
    }

    fn remaining_by_clock(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut state = self.state();
        match *state {
            State::Open { until: None, .. } => Some(Duration::MAX),
            State::Open {
                until: Some(until), ..
            } if now < until => Some(until - now),
            State::Open { .. } => {
                self.shut(&mut state);
                None
            }
            State::NotYet | State::Closed { .. } => None,
        }
    }

    /// A token that is cancelled when the fence closes. Cancelling it does not close the fence.
    pub fn token(&self) -> CancellationToken {
        self.0.closed.child_token()
    }

    /// Completes when the fence has closed. Whenever it is polled it checks the clock too: a process that stood still
    /// runs on before its timers do.
    pub async fn closed(&self) {
        let mut closed = pin!(self.0.closed.cancelled());
        poll_fn(|context| {
            self.remaining();
            closed.as_mut().poll(context)
        })
        .await;
    }

    /// The number of this leadership: how often the holder of the lease had changed when it was acquired. A later
    /// leader has a higher one, unless the lease was deleted. `None` if it was never acquired.
    pub fn epoch(&self) -> Option<u32> {
        match *self.state() {
            State::Open { epoch, .. } => Some(epoch),
            State::Closed { epoch } => epoch,
            State::NotYet => None,
        }
    }

    /// Opens, unless it has been open before or the time is over already.
    pub(super) fn open(&self, epoch: u32, until: Instant) -> bool {
        let mut state = self.state();
        let may = matches!(*state, State::NotYet) && Instant::now() < until;
        if may {
            *state = State::Open {
                epoch,
                until: Some(until),
            };
        }
        may
    }

    /// Stays open for longer, unless it has closed meanwhile: a late response changes nothing.
    pub(super) fn extend(&self, until: Instant) -> bool {
        let mut state = self.state();
        if !state.is_open(Instant::now()) {
            self.shut(&mut state);
            return false;
        }
        if let State::Open {
            until: Some(end), ..
        } = &mut *state
        {
            *end = until.max(*end);
        }
        true
    }

    pub(crate) fn close(&self) {
        self.shut(&mut self.state());
    }

    fn shut(&self, state: &mut State) {
        let epoch = match *state {
            State::Open { epoch, .. } => Some(epoch),
            State::Closed { epoch } => epoch,
            State::NotYet => None,
        };
        *state = State::Closed { epoch };
        self.0.closed.cancel();
    }

    /// Closes the fence when its time is over.
    ///
    /// It is a task of its own, so that nothing that waits for the API server can delay it.
    pub(super) async fn keep_time(self) {
        while let Some(left) = self.remaining_by_clock() {
            tokio::select! {
                biased;
                () = self.closed() => return,
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_closed_until_the_lease_is_ours() {
        let fence = Fence::not_yet();
        assert!(!fence.is_open());
        assert!(!fence.token().is_cancelled(), "it may still open");
        assert_eq!(fence.epoch(), None);
        assert!(fence.open(3, after(10)));
        assert!(fence.is_open());
        assert_eq!(fence.epoch(), Some(3));
        assert_eq!(fence.remaining(), Some(Duration::from_secs(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_dropped_at_its_next_poll_after_a_standstill_although_no_timer_ran() {
        let fence = Fence::not_yet();
        assert!(fence.open(0, after(10)));
        let polls = std::cell::Cell::new(0);
        let mut work = pin!(async {
            tokio::select! {
                biased;
                () = fence.closed() => {}
                () = poll_fn(|_| { polls.set(polls.get() + 1); std::task::Poll::Pending }) => {}
            }
        });
        assert!(futures::poll!(work.as_mut()).is_pending());
        pass(60).await;
        assert!(futures::poll!(work.as_mut()).is_ready());
        assert_eq!(polls.get(), 1, "it does nothing after it wakes up");
    }

    #[tokio::test(start_paused = true)]
    async fn it_closes_by_the_clock_although_no_timer_ran() {
        let fence = Fence::not_yet();
        assert!(fence.open(0, after(10)));
        let token = fence.token();
        pass(9).await;
        assert!(fence.is_open());
        pass(1).await;
        assert!(!fence.is_open());
        assert!(token.is_cancelled(), "a check closes it for all clones");
        assert_eq!(fence.epoch(), Some(0), "it is still known which it was");
    }

    #[tokio::test(start_paused = true)]
    async fn it_closes_by_the_timer_although_it_was_not_checked() {
        let fence = Fence::not_yet();
        assert!(fence.open(0, after(10)));
        let timer = tokio::spawn(fence.clone().keep_time());
        pass(5).await;
        assert!(fence.extend(after(10)));
        let start = Instant::now();
        fence.closed().await;
        assert_eq!(start.elapsed().as_secs(), 10, "the extension counted");
        timer.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_comes_too_late_does_not_reopen_it() {
        let fence = Fence::not_yet();
        assert!(fence.open(0, after(10)));
        pass(10).await;
        assert!(!fence.extend(after(10)));
        assert!(!fence.is_open());
        assert!(!fence.open(1, after(10)), "and neither does another lease");
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_open_for_a_time_that_is_over() {
        let fence = Fence::not_yet();
        assert!(!fence.open(0, Instant::now()));
        assert!(!fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn an_extension_never_shortens_it() {
        let fence = Fence::not_yet();
        assert!(fence.open(0, after(10)));
        assert!(fence.extend(after(5)));
        assert_eq!(fence.remaining(), Some(Duration::from_secs(10)));
    }

    #[tokio::test(start_paused = true)]
    async fn all_clones_close_together_but_no_token_closes_the_others() {
        let fence = Fence::not_yet();
        assert!(fence.open(0, after(10)));
        let clone = fence.clone();
        clone.token().cancel();
        assert!(fence.is_open());
        let token = clone.token();
        fence.close();
        assert!(!clone.is_open());
        assert!(token.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn without_election_it_is_always_open() {
        let fence = Fence::always_open();
        pass(1_000_000).await;
        assert!(fence.is_open());
        assert_eq!(fence.epoch(), Some(0));
    }
}
