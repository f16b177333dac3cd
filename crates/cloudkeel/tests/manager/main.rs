//! The binary as a process with the simulated cloud: what controllers do, on the real API server and on the embedded
//! one; everything else on the real one.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod cli;
#[cfg(feature = "emulators")]
mod emulate;
mod failover;
#[allow(dead_code, reason = "each test binary uses its own part")]
mod harness;
#[cfg(all(feature = "emulators", feature = "hetzner"))]
mod hetzner;
mod new_nodes;
mod nodes;
mod on_request;
mod page;
mod plan;
mod plan_fixture;
mod plan_orphans;
mod proxies;
mod routes;
mod secrets;
mod service_fixture;
mod services;
mod serving;
mod startup;
