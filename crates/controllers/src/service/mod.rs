//! The service controller: load balancers of Services.
//!
//! ```text
//! service event ─▶ queue ─▶ wanted?  ─ yes ─▶ finalizer ─▶ targets now ─▶ spec ─▶ cloud ─▶ status
//!                                    └ no ──▶ cloud: nothing left ─▶ finalizer and status off
//! node events ──▶ a second of quiet ─▶ whose targets differ? ─▶ queue
//! start, sweep ─▶ one look at all balancers ─▶ which are not in order? ─▶ queue
//! ```

pub mod change;
pub mod claim;
pub mod conditions;
pub mod finalizer;
pub mod health;
pub mod messages;
pub mod spec;
pub mod status;
pub mod targets;
pub mod wants;

mod absence;
mod aim;
mod choices;
mod controller;
mod ensure;
#[cfg(test)]
mod fixtures;
mod follow;
mod following;
mod hold;
mod left_over;
mod look;
mod marks;
mod observer;
mod records;
mod remove;
mod tell;
mod turns;

pub use claim::ingress_of;
pub use controller::{
    Drift, EVENT_SOURCE, QUEUE_NAME, ServiceController, ServiceParts, ServiceSettings,
};
pub use observer::ServiceObserver;
