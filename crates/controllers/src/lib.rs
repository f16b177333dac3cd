//! The controllers that make a cluster and its clouds agree.

pub mod clouds;
mod controller;
pub mod ipam;
pub mod lifecycle;
mod log_messages;
mod name;
pub mod node;
mod paused;
pub mod planted;
pub mod report;
pub mod route;
pub mod runtime;
mod selection;
pub mod service;
pub mod view;
pub mod wellknown;

pub use controller::{Controller, ControllerParts};
pub use log_messages::MESSAGES as LOG_MESSAGES;
pub use name::ControllerName;
pub use selection::{ControllerSelection, SelectionError, check_webhooks, is_selected};
