//! The binary as a process, on a real API server, with the simulated cloud.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod cli;
#[cfg(feature = "emulators")]
mod emulate;
mod failover;
mod harness;
#[cfg(all(feature = "emulators", feature = "hetzner"))]
mod hetzner;
mod nodes;
mod routes;
mod secrets;
mod service_desk;
mod services;
mod serving;
