//! The conformance kit itself: providers that do one thing wrong, each of which must fail the check that
//! is about that thing.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail loudly"
)]

mod declared;
mod net;
mod sin;
mod wrong;
mod wrong_balancers;
mod wrong_instances;
mod wrong_routes;
