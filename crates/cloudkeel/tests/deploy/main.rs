//! What is shipped: manifests, roles and image, on a real API server, with the binary as a process.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

mod account;
mod chart;
mod commands;
mod contention;
mod credentials;
mod doctor_permissions;
mod go_roles;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../manager/harness.rs"]
mod harness;
mod helm;
mod image;
mod ipam;
mod kubectl;
mod manifests;
mod missing;
mod monitoring;
mod nodes;
mod own_roles;
mod permissions;
mod printed;
mod route;
mod scrape;
mod services;
mod trial;
mod workload;
