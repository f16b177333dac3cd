//! The AWS provider on moto, beyond the conformance kit.

#[path = "../support/mod.rs"]
mod support;
