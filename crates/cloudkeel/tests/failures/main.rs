//! Failures, one file for each. cloudkeel must recover by itself, and report what it did.
//!
//! The program runs as a process with a real API server where that takes seconds. Where it takes minutes, or another
//! time of day, whole managers run in this process on a paused clock (`simulated`). `docs/failures.md` describes the
//! same for operators.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod api_server_down;
mod clock_changed;
mod cluster;
mod credential_rejected;
mod disk_full;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../manager/harness.rs"]
mod harness;
mod invalid_annotation;
mod leader_killed;
mod many_nodes;
mod panics;
mod proxy;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/scrape.rs"]
mod scrape;
mod simulated;
mod throttled;
mod watch_broken;
