//! The node controller: initialises Nodes, and keeps their addresses and labels current.

pub mod addresses;
pub mod labels;
pub mod plan;
