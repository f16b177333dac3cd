//! Load balancers of Services.

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

#[cfg(test)]
mod fixtures;
