//! The API as a client in process: deterministic, with faults, and with a journal.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails loudly"
)]

mod faults;
mod hand;
mod journal;
mod objects;
mod refusals;
mod watching;
