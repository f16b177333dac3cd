//! The OpenStack provider on the emulator: what the kit does not know of OpenStack.

mod annotations;
mod calls;
mod lab;
mod nodes;
mod routes;
mod sharing;
mod status;
mod swap;
