//! Several clouds in one cluster, on a real API server: what each of them does while another one fails, volumes of all of
//! them, and leases while controllers move between two components.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/account.rs"]
mod account;
mod addresses;
mod failing;
mod gate;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../manager/harness.rs"]
mod harness;
mod migration;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../swap/moto.rs"]
mod moto;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/permissions.rs"]
mod permissions;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/scrape.rs"]
mod scrape;
mod several;
mod volumes;
