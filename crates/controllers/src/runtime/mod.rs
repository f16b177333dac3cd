//! What every controller runs on: queues, caches, writers.

mod backoff;
mod queue;
mod workers;

pub use backoff::Backoff;
pub use queue::{Job, Queue, QueueObserver, Unobserved, Urgency};
pub use workers::{Verdict, work};
