//! `cloudkeel local-cloud` as a process, by itself and behind a manager.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod background;
mod command;
mod home;
