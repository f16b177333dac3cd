//! Events in the cluster: merged, limited, and written off the critical path.

mod correlate;
mod recent;
mod write;

use std::sync::Arc;

use cloudkeel_api::{Event, EventSink};
use tokio::sync::mpsc;
use tracing::debug;

use correlate::{Correlated, Correlator};
pub use recent::{RecentEvent, RecentEvents, Sent};
pub use write::write_events;

/// An event with the component that reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The component, such as `service-controller`.
    pub source: &'static str,
    /// What it says.
    pub event: Event,
}

/// Takes events for the cluster. Cheap to clone; never blocks. If the writer falls behind, what does
/// not fit is dropped, because an event is never worth a stall.
#[derive(Clone)]
pub struct EventRecorder {
    sender: mpsc::Sender<Reported>,
    recent: Arc<RecentEvents>,
}

/// The events that wait to be written.
pub struct Reports {
    queue: mpsc::Receiver<Reported>,
    recent: Arc<RecentEvents>,
}

impl EventRecorder {
    /// How many events may wait. A burst of five thousand new Nodes fits.
    const CAPACITY: usize = 8192;

    /// A recorder, and the queue that [`write_events`] empties.
    pub fn channel() -> (Self, Reports) {
        let (sender, queue) = mpsc::channel(Self::CAPACITY);
        let recent = Arc::<RecentEvents>::default();
        let reports = Reports {
            queue,
            recent: Arc::clone(&recent),
        };
        (Self { sender, recent }, reports)
    }

    /// The latest of those that were sent to the cluster.
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

struct Source {
    recorder: EventRecorder,
    source: &'static str,
}

impl EventSink for Source {
    fn emit(&self, event: Event) {
        let reported = Reported {
            source: self.source,
            event,
        };
        if let Err(error) = self.recorder.sender.try_send(reported) {
            debug!(%error, "event dropped");
        }
    }
}
