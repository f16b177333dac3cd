//! What every controller runs on: queues, caches, writers.

mod backoff;
mod brief;
mod cache;
mod cause;
mod debounce;
mod events;
mod given;
mod jitter;
mod protobuf;
mod queue;
mod records;
mod service_writer;
mod slim;
mod watch;
mod workers;
mod writer;

pub use backoff::Backoff;
pub use brief::Brief;
pub use cache::{Cache, Listener};
pub use cause::Cause;
pub use debounce::Debounce;
pub use events::{EventRecorder, RecentEvent, RecentEvents, Reported, Reports, Sent, write_events};
pub use given::GivenClient;
pub(crate) use jitter::jittered;
pub use queue::{Job, Queue, QueueObserver, Unobserved, Urgency};
pub use records::Records;
pub use service_writer::ServiceWriter;
pub use watch::{watch_nodes, watch_services};
pub use workers::{Verdict, work};
pub use writer::{NodeWriter, Unless, WriteError};
