//! An API server in memory, for every test of a controller that turns the hands of the clock.
#![allow(
    dead_code,
    reason = "every binary of tests is compiled with all of it and uses a part"
)]

pub(crate) mod api;
mod http;
pub(crate) mod objects;
