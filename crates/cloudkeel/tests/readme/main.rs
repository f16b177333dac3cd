//! Every command of the README is run by a test: most of them here, as a shell runs them.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod commands;
mod installing;
mod list;
mod managers;
mod pages;
mod programs;
mod shell;
