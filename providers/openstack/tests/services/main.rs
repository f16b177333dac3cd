//! The same scenarios on the emulator and on OpenStack's own services, so that the emulator is held to the truth.
//!
//! The services are reached through the interposer, which counts calls and plays faults. The conformance kit runs on them,
//! too, in a tier of its own: Octavia takes seconds for each load balancer.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "helpers of tests fail as loudly as tests"
)]

mod kit;
mod project;
mod scenarios;
mod site;
#[path = "../conformance/state.rs"]
mod state;

use cloudkeel_testkit::conformance::verify;
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
async fn fifty_members_on_the_emulator() {
    scenarios::fifty_members(&Site::emulated().await).await;
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
    scenarios::fifty_members(&site).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "needs OpenStack, for many minutes: cargo xtask test --tier openstack-kit"]
async fn the_provider_conforms_on_the_services_and_the_page_says_so() {
    let report = kit::report().await;
    verify(&report, env!("CARGO_MANIFEST_DIR")).unwrap_or_else(|why| panic!("{why}"));
}
