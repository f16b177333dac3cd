//! The provider against the emulator of Hetzner's APIs.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail loudly"
)]

mod annotations;
mod balancers;
mod budget;
mod calls;
mod certificates;
mod faults;
mod lab;
mod nodes;
mod refusals;
mod robot;
mod routes;
mod settings;
mod start;
mod swap;
