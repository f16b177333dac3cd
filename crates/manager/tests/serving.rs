//! The secure port over real connections: what a client sees of TLS, and what a real API server says about
//! who may read what.
//!
//! Without the programs of a control plane, or Go to build them, the tests of delegation fail and say so.

#[cfg(test)]
#[path = "serving/caller.rs"]
mod caller;
#[cfg(test)]
#[path = "serving/delegation.rs"]
mod delegation;
#[cfg(test)]
#[path = "serving/server.rs"]
mod server;
#[cfg(test)]
#[path = "serving/transport.rs"]
mod transport;
#[cfg(test)]
#[path = "serving/webhooks.rs"]
mod webhooks;
