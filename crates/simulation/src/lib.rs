//! Two managers, a cluster and a cloud in one thread, on a clock that only moves when nobody has
//! anything to do, with everything that goes wrong drawn from one seed.
//!
//! A run is a [`Plan`] of things that happen, played by [`play`]. A witness sees every write and every
//! call and knows the truth; what must never be is a [`Violation`]. A run that went wrong goes wrong
//! again with the same seed, and [`shortest`] finds the least that has to happen for it.

#![expect(
    clippy::indexing_slicing,
    reason = "objects are read as JSON, where a key that is not there is null and not a panic"
)]

mod accounts;
mod action;
mod api_way;
mod clock;
mod cloud_way;
mod cluster;
mod draw;
mod fate;
mod furnish;
mod managers;
mod nature;
mod plan;
mod run;
mod settled;
mod shrink;
mod theme;
mod witness;

pub use cloudkeel_controllers::planted::Bug;
pub use plan::Plan;
pub use run::{Verdict, play, play_with};
pub use shrink::shortest;
pub use witness::Violation;
