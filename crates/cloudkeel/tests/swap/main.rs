//! The manager in place of a Go CCM: started by that CCM's chart as it is, under that chart's role.
//!
//! Where the manager's part is proven, the clouds are stand-ins under the real names: they read the
//! settings of the real ones and serve the simulated cloud. The modules of one cloud are the program itself, with a
//! cloud that the Go CCM has worked on.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail as loudly as tests"
)]

#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/account.rs"]
mod account;
mod aws;
mod aws_cluster;
mod aws_services;
mod charts;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../failures/cluster.rs"]
mod cluster;
mod digitalocean;
mod digitalocean_webhook;
mod go_aws;
mod go_hetzner;
mod go_services;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../manager/harness.rs"]
mod harness;
mod hetzner;
mod moto;
mod openstack;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/permissions.rs"]
mod permissions;
mod pod;
mod rotation;
#[allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../deploy/scrape.rs"]
mod scrape;
mod stand_ins;
mod vsphere;
mod vsphere_beside;
mod vsphere_faults;
