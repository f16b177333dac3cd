//! The objects, their versions, and what happened to them.

mod allocated;
mod commit;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

pub(crate) use allocated::{Allocated, node_ports};
pub use commit::{Commit, Verb};

/// What a kind of objects was at some version.
pub(crate) type Snapshot = BTreeMap<String, Arc<Value>>;

/// All objects in order, one counter of versions, and the recent past.
pub(crate) struct Store {
    objects: BTreeMap<&'static str, Snapshot>,
    allocated: Allocated,
    version: u64,
    /// The changes after `horizon`, in order.
    history: VecDeque<Arc<Commit>>,
    /// Everything up to this version is forgotten.
    horizon: u64,
    history_limit: usize,
    journal: Option<Vec<Arc<Commit>>>,
}

impl Store {
    pub(crate) fn new(history_limit: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            allocated: Allocated::default(),
            version: 1,
            history: VecDeque::new(),
            horizon: 1,
            history_limit,
            journal: None,
        }
    }

    /// Keeps every change from now on.
    pub(crate) fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }

    pub(crate) fn journal(&self) -> &[Arc<Commit>] {
        self.journal.as_deref().unwrap_or_default()
    }

    /// What the Services have taken.
    pub(crate) fn allocated(&self) -> &Allocated {
        &self.allocated
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    pub(crate) fn get(&self, storage: &str, key: &str) -> Option<&Arc<Value>> {
        self.objects.get(storage)?.get(key)
    }

    pub(crate) fn all(&self, storage: &str) -> impl Iterator<Item = &Arc<Value>> {
        self.objects
            .get(storage)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// The objects of a kind whose keys start like this.
    pub(crate) fn under<'a>(
        &'a self,
        storage: &str,
        prefix: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        let objects = self.objects.get(storage).into_iter();
        objects.flat_map(move |objects| {
            objects
                .range(prefix.to_owned()..)
                .take_while(move |(key, _)| key.starts_with(prefix))
                .map(|(_, object)| object)
        })
    }

    /// The version that the next change will make.
    pub(crate) fn next_version(&self) -> u64 {
        self.version + 1
    }

    /// Carries out a change, whose version is the next one.
    pub(crate) fn commit(&mut self, key: &str, commit: Commit) {
        self.version = commit.version;
        if commit.resource == "services" {
            let (before, after) = (commit.before.as_deref(), commit.after.as_deref());
            self.allocated.follow(before, after);
        }
        let objects = self.objects.entry(commit.resource).or_default();
        match &commit.after {
            Some(object) => objects.insert(key.to_owned(), Arc::clone(object)),
            None => objects.remove(key),
        };
        let commit = Arc::new(commit);
        if let Some(journal) = &mut self.journal {
            journal.push(Arc::clone(&commit));
        }
        self.history.push_back(commit);
        while self.history.len() > self.history_limit {
            if let Some(oldest) = self.history.pop_front() {
                self.horizon = oldest.version;
            }
        }
    }

    /// The version at this time, or the oldest one that is remembered.
    pub(crate) fn version_at(&self, time: Timestamp) -> u64 {
        let later = self.history.partition_point(|commit| commit.at <= time);
        let last = later.checked_sub(1).and_then(|last| self.history.get(last));
        last.map_or(self.horizon, |commit| commit.version)
    }

    /// Forgets the past, as etcd does from time to time.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
        self.horizon = self.version;
    }

    /// What happened after a version, oldest first; `None` if that is forgotten.
    pub(crate) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Arc<Commit>>> {
        if version < self.horizon {
            return None;
        }
        let known = self
            .history
            .partition_point(|commit| commit.version <= version);
        Some(self.history.range(known..))
    }

    /// The objects of a kind as they were; `None` if that is forgotten.
    pub(crate) fn as_of(&self, storage: &str, version: u64) -> Option<Snapshot> {
        let mut objects = self.objects.get(storage).cloned().unwrap_or_default();
        let later: Vec<_> = self.since(version)?.collect();
        for commit in later
            .into_iter()
            .rev()
            .filter(|commit| commit.resource == storage)
        {
            let key = commit.key();
            match &commit.before {
                Some(before) => objects.insert(key, Arc::clone(before)),
                None => objects.remove(&key),
            };
        }
        Some(objects)
    }
}

#[cfg(test)]
mod tests;
