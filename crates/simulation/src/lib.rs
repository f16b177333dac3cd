//! Two managers, a cluster and its clouds in one thread, on a clock that only moves when there is nothing to do, with
//! everything that goes wrong chosen by one seed.
//!
//! A run is a [`Plan`] of things that happen, played by [`play`]. A checker sees every write and every call and knows
//! the true state; what breaks an [`Invariant`] is a [`Violation`]. A run that went wrong goes wrong
//! again with the same seed, and [`shortest`] finds the least that has to happen for it.

#![expect(
    clippy::indexing_slicing,
    reason = "objects are read as JSON, where a key that is not there is null and not a panic"
)]

mod accounts;
mod action;
mod api_faults;
mod bugs;
mod clock;
mod cloud_transport;
mod cluster;
mod convergence;
mod crash;
mod environment;
mod fault_class;
mod fixtures;
mod invariants;
mod managers;
mod plan;
mod rng;
mod run;
mod scenarios;
mod shrink;
mod topology;

pub use bugs::{broken_by, can_show, is_found};
pub use cloudkeel_controllers::planted::Bug;
pub use fault_class::{FaultClass, FaultCounts};
pub use invariants::{Invariant, Violation};
pub use plan::Plan;
pub use run::{Outcome, play, play_with};
pub use shrink::shortest;
