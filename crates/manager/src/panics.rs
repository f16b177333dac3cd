//! All panics of this process, wherever they are caught: each is a bug.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cloudkeel_api::{Clock as _, SystemClock};
use jiff::Timestamp;
use serde::Serialize;

/// The panics since the process started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PanicReport {
    /// How many.
    pub(crate) total: u64,
    /// When the last one was.
    pub(crate) at: Timestamp,
    /// What it said, and where in the program.
    pub(crate) message: String,
}

/// The hook for panics belongs to the process, and so does what it has seen.
static SEEN: Mutex<Option<PanicReport>> = Mutex::new(None);

/// Counts a panic.
pub(crate) fn note(message: String) {
    let at = SystemClock.now();
    let mut seen = seen();
    let total = seen.as_ref().map_or(0, |before| before.total);
    *seen = Some(PanicReport {
        total: total.saturating_add(1),
        at,
        message,
    });
}

/// The panics so far; `None` if there were none.
pub(crate) fn report() -> Option<PanicReport> {
    seen().clone()
}

fn seen() -> MutexGuard<'static, Option<PanicReport>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}
