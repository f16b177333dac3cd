//! A small cache whose entries expire.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Holds a limited number of entries, each with its own time to live. When full, the entry that expires first is
/// evicted.
#[derive(Debug)]
pub(super) struct TtlCache<K, V> {
    most: usize,
    entries: Mutex<HashMap<K, (Instant, V)>>,
}

impl<K: Hash + Eq + Clone, V: Clone> TtlCache<K, V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            entries: Mutex::default(),
        }
    }

    /// The value, unless it has expired.
    pub(super) fn get(&self, key: &K) -> Option<V> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, value) = entries.get(key)?;
        if *end > Instant::now() {
            return Some(value.clone());
        }
        entries.remove(key);
        None
    }

    /// Caches a value for this long. Zero caches nothing.
    pub(super) fn insert(&self, key: K, value: V, lasts: Duration) {
        if lasts.is_zero() || self.most == 0 {
            return;
        }
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.most && !entries.contains_key(&key) {
            entries.retain(|_, (end, _)| *end > now);
        }
        if entries.len() >= self.most && !entries.contains_key(&key) {
            let first = entries.iter().min_by_key(|(_, (end, _))| *end);
            if let Some(first) = first.map(|(key, _)| key.clone()) {
                entries.remove(&first);
            }
        }
        entries.insert(key, (now + lasts, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn an_answer_ends_with_its_time() {
        let cache = TtlCache::new(8);
        cache.insert("a", 1, TEN);
        cache.insert("b", 2, Duration::ZERO);
        assert_eq!((cache.get(&"a"), cache.get(&"b")), (Some(1), None));
        tokio::time::advance(TEN).await;
        assert_eq!(cache.get(&"a"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_cache_drops_what_ends_first() {
        let cache = TtlCache::new(2);
        cache.insert("long", 1, TEN * 2);
        cache.insert("short", 2, TEN);
        cache.insert("new", 3, TEN * 3);
        assert_eq!(cache.get(&"short"), None);
        assert_eq!((cache.get(&"long"), cache.get(&"new")), (Some(1), Some(3)));
        cache.insert("long", 4, TEN);
        assert_eq!((cache.get(&"long"), cache.get(&"new")), (Some(4), Some(3)));
    }
}
