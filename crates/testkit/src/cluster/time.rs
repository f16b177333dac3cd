//! The time of day, which only an API object needs.

use jiff::Timestamp;

/// The current time, as heartbeats and leases carry it.
#[expect(
    clippy::disallowed_methods,
    reason = "a real API server compares these times with its own clock"
)]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}
