//! The AWS provider on moto, beyond the conformance kit.

mod calls;
mod lab;
mod permissions;
mod start;
#[path = "../support/mod.rs"]
mod support;
