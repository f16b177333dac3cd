//! What is wrong with a cluster and its clouds, and why.
//!
//! [`Snapshot`] holds what was read of the cluster and of its clouds at one time. [`diagnose`] turns it into findings,
//! [`explain_node`] and [`explain_service`] into the story of one object. All of it is pure: reading is the work of
//! `crates/manager/src/diagnose`, and whatever controllers decide is decided here by the same functions.
//!
//! ```text
//! API server, clouds ─▶ collector ─▶ Snapshot ─▶ findings, stories ─▶ table, JSON
//! ```

mod catalogue;
mod check;
mod explain;
mod finding;
mod permission;
mod snapshot;
mod text;

#[cfg(test)]
mod fixtures;

pub use catalogue::RULES;
pub use check::{Diagnosis, diagnose};
pub use explain::{Condition, Explanation, Met, NextStep, Section, explain_node, explain_service};
pub use finding::{Area, Finding, Rule, Severity};
pub use permission::{PERMISSIONS, Permission};
pub use snapshot::{
    Access, AccessCheck, CloudState, Endpoints, EventState, InstanceMatch, InstancesState,
    LeaseState, LookUp, ManagerPod, NodeOwner, NodeState, Read, ServiceState, Settings, Snapshot,
    Trouble, Unread,
};
pub use text::{age, duration};
