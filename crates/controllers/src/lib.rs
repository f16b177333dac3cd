//! The controllers that make a cluster and its clouds agree.

mod name;
pub mod runtime;
mod selection;

pub use name::ControllerName;
pub use selection::{ControllerSelection, SelectionError};
