//! Tells that Nodes are initialised, when nobody is kept waiting by it.

use std::time::Duration;

use cloudkeel_api::Event;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::find::CROWD;
use super::{NodeController, lock};

/// While a crowd waits, good news do so too, but no longer than this.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether the crowd is through.
const PAUSE: Duration = Duration::from_millis(50);

/// Events that can wait.
#[derive(Debug, Default)]
pub(super) struct News {
    since: Option<Instant>,
    events: Vec<Event>,
}

impl NodeController {
    /// Emits an event at once, or with others after the crowd that waits now: an event costs the API
    /// server as much as half of a Node's initialisation.
    pub(super) fn tell_later(&self, event: Event) {
        if self.queue.load() < CROWD {
            self.events.emit(event);
            return;
        }
        let mut news = lock(&self.news);
        news.since.get_or_insert_with(Instant::now);
        news.events.push(event);
        drop(news);
        self.news_came.notify_one();
    }

    /// Emits what was put off until `stop`, and then the rest.
    pub(super) async fn tell_news(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.news_came.notified() => {}
            }
            self.tell_when_due(stop).await;
        }
    }

    async fn tell_when_due(&self, stop: &CancellationToken) {
        while !self.are_news_due() && !stop.is_cancelled() {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        let due = std::mem::take(&mut *lock(&self.news));
        for event in due.events {
            self.events.emit(event);
        }
    }

    fn are_news_due(&self) -> bool {
        let since = lock(&self.news).since;
        self.queue.load() < CROWD || since.is_none_or(|since| since.elapsed() >= PATIENCE)
    }
}
