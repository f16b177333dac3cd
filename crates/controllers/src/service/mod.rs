//! The service controller: load balancers of Services.
//!
//! ```text
//! service event ─▶ queue ─▶ wanted?  ─ yes ─▶ finalizer ─▶ targets now ─▶ spec ─▶ cloud ─▶ status
//!                                    └ no ──▶ cloud: nothing left ─▶ finalizer and status off
//! node events ──▶ a second of quiet ─▶ whose targets differ? ─▶ queue
//! start, timer ─▶ one check of all balancers ─▶ which are not in order? ─▶ queue
//! ```

pub mod conditions;
pub mod owner;
pub mod spec;
pub mod status;
pub mod targets;

mod absence;
mod change_limit;
mod controller;
mod delete;
mod drift;
mod ensure;
mod events;
mod failure;
mod finalizer;
#[cfg(test)]
mod fixtures;
mod keyed_locks;
mod orphans;
mod others;
mod pause;
mod record;

pub use controller::{
    EVENT_SOURCE, QUEUE_NAME, ServiceController, ServiceObserver, ServiceParts, ServiceSettings,
};
pub use spec::ingress_of;
