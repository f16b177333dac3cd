//! Events in the cluster: merged, limited, and written off the critical path.

mod correlate;
mod recent;
mod write;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use cloudkeel_api::{Event, EventSink, Subject, one_line};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::error_text::LONGEST_MESSAGE;
pub use recent::{RecentEvent, RecentEvents};
pub use write::write_events;

/// How many Events are written at once. Those about one object are written one after the other, because the second
/// of two equal ones counts the first one up.
const WRITERS: usize = 8;
/// How many Events may wait for a writer. A burst of five thousand new Nodes fits.
const CAPACITY: usize = 1024;

/// An Event with the component that reports it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reported {
    /// The component, such as `service-controller`.
    pub source: &'static str,
    /// The Event.
    pub event: Event,
}

/// Takes Events for the cluster. Cheap to clone; never blocks. If the writers fall behind, what does not fit is
/// dropped, because an Event is never worth a stall.
#[derive(Clone)]
pub struct EventRecorder {
    senders: Vec<mpsc::Sender<Reported>>,
    recent: Arc<RecentEvents>,
}

/// The Events that wait to be written.
pub struct Reports {
    queues: Vec<mpsc::Receiver<Reported>>,
    recent: Arc<RecentEvents>,
}

impl EventRecorder {
    /// A recorder, and the queues that [`write_events`] empties.
    pub fn channel() -> (Self, Reports) {
        let (senders, queues) = (0..WRITERS).map(|_| mpsc::channel(CAPACITY)).unzip();
        let recent = Arc::<RecentEvents>::default();
        let reports = Reports {
            queues,
            recent: Arc::clone(&recent),
        };
        (Self { senders, recent }, reports)
    }

    /// The latest Events that were sent to the cluster.
    pub const fn recent(&self) -> &Arc<RecentEvents> {
        &self.recent
    }

    /// A sink that reports under this component.
    pub fn sink(&self, source: &'static str) -> Arc<dyn EventSink> {
        Arc::new(Source {
            recorder: self.clone(),
            source,
        })
    }
}

impl Reports {
    /// Passes on what is reported until `stop`, instead of writing it to the cluster.
    pub async fn pass_on(self, to: impl Fn(&Reported) + Sync, stop: CancellationToken) {
        let passing = self.queues.into_iter().map(|mut queue| {
            let (to, stop) = (&to, &stop);
            async move {
                while let Some(reported) = next(&mut queue, stop).await {
                    to(&reported);
                }
            }
        });
        futures::future::join_all(passing).await;
    }
}

/// The next Event; after `stop`, only what waits already.
async fn next(queue: &mut mpsc::Receiver<Reported>, stop: &CancellationToken) -> Option<Reported> {
    let next = stop.run_until_cancelled(queue.recv()).await;
    next.unwrap_or_else(|| queue.try_recv().ok())
}

struct Source {
    recorder: EventRecorder,
    source: &'static str,
}

impl EventSink for Source {
    fn emit(&self, mut event: Event) {
        let source = self.source;
        if let Cow::Owned(line) = one_line(&event.message, LONGEST_MESSAGE) {
            event.message = line;
        }
        let Some(writer) = self.recorder.senders.get(writer_of(&event.subject)) else {
            return;
        };
        if let Err(err) = writer.try_send(Reported { source, event }) {
            debug!(%err, "event dropped");
        }
    }
}

/// All Events about one object go to one writer.
fn writer_of(subject: &Subject) -> usize {
    let mut hasher = DefaultHasher::new();
    (namespace(subject), name(subject)).hash(&mut hasher);
    usize::try_from(hasher.finish() % WRITERS as u64).unwrap_or(0)
}

/// Where Events about an object are written: those about Nodes in `default`.
fn namespace(subject: &Subject) -> &str {
    match subject {
        Subject::Node { .. } => "default",
        Subject::Service(service) => &service.namespace,
    }
}

fn name(subject: &Subject) -> &str {
    match subject {
        Subject::Node { name, .. } => name,
        Subject::Service(service) => &service.name,
    }
}
