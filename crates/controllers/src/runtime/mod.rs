//! What every controller runs on: queues, caches, writers.

mod backoff;
mod batch;
mod cache;
mod debounce;
mod error_text;
mod events;
mod metadata_client;
mod panics;
mod protobuf;
mod queue;
mod records;
mod watch;
mod writer;

pub use backoff::Backoff;
pub(crate) use backoff::jittered;
pub(crate) use batch::Batch;
pub use cache::{Cache, Listener};
pub use debounce::Debounce;
pub use error_text::{ErrorText, FailureMessage};
pub use events::{EventRecorder, RecentEvent, RecentEvents, Reported, Reports, write_events};
pub use panics::{contain, contain_call, panic_text, panicked, restart_after_panics};
pub(crate) use queue::run;
pub use queue::{Queue, QueueObserver, Unobserved, Urgency, Verdict};
pub use records::Records;
pub use watch::{watch_nodes, watch_services};
pub use writer::{NodeWriter, Precondition, ServiceWriter, WriteError};
pub(crate) use writer::{patch_of, set_field};
