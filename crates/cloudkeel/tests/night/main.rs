//! What goes wrong at night: one file for each trouble. It must end well by itself, and say what it did.
//!
//! The program as a process with a real API server wherever that takes seconds; where it takes minutes, or
//! another time of day, whole managers in this process on a clock that only moves when nobody has anything
//! to do (`inside`). `docs/at-3-am.md` tells the same for people.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod api_away;
mod bad_annotation;
mod clock_jumped;
mod disk_full;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../manager/harness.rs"]
mod harness;
mod inside;
mod leader_killed;
mod many_nodes;
mod people;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/scrape.rs"]
mod scrape;
mod throttled;
mod token_rotated;
mod watch_broken;
mod wire;
