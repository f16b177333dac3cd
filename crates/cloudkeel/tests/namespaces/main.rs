//! `cloudkeel --cloud-provider=local` as people with kind and k3s run it: a real API server, and Nodes in
//! network namespaces of their own that answer on a node port.
//!
//! It needs root and namespaces, so it is a program of its own.
#![expect(
    clippy::expect_used,
    reason = "a test fails by panicking, with a sentence that says what was expected"
)]

#[path = "../local_cloud/home.rs"]
mod home;
mod isolate;
mod node;
mod scenario;

use std::process::ExitCode;

use cloudkeel_testkit::namespaces::ROLE;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match std::env::var(ROLE).as_deref() {
        Ok("inside") => runtime.block_on(scenario::inside()),
        Ok(name) => node::serve(name),
        Err(_) => return runtime.block_on(isolate::run()),
    }
    ExitCode::SUCCESS
}
