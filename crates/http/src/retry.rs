//! Whether and when a failed request is sent again.

use std::time::Duration;

use cloudkeel_api::ErrorKind;

use crate::backoff::{Backoff, Dice};
use crate::error::Again;

/// How stubborn a client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is sent at most.
    pub attempts: u32,
    /// The pauses between attempts where the cloud does not name one.
    pub backoff: Backoff,
    /// Bounds the whole call.
    pub total: Duration,
    /// Bounds each attempt.
    pub attempt: Duration,
    /// How long a call may wait for the request budget.
    pub budget_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            backoff: Backoff {
                first: Duration::from_millis(500),
                longest: Duration::from_secs(20),
            },
            total: Duration::from_mins(1),
            attempt: Duration::from_secs(15),
            budget_wait: Duration::from_secs(15),
        }
    }
}

impl RetryPolicy {
    /// Sends every request once.
    pub fn never() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }

    /// How long to pause before the next attempt; `None` if there should be none.
    pub(crate) fn pause(&self, failed: &Failed, dice: &Dice) -> Option<Duration> {
        if failed.attempts >= self.attempts || !failed.may_be_repeated() {
            return None;
        }
        if matches!(failed.kind, ErrorKind::Throttled { .. }) {
            // The limiter's gate is closed; the next attempt waits there with everybody else.
            return Some(Duration::ZERO);
        }
        let pause = failed
            .retry_after
            .unwrap_or_else(|| self.backoff.pause(failed.attempts, dice));
        (pause < failed.time_left).then_some(pause)
    }
}

/// What the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failed {
    pub(crate) kind: ErrorKind,
    pub(crate) again: Again,
    /// The connection was never made, so the cloud cannot have seen the request.
    pub(crate) unsent: bool,
    pub(crate) idempotent: bool,
    pub(crate) attempts: u32,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) time_left: Duration,
}

impl Failed {
    fn may_be_repeated(&self) -> bool {
        match self.again {
            Again::Safe => true,
            Again::Never => false,
            Again::ByKind => match self.kind {
                ErrorKind::Throttled { .. } => true,
                // Nobody knows what became of it.
                ErrorKind::Unavailable | ErrorKind::Timeout => self.unsent || self.idempotent,
                _ => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Failed = Failed {
        kind: ErrorKind::Unavailable,
        again: Again::ByKind,
        unsent: false,
        idempotent: true,
        attempts: 1,
        retry_after: None,
        time_left: Duration::from_mins(1),
    };
    const THROTTLED: ErrorKind = ErrorKind::Throttled { retry_after: None };

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn only_what_is_safe_is_sent_again() {
        let post = Failed {
            idempotent: false,
            ..FAILED
        };
        for (case, failed, again) in [
            ("5xx, idempotent", FAILED, true),
            ("5xx, not idempotent", post, false),
            (
                "timeout, idempotent",
                Failed {
                    kind: ErrorKind::Timeout,
                    ..FAILED
                },
                true,
            ),
            (
                "timeout, not idempotent",
                Failed {
                    kind: ErrorKind::Timeout,
                    ..post
                },
                false,
            ),
            (
                "never sent, not idempotent",
                Failed {
                    unsent: true,
                    ..post
                },
                true,
            ),
            (
                "429, not idempotent",
                Failed {
                    kind: THROTTLED,
                    ..post
                },
                true,
            ),
            (
                "429, but the table says no",
                Failed {
                    kind: THROTTLED,
                    again: Again::Never,
                    ..FAILED
                },
                false,
            ),
            (
                "conflict",
                Failed {
                    kind: ErrorKind::Conflict,
                    ..FAILED
                },
                false,
            ),
            (
                "conflict, and the table says so",
                Failed {
                    kind: ErrorKind::Conflict,
                    again: Again::Safe,
                    ..post
                },
                true,
            ),
            (
                "busy",
                Failed {
                    kind: ErrorKind::Busy,
                    ..FAILED
                },
                false,
            ),
            (
                "not found",
                Failed {
                    kind: ErrorKind::NotFound,
                    ..FAILED
                },
                false,
            ),
            (
                "unauthenticated",
                Failed {
                    kind: ErrorKind::Unauthenticated,
                    ..FAILED
                },
                false,
            ),
            (
                "malformed",
                Failed {
                    kind: ErrorKind::Malformed,
                    ..FAILED
                },
                false,
            ),
            (
                "an untrusted certificate",
                Failed {
                    kind: ErrorKind::Invalid,
                    unsent: true,
                    ..FAILED
                },
                false,
            ),
            (
                "last attempt",
                Failed {
                    attempts: 4,
                    ..FAILED
                },
                false,
            ),
            (
                "no time left",
                Failed {
                    retry_after: Some(Duration::from_secs(61)),
                    ..FAILED
                },
                false,
            ),
        ] {
            let pause = RetryPolicy::default().pause(&failed, &Dice::seeded(1));
            assert_eq!(pause.is_some(), again, "{case}");
        }
    }

    #[test]
    fn the_clouds_own_pause_wins() {
        let failed = Failed {
            retry_after: Some(Duration::from_secs(33)),
            ..FAILED
        };
        let pause = RetryPolicy::default().pause(&failed, &Dice::seeded(1));
        assert_eq!(pause, Some(Duration::from_secs(33)));
    }
}
