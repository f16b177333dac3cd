//! The permission to write, which ends by itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Whether we may write, to be asked before every write.
///
/// It opens at most once, when the lease is ours, and closes for good a renew deadline after the start of the
/// last successful renewal. Others wait for the longer lease duration, counted from the *effect* of that
/// renewal, so it is closed before anybody else may write, whether or not the API server answers, and also
/// when this process stood still: [`Fence::is_open`] looks at the clock, not only at a timer.
///
/// A write that began while the fence was open must end within the time that lease duration and renew
/// deadline leave between them. Give it the deadline [`Fence::remaining`] and stop it by [`Fence::token`].
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

    /// The fence of a process that runs without election.
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

    /// Whether we may write now.
    pub fn is_open(&self) -> bool {
        self.remaining().is_some()
    }

    /// For how long we may write if nothing is renewed any more; `None` if we may not.
    pub fn remaining(&self) -> Option<Duration> {
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

    /// A token that is cancelled when the fence closes. Cancelling it oneself closes nothing.
    pub fn token(&self) -> CancellationToken {
        self.0.closed.child_token()
    }

    /// Completes when the fence has closed.
    pub async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    /// Which leadership this is: how often the holder of the lease had changed when it became ours. A later
    /// leader has a higher one, unless somebody deleted the lease. `None` if it was never ours.
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

    /// Stays open for longer, unless it has closed meanwhile: an answer that comes too late changes nothing.
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
    /// It runs as a task of its own, so that nothing that waits for the API server can hold it up.
    pub(super) async fn keep_time(self) {
        while let Some(left) = self.remaining() {
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
    async fn it_closes_by_the_clock_although_no_timer_ran() {
        let fence = Fence::not_yet();
        assert!(fence.open(0, after(10)));
        let token = fence.token();
        pass(9).await;
        assert!(fence.is_open());
        pass(1).await;
        assert!(!fence.is_open());
        assert!(token.is_cancelled(), "whoever asked has closed it for all");
        assert_eq!(fence.epoch(), Some(0), "it is still known which it was");
    }

    #[tokio::test(start_paused = true)]
    async fn it_closes_by_the_timer_although_nobody_asked() {
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
