//! Leader election: which replica may write.
//!
//! Candidates contend for one `coordination.k8s.io/v1` Lease by the protocol of Go's client library, so Go and
//! Rust candidates may contend for the same lease, during a swap for example.
//!
//! ```no_run
//! # async fn example(client: kube::Client, stopped_writing: tokio_util::sync::CancellationToken)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use cloudkeel_api::SystemClock;
//! use cloudkeel_manager::election::{ElectionConfig, Elector, unique_identity};
//!
//! let config = ElectionConfig::new("kube-system", "cloud-controller-manager", unique_identity());
//! let elector = Elector::kubernetes(config, client, Arc::new(SystemClock))?;
//! let election = elector.election();
//! let running = tokio::spawn(elector.run(stopped_writing.clone()));
//!
//! if let Ok(fence) = election.leading().await {
//!     while fence.is_open() {
//!         // … write; when asked to end, finish what was begun, then:
//!         stopped_writing.cancel();
//!     }
//! }
//! let ended = running.await?;
//! # Ok(())
//! # }
//! ```
//!
//! What differs from the Go library, always to the safe side or within the protocol:
//!
//! | | Go | here |
//! |---|---|---|
//! | the leader may write until | a renewal failed for the renew deadline, counted after the last pause | the renew deadline after the *start* of the last renewal, by a clock that every write reads |
//! | a leader that finds another holder | keeps trying until the deadline | steps down at once |
//! | an expired lease is taken | at the next read, up to 2.2 retry periods later | when it expires |
//! | a release is seen | at the next read | by a watch, at once; by polling where the role forbids it |
//! | on shutdown | kept until it expires (the framework's default) | released once nothing writes any more |
//! | fields of the Lease that the election does not use | dropped | kept |
//! | a lease duration with a fraction of a second | stored too short | stored too long |
//!
//! A third party that deletes or edits the Lease breaks the protocol: another candidate may take it at once, and
//! the current leader learns of it from the watch, or with its next renewal. A machine that sleeps stops the clock
//! that the fence reads, here as in Go. So do not run a leader on a machine that may be suspended for longer than the
//! lease duration minus the renew deadline.

mod background;
mod config;
mod decide;
mod elector;
mod events;
mod fence;
mod identity;
mod kube_store;
mod lease_watch;
mod lock;
mod migration;
mod record;
mod runner;
mod status;
mod store;
#[cfg(test)]
mod tests;

pub use background::BackgroundTasks;
pub use config::ElectionConfig;
pub use decide::{Action, Candidate, Moment, Observation, Role, decide};
pub(crate) use elector::{EVENTS_FLUSH_TIMEOUT, RELEASE_TIMEOUT};
pub use elector::{Elector, Ended};
pub use events::{KubeLeaseEvents, LeaseEvent, LeaseEvents, NoLeaseEvents};
pub use fence::Fence;
pub use identity::unique_identity;
pub use kube_store::{KubeLease, election_client};
pub use migration::{COMPONENT, LeaderMigration, RunsUnder};
pub use record::Record;
pub use runner::RunningElection;
pub use status::{Election, ElectionHealth, Leadership, Loss};
pub use store::{LeaseStore, StoreError, StoredLease};
