//! The vSphere provider on simulated vCenters: what the kit does not ask.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as loudly as tests"
)]

mod faults;
mod lab;
mod nodes;
mod scale;
mod sessions;
mod tls;
mod zones;
