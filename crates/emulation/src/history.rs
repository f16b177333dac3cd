//! Tables of resources with their past, so that reads can lag behind and answers can be stale.

use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// Which moment a read shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// What really is.
    Now,
    /// What was at that moment.
    At(Instant),
    /// Before there was anything.
    BeforeEverything,
}

impl View {
    /// What was `lag` ago.
    pub fn lagging(now: Instant, lag: Duration) -> Self {
        if lag.is_zero() {
            return Self::Now;
        }
        now.checked_sub(lag)
            .map_or(Self::BeforeEverything, Self::At)
    }
}

/// All resources of a kind with their past, by any key: a number, a UUID, a name.
#[derive(Debug)]
pub struct Table<T, K = u64> {
    records: BTreeMap<K, Record<T>>,
    /// What was removed and when, to forget it some day.
    removed: VecDeque<(Instant, K)>,
    keep: Duration,
    alive: usize,
    changes: u64,
}

/// Versions of one resource, oldest first. A version without a value says that it was removed.
#[derive(Debug)]
struct Record<T> {
    versions: VecDeque<(Instant, Option<Arc<T>>)>,
}

impl<T> Record<T> {
    fn seen(&self, view: View) -> Option<&Arc<T>> {
        let (_, value) = match view {
            View::Now => self.versions.back(),
            View::At(when) => self.versions.iter().rev().find(|(since, _)| *since <= when),
            View::BeforeEverything => None,
        }?;
        value.as_ref()
    }

    /// Forgets versions that were replaced before `horizon`.
    fn forget(&mut self, horizon: Instant) {
        while self
            .versions
            .get(1)
            .is_some_and(|(replaced, _)| *replaced < horizon)
        {
            self.versions.pop_front();
        }
    }
}

impl<T, K: Ord + Clone> Table<T, K> {
    /// An empty table that remembers for this long.
    pub const fn remembering(keep: Duration) -> Self {
        Self {
            records: BTreeMap::new(),
            removed: VecDeque::new(),
            keep,
            alive: 0,
            changes: 0,
        }
    }

    /// The resource as it really is.
    pub fn get<Q: Ord + ?Sized>(&self, id: &Q) -> Option<&Arc<T>>
    where
        K: Borrow<Q>,
    {
        self.seen(id, View::Now)
    }

    /// The resource as a read shows it.
    pub fn seen<Q: Ord + ?Sized>(&self, id: &Q, view: View) -> Option<&Arc<T>>
    where
        K: Borrow<Q>,
    {
        self.records.get(id)?.seen(view)
    }

    /// All resources as they really are, by ID.
    pub fn iter(&self) -> impl Iterator<Item = (K, &Arc<T>)> {
        self.all_seen(View::Now)
    }

    /// All resources as a read shows them, by ID.
    pub fn all_seen(&self, view: View) -> impl Iterator<Item = (K, &Arc<T>)> {
        self.records
            .iter()
            .filter_map(move |(id, record)| Some((id.clone(), record.seen(view)?)))
    }

    /// All resources as a read shows them, without their IDs.
    pub fn values(&self, view: View) -> impl Iterator<Item = &T> {
        self.all_seen(view).map(|(_, value)| &**value)
    }

    /// Copies of all resources as they really are.
    pub fn to_vec(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.values(View::Now).cloned().collect()
    }

    /// How many there really are.
    pub const fn count(&self) -> usize {
        self.alive
    }

    /// How often anything was added, replaced or removed.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds or replaces.
    pub fn put(&mut self, id: K, value: T, at: Instant) {
        self.alive += usize::from(self.get(&id).is_none());
        self.record(id, Some(Arc::new(value)), at);
    }

    /// Changes a resource, and gives it as it is then; `None` if it is not there.
    pub fn edit(&mut self, id: &K, at: Instant, change: impl FnOnce(&mut T)) -> Option<&Arc<T>>
    where
        T: Clone,
    {
        let mut value = T::clone(self.get(id)?);
        change(&mut value);
        self.put(id.clone(), value, at);
        self.get(id)
    }

