//! The API as a client in process: deterministic, with somebody on the way, and with a journal.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails loudly"
)]

mod hand;
mod journal;
mod objects;
mod refusals;
mod trouble;
mod watching;
