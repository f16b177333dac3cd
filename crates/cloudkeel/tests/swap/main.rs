//! The manager in place of a Go CCM: started by that CCM's chart as it is, under that chart's role.
//!
//! What is proven here is the manager's part, so the clouds are stand-ins under the real names: they read
//! the settings of the real ones and serve the simulated cloud.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/account.rs"]
mod account;
mod charts;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../manager/harness.rs"]
mod harness;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/permissions.rs"]
mod permissions;
mod pod;
mod rotation;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/scrape.rs"]
mod scrape;
mod stand_ins;
