//! What every controller runs on: queues, caches, writers.

mod backoff;
mod cache;
mod queue;
mod workers;

pub use backoff::Backoff;
pub use cache::{Cache, Listener};
pub use queue::{Job, Queue, QueueObserver, Unobserved, Urgency};
pub use workers::{Verdict, work};
