//! The log lines of some work, as text.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::instrument::WithSubscriber as _;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Does the work and collects everything it logs, at every level, with the fields of events and spans.
pub(super) async fn collected<T>(work: impl Future<Output = T>) -> (T, Vec<String>) {
    let lines = Lines::default();
    let done = work.with_subscriber(lines.clone()).await;
    let mut lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner);
    (done, std::mem::take(&mut *lines))
}

#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn push(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Line)) {
        let mut line = Line(metadata.target().to_owned());
        record(&mut line);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line.0);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.push(span.metadata(), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, values: &Record<'_>) {
        let mut line = Line("span".to_owned());
        values.record(&mut line);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line.0);
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.push(event.metadata(), |line| event.record(line));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_and_spans_are_collected_with_their_fields() {
        let work = async {
            let span = tracing::info_span!("request", token = "abc");
            let _entered = span.enter();
            tracing::debug!(status = 401, "refused");
            7
        };
        let (done, lines) = collected(work).await;
        assert_eq!(done, 7);
        let text = lines.join("\n");
        assert!(text.contains("token=\"abc\""), "{text}");
        assert!(text.contains("message=refused status=401"), "{text}");
    }
}
