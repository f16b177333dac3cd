//! `doctor` and `explain` on a real API server with emulated clouds: what they report of each broken situation, and of
//! a healthy cluster.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod explain;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../manager/harness.rs"]
mod harness;
mod lab;
mod process;
mod situations;
mod size;
mod world;
