//! `cloudkeel demo` as a process, from the outside: its scenario, its end, its page in a browser.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod browser;
mod cluster;
mod e2e;
mod exit;
mod files;
mod http;
mod large;
mod page;
mod process;
mod production;
mod scenario;
mod screenshots;
