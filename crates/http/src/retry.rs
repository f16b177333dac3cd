//! Whether and when a failed request is retried.

use std::time::Duration;

use cloudkeel_api::ErrorKind;

use crate::backoff::{Backoff, Jitter};
use crate::error::RetryHint;

/// The retry limits of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts.
    pub attempts: u32,
    /// The backoff where the cloud does not give a wait.
    pub backoff: Backoff,
    /// Limits the whole call.
    pub total: Duration,
    /// Limits each attempt.
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
    pub(crate) fn pause(&self, failed: &Failed, jitter: &Jitter) -> Option<Duration> {
        if failed.attempts >= self.attempts || !failed.may_be_repeated() {
            return None;
        }
        if matches!(failed.kind, ErrorKind::Throttled { .. }) {
            // The limiter blocks all callers; the next attempt waits there with the others.
            return Some(Duration::ZERO);
        }
        let pause = failed
            .retry_after
            .unwrap_or_else(|| self.backoff.pause(failed.attempts, jitter));
        (pause < failed.time_left).then_some(pause)
    }
}

/// What the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failed {
    pub(crate) kind: ErrorKind,
    pub(crate) retry_hint: RetryHint,
    /// The connection was never made, so the cloud cannot have seen the request.
    pub(crate) unsent: bool,
    pub(crate) idempotent: bool,
    pub(crate) attempts: u32,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) time_left: Duration,
}

impl Failed {
    fn may_be_repeated(&self) -> bool {
        match self.retry_hint {
            RetryHint::Safe => true,
            RetryHint::Never => false,
            RetryHint::ByKind => match self.kind {
                ErrorKind::Throttled { .. } => true,
                // Its outcome is unknown.
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
        retry_hint: RetryHint::ByKind,
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
        for (case, failed, retry_hint) in [
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
                    retry_hint: RetryHint::Never,
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
                    retry_hint: RetryHint::Safe,
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
            let pause = RetryPolicy::default().pause(&failed, &Jitter::seeded(1));
            assert_eq!(pause.is_some(), retry_hint, "{case}");
        }
    }

    #[test]
    fn the_clouds_own_pause_wins() {
        let failed = Failed {
            retry_after: Some(Duration::from_secs(33)),
            ..FAILED
        };
        let pause = RetryPolicy::default().pause(&failed, &Jitter::seeded(1));
        assert_eq!(pause, Some(Duration::from_secs(33)));
    }
}
