//! The API as a client in process: deterministic, with faults, and with a journal.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails loudly"
)]

mod direct_client;
mod faults;
mod journal;
mod objects;
mod refusals;
mod watching;