    /// Changes every resource that this is true of.
    pub fn edit_where(
        &mut self,
        at: Instant,
        is_meant: impl Fn(&T) -> bool,
        change: impl Fn(&mut T),
    ) where
        T: Clone,
    {
        let meant = self.iter().filter(|(_, value)| is_meant(value));
        let meant: Vec<K> = meant.map(|(id, _)| id).collect();
        for id in meant {
            self.edit(&id, at, &change);
        }
    }

    /// Removes. Nothing happens if it is not there.
    pub fn remove(&mut self, id: &K, at: Instant) {
        if self.get(id).is_some() {
            self.record(id.clone(), None, at);
            self.alive -= 1;
            self.removed.push_back((at, id.clone()));
        }
    }

    fn record(&mut self, id: K, value: Option<Arc<T>>, at: Instant) {
        self.changes += 1;
        let horizon = at.checked_sub(self.keep);
        let record = self.records.entry(id).or_insert_with(|| Record {
            versions: VecDeque::new(),
        });
        record.versions.push_back((at, value));
        if let Some(horizon) = horizon {
            record.forget(horizon);
            self.forget_removed(horizon);
        }
    }

    fn forget_removed(&mut self, horizon: Instant) {
        while let Some((_, id)) = self.removed.pop_front_if(|(when, _)| *when < horizon) {
            // A name may be used again; a resource that came back under it stays.
            if self.get(&id).is_none() {
                self.records.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn names(table: &Table<&'static str>, view: View) -> Vec<&'static str> {
        table.all_seen(view).map(|(_, name)| **name).collect()
    }

    #[test]
    fn a_view_shows_what_was_then() {
        let start = Instant::now();
        let at = |second: u32| start + SECOND * second;
        let mut table = Table::remembering(Duration::from_mins(10));
        table.put(1, "a", at(10));
        table.put(2, "b", at(20));
        table.put(1, "a2", at(30));
        table.remove(&2, at(40));
        table.remove(&2, at(41));
        table.remove(&9, at(41));
        for (case, view, expected) in [
            ("before everything", View::BeforeEverything, vec![]),
            ("before the first", View::At(at(9)), vec![]),
            ("at the first", View::At(at(10)), vec!["a"]),
            ("both", View::At(at(29)), vec!["a", "b"]),
            ("changed", View::At(at(30)), vec!["a2", "b"]),
            ("removed", View::At(at(40)), vec!["a2"]),
            ("now", View::Now, vec!["a2"]),
        ] {
            assert_eq!(names(&table, view), expected, "{case}");
        }
        assert_eq!(table.count(), 1);
    }

    #[test]
    fn the_past_is_forgotten_after_a_while() {
        let start = Instant::now();
        let mut table = Table::remembering(SECOND * 10);
        table.put(1, "old", start);
        table.put(2, "gone", start);
        table.remove(&2, start + SECOND);
        for step in 0..100 {
            table.put(1, "new", start + SECOND * step);
        }
        assert!(table.records[&1].versions.len() < 15);
        assert!(!table.records.contains_key(&2));
        assert_eq!(names(&table, View::Now), ["new"]);
    }

    #[test]
    fn a_name_is_a_key_too_and_may_be_used_again() {
        let start = Instant::now();
        let mut table = Table::<_, String>::remembering(SECOND);
        table.put("a".to_owned(), 1, start);
        table.remove(&"a".to_owned(), start);
        table.put("a".to_owned(), 2, start);
        for step in 0..10 {
            table.put("b".to_owned(), step, start + SECOND * step);
        }
        assert_eq!(table.get("a").map(|value| **value), Some(2));
        let edited = table.edit(&"a".to_owned(), start, |value| *value += 1);
        assert_eq!(edited.map(|value| **value), Some(3));
        table.edit_where(start, |value| *value == 9, |value| *value = 0);
        assert_eq!(table.to_vec(), [3, 0]);
    }
}
