//! The same scenarios on the emulator and on OpenStack's own services, so that the emulator is held to the truth.
//!
//! The services are reached through the interposer, which counts calls and plays faults.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "helpers of tests fail as loudly as tests"
)]

mod scenarios;
mod site;

use site::Site;

#[tokio::test]
async fn nodes_on_the_emulator() {
    scenarios::nodes(&Site::emulated().await).await;
}

#[tokio::test]
async fn load_balancers_on_the_emulator() {
    scenarios::load_balancers(&Site::emulated().await).await;
}

#[tokio::test]
async fn routes_on_the_emulator() {
    scenarios::routes(&Site::emulated().await).await;
}

#[tokio::test]
async fn a_swap_on_the_emulator() {
    scenarios::swap(&Site::emulated().await).await;
}

#[tokio::test]
#[ignore = "needs OpenStack: cargo xtask test --tier openstack"]
async fn everything_on_the_services() {
    // One after the other: they share a project.
    let site = Site::served().await;
    scenarios::nodes(&site).await;
    scenarios::routes(&site).await;
    scenarios::load_balancers(&site).await;
    scenarios::swap(&site).await;
}
