//! The OpenStack provider on the emulator: what the kit does not know of OpenStack.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "helpers of tests fail as loudly as tests"
)]

mod annotations;
mod budget;
mod calls;
mod lab;
mod left_over;
mod nodes;
mod routes;
mod shared_parts;
mod sharing;
mod status;
mod swap;
