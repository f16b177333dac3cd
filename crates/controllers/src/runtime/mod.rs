//! What every controller runs on: queues, caches, writers.

mod backoff;
mod cache;
mod events;
mod queue;
mod slim;
mod watch;
mod workers;
mod writer;

pub use backoff::Backoff;
pub use cache::{Cache, Listener};
pub use events::{EventRecorder, Reported, write_events};
pub use queue::{Job, Queue, QueueObserver, Unobserved, Urgency};
pub use watch::watch_nodes;
pub use workers::{Verdict, work};
pub use writer::{NodeWriter, Unless, WriteError};
