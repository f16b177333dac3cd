//! The AWS provider on moto, beyond the conformance kit.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail loudly"
)]

mod addresses;
mod calls;
mod chain;
mod lab;
mod left_over;
mod nodes;
mod permissions;
mod start;
#[path = "../support/mod.rs"]
mod support;
