//! A cluster on the embedded API, for every test of a controller that turns the hands of the clock.
#![allow(
    dead_code,
    reason = "every binary of tests is compiled with all of it and uses a part"
)]

mod clock;
pub(crate) mod cluster;
pub(crate) mod gate;
pub(crate) mod world;
