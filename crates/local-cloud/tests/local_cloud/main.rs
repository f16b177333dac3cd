//! The local cloud with real sockets: balancers on addresses of loopback, targets behind them.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking, with a sentence that says what was expected"
)]

mod api;
mod draining;
mod health;
mod lab;
mod nodes;
mod reconfiguration;
mod restart;
mod service;
mod spreading;
mod tcp;
mod udp;
