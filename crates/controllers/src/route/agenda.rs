//! When to look at a cloud's routes.

use std::time::Duration;

use tokio::time::Instant;

/// News come in bursts: a Node that joins is changed several times within a second.
pub(super) const SETTLE: Duration = Duration::from_secs(1);

/// The shortest time from one look to the next, however much happens.
pub(super) const GAP: Duration = Duration::from_secs(5);

/// Why the routes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trigger {
    /// It was time to.
    #[default]
    Periodic,
    /// Nodes have changed.
    NodeChange,
}

impl Trigger {
    /// As upstream's metric has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Periodic => "periodic",
            Self::NodeChange => "node_change",
        }
    }
}

/// What waits to be looked at, and how long it has to.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// Since when there are news that no look has taken in.
    news_since: Option<Instant>,
    /// Whether it is time to look although there are none.
    is_time: bool,
    not_before: Option<Instant>,
    trigger: Trigger,
}

impl Agenda {
    /// Nodes have changed. Tells whether these are the first news since the last look began; whoever
    /// brings those wakes the worker.
    pub(super) fn note_news(&mut self, now: Instant) -> bool {
        let is_first = self.news_since.is_none();
        self.news_since.get_or_insert(now);
        is_first
    }

    /// It is time to look.
    pub(super) const fn note_time(&mut self) {
        self.is_time = true;
    }

    /// How long a look has to wait, if it has to.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let settled = self.news_since.map(|since| since + SETTLE);
        let due = settled.max(self.not_before)?;
        (due > now).then(|| due - now)
    }

    /// A look begins, which takes in all news so far. One that repeats another goes by its trigger.
    pub(super) fn begin(&mut self, now: Instant, gap: Duration) -> Trigger {
        let is_time = std::mem::take(&mut self.is_time);
        if self.news_since.take().is_some() {
            self.trigger = Trigger::NodeChange;
        } else if is_time {
            self.trigger = Trigger::Periodic;
        }
        self.not_before = Some(now + gap);
        self.trigger
    }

    /// No look before then, whatever the news: it is the cloud that cannot answer.
    pub(super) fn hold(&mut self, until: Instant) {
        self.not_before = self.not_before.max(Some(until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_news_is_one_look_and_the_next_keeps_its_distance() {
        let (mut agenda, start) = (Agenda::default(), Instant::now());
        assert!(agenda.note_news(start));
        assert!(!agenda.note_news(start + SECOND / 2));
        assert_eq!(agenda.wait(start + SECOND / 2), Some(SECOND / 2));
        let first = start + SETTLE;
        assert_eq!(agenda.wait(first), None);
        assert_eq!(agenda.begin(first, GAP), Trigger::NodeChange);
        assert!(agenda.note_news(first + SECOND), "the look has begun");
        assert_eq!(agenda.wait(first + SECOND), Some(SECOND * 4));
        assert_eq!(agenda.wait(first + GAP), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_is_named_after_what_caused_it() {
        let (mut agenda, now) = (Agenda::default(), Instant::now());
        agenda.note_time();
        assert_eq!(agenda.begin(now, GAP), Trigger::Periodic);
        agenda.note_time();
        agenda.note_news(now);
        assert_eq!(agenda.begin(now, GAP), Trigger::NodeChange);
        assert_eq!(agenda.begin(now, GAP), Trigger::NodeChange, "repeated");
        agenda.note_time();
        assert_eq!(agenda.begin(now, GAP), Trigger::Periodic);
    }

    #[tokio::test(start_paused = true)]
    async fn news_do_not_shorten_the_wait_for_a_cloud_that_cannot_answer() {
        let (mut agenda, now) = (Agenda::default(), Instant::now());
        agenda.begin(now, GAP);
        agenda.hold(now + SECOND * 30);
        agenda.note_news(now + SECOND);
        assert_eq!(agenda.wait(now + SECOND * 10), Some(SECOND * 20));
        agenda.hold(now);
        assert_eq!(agenda.wait(now + SECOND * 30), None);
    }
}
