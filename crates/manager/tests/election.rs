//! Elections: among ourselves on the real API server and on the embedded one, and with Go's client library on the
//! real one.
//!
//! Without the programs, or Go to build them, every one of these tests fails and says so.

#[cfg(test)]
#[path = "election/candidate.rs"]
mod candidate;
#[cfg(test)]
#[path = "election/fail_over.rs"]
mod fail_over;
#[cfg(test)]
#[path = "election/go.rs"]
mod go;
#[cfg(test)]
#[path = "election/measure.rs"]
mod measure;
#[cfg(test)]
#[path = "election/permissions.rs"]
mod permissions;
#[cfg(test)]
#[path = "election/store.rs"]
mod store;
#[cfg(test)]
#[path = "election/with_go.rs"]
mod with_go;
