//! Nodes in protobuf, with a real API server.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod fixtures;
mod reading;
mod wire;
mod writing;
