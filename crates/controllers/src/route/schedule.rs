//! When to reconcile a cloud's routes.

use std::time::Duration;

use tokio::time::Instant;

/// A Node that joins is changed several times within a second.
pub(super) const DEBOUNCE: Duration = Duration::from_secs(1);

/// The shortest time from one reconciliation to the next.
pub(super) const MIN_INTERVAL: Duration = Duration::from_secs(5);

/// Why the routes are reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trigger {
    /// The resync period has passed.
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

/// What asks for a reconciliation, and how long it has to wait.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// When the first Node changed since the last reconciliation began.
    changed_since: Option<Instant>,
    is_resync_due: bool,
    has_begun: bool,
    not_before: Option<Instant>,
    trigger: Trigger,
}

impl Schedule {
    /// Nodes have changed. Returns whether this is the first change since the last reconciliation began, which has
    /// to be enqueued.
    pub(super) fn note_change(&mut self, now: Instant) -> bool {
        let is_first = self.changed_since.is_none();
        self.changed_since.get_or_insert(now);
        is_first
    }

    pub(super) const fn note_resync(&mut self) {
        self.is_resync_due = true;
    }

    /// How long a reconciliation has to wait, if it has to.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let settled = self.changed_since.map(|since| since + DEBOUNCE);
        let due = settled.max(self.not_before)?;
        (due > now).then(|| due - now)
    }

    /// A reconciliation begins, with all changes so far. A retry has the trigger of the one before.
    pub(super) fn begin(&mut self, now: Instant, min_interval: Duration) -> Trigger {
        let is_resync_due = std::mem::take(&mut self.is_resync_due);
        if self.changed_since.take().is_some() {
            self.trigger = Trigger::NodeChange;
        } else if is_resync_due {
            self.trigger = Trigger::Periodic;
        }
        self.has_begun = true;
        self.not_before = Some(now + min_interval);
        self.trigger
    }

    /// Whether a first reconciliation has begun, and nothing asks for another.
    pub(super) const fn is_idle(&self) -> bool {
        self.has_begun && self.changed_since.is_none() && !self.is_resync_due
    }

    /// Whatever had to be waited for may be over.
    pub(super) const fn end_wait(&mut self) {
        self.not_before = None;
    }

    /// No reconciliation before then, even if Nodes change: the cloud cannot answer.
    pub(super) fn postpone(&mut self, until: Instant) {
        self.not_before = self.not_before.max(Some(until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_changes_is_one_reconciliation_and_the_next_keeps_its_distance() {
        let (mut schedule, start) = (Schedule::default(), Instant::now());
        assert!(schedule.note_change(start));
        assert!(!schedule.note_change(start + SECOND / 2));
        assert_eq!(schedule.wait(start + SECOND / 2), Some(SECOND / 2));
        let first = start + DEBOUNCE;
        assert_eq!(schedule.wait(first), None);
        assert_eq!(schedule.begin(first, MIN_INTERVAL), Trigger::NodeChange);
        assert!(schedule.note_change(first + SECOND), "it has begun");
        assert_eq!(schedule.wait(first + SECOND), Some(SECOND * 4));
        assert_eq!(schedule.wait(first + MIN_INTERVAL), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconciliation_is_named_after_what_caused_it() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        schedule.note_resync();
        assert_eq!(schedule.begin(now, MIN_INTERVAL), Trigger::Periodic);
        schedule.note_resync();
        schedule.note_change(now);
        assert_eq!(schedule.begin(now, MIN_INTERVAL), Trigger::NodeChange);
        let retry = schedule.begin(now, MIN_INTERVAL);
        assert_eq!(retry, Trigger::NodeChange);
        schedule.note_resync();
        assert_eq!(schedule.begin(now, MIN_INTERVAL), Trigger::Periodic);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_do_not_shorten_the_wait_for_a_cloud_that_cannot_answer() {
        let (mut schedule, now) = (Schedule::default(), Instant::now());
        schedule.begin(now, MIN_INTERVAL);
        schedule.postpone(now + SECOND * 30);
        schedule.note_change(now + SECOND);
        assert_eq!(schedule.wait(now + SECOND * 10), Some(SECOND * 20));
        schedule.postpone(now);
        assert_eq!(schedule.wait(now + SECOND * 30), None);
    }
}
