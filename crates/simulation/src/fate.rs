//! Where a manager dies: at any moment, or exactly before or after something it does.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a manager is doing when it dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A write to the API is about to happen.
    BeforeWrite,
    /// A write to the API happened, and the answer is not read yet.
    AfterWrite,
    /// A change in the cloud is about to happen.
    BeforeChange,
    /// A change in the cloud happened, and the answer is not read yet.
    AfterChange,
}

impl Moment {
    pub(crate) const ALL: [Self; 4] = [
        Self::BeforeWrite,
        Self::AfterWrite,
        Self::BeforeChange,
        Self::AfterChange,
    ];
}

/// The life of one manager, shared by its ways to the API and to the cloud.
#[derive(Debug, Default)]
pub(crate) struct Fate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    dead: bool,
    trap: Option<(Moment, u32)>,
}

impl Fate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It dies now: whatever is still under way never ends.
    pub(crate) fn kill(&self) {
        self.state().dead = true;
    }

    /// It dies when it does this for the `nth` time from now.
    pub(crate) fn trap(&self, moment: Moment, nth: u32) {
        self.state().trap = Some((moment, nth));
    }

    pub(crate) fn spring_no_trap(&self) {
        self.state().trap = None;
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// Never returns for a dead manager, nor for one that dies at this moment.
    pub(crate) async fn reach(&self, moment: Option<Moment>) {
        if self.dies_at(moment) {
            std::future::pending::<()>().await;
        }
    }

    fn dies_at(&self, moment: Option<Moment>) -> bool {
        let mut state = self.state();
        if let (Some(moment), Some((at, nth))) = (moment, state.trap)
            && moment == at
        {
            state.trap = Some((at, nth.saturating_sub(1)));
            state.dead |= nth <= 1;
        }
        state.dead
    }
}
