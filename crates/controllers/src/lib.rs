//! The controllers that make a cluster and its clouds agree.

pub mod clouds;
mod controller;
pub mod ipam;
pub mod lifecycle;
mod name;
pub mod node;
pub mod report;
pub mod runtime;
mod selection;
pub mod view;
pub mod wellknown;

pub use controller::Controller;
pub use name::ControllerName;
pub use selection::{ControllerSelection, SelectionError, is_selected};
