//! The fixture and its helpers against a real etcd and kube-apiserver.
//!
//! Without the programs, or Go to build them, every one of these tests fails and says so.

#[cfg(test)]
#[path = "control_plane/access.rs"]
mod access;
#[cfg(test)]
#[path = "control_plane/objects.rs"]
mod objects;
#[cfg(test)]
#[path = "control_plane/teardown.rs"]
mod teardown;
#[cfg(test)]
#[path = "control_plane/tenants.rs"]
mod tenants;
#[cfg(test)]
#[path = "control_plane/waiting.rs"]
mod waiting;
