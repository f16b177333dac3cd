//! The smallest cloud there can be, with everything that comes with being emulated.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail as loudly as tests"
)]

mod api_styles;
mod cloud;
mod control;
mod gateway;
mod interposer;
mod proxy;
mod real_time;
mod resources;
