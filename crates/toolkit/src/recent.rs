//! What happened recently and still matters: keys that expire, and logins that were refused.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Keys that expire, such as balancers that took no more targets a moment ago.
#[derive(Debug)]
pub struct RecentSet<K> {
    expires_after: Duration,
    keys: Mutex<BTreeMap<K, Instant>>,
}

impl<K: Ord> RecentSet<K> {
    /// Keys expire after this long.
    pub const fn new(expires_after: Duration) -> Self {
        Self {
            expires_after,
            keys: Mutex::new(BTreeMap::new()),
        }
    }

    /// Adds a key as of now.
    pub fn insert(&self, key: K) {
        self.keys().insert(key, Instant::now());
    }

    /// Removes a key before it expires.
    pub fn remove(&self, key: &K) {
        self.keys().remove(key);
    }

    /// Whether a key is among them.
    pub fn contains(&self, key: &K) -> bool {
        self.keys().contains_key(key)
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<K, Instant>> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, at| at.elapsed() < self.expires_after);
        keys
    }
}

/// Values that expire, such as what a cloud said of a type of machine.
#[derive(Debug)]
pub struct RecentMap<K, V> {
    expires_after: Duration,
    values: Mutex<BTreeMap<K, (Instant, V)>>,
}

impl<K: Ord, V: Clone> RecentMap<K, V> {
    /// Values expire after this long.
    pub const fn new(expires_after: Duration) -> Self {
        Self {
            expires_after,
            values: Mutex::new(BTreeMap::new()),
        }
    }

    /// Sets a value as of now.
    pub fn insert(&self, key: K, value: V) {
        self.values().insert(key, (Instant::now(), value));
    }

    /// The value of the first of these keys that has one.
    pub fn first_of(&self, keys: &[K]) -> Option<V> {
        let values = self.values();
        let mut found = keys.iter().filter_map(|key| values.get(key));
        found.next().map(|(_, value)| value.clone())
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<K, (Instant, V)>> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.retain(|_, (at, _)| at.elapsed() < self.expires_after);
        values
    }
}

/// Keeps a wrong password from locking an account out: after a refused login, calls fail at once for a while, and
/// only a few are in flight at any time, since only the first answer shows that the password is wrong.
#[derive(Debug)]
pub struct LoginGuard {
    pause: Duration,
    in_flight: Semaphore,
    refused: Mutex<Option<(Instant, CloudError)>>,
}

impl LoginGuard {
    /// Pauses for this long after a refused login.
    pub const fn new(pause: Duration, max_in_flight: usize) -> Self {
        Self {
            pause,
            in_flight: Semaphore::const_new(max_in_flight),
            refused: Mutex::new(None),
        }
    }

    /// Makes a call, unless the login was refused a short while ago.
    pub async fn call<T, F>(&self, call: impl FnOnce() -> F) -> Result<T, CloudError>
    where
        F: Future<Output = Result<T, CloudError>>,
    {
        // It is never closed.
        let _permit = self.in_flight.acquire().await;
        if let Some((at, error)) = &*self.refused()
            && at.elapsed() < self.pause
        {
            return Err(error.clone_without_source());
        }
        let answer = call().await;
        if let Err(error) = &answer
            && error.kind() == ErrorKind::Unauthenticated
        {
            *self.refused() = Some((Instant::now(), error.clone_without_source()));
        }
        answer
    }

    fn refused(&self) -> MutexGuard<'_, Option<(Instant, CloudError)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn keys_expire_or_are_removed() {
        let recent = RecentSet::new(MINUTE);
        recent.insert(1);
        recent.insert(2);
        recent.remove(&2);
        assert!(recent.contains(&1) && !recent.contains(&2));
        tokio::time::advance(MINUTE).await;
        assert!(!recent.contains(&1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_known_until_it_expires() {
        let recent = RecentMap::new(MINUTE);
        recent.insert("b", 2);
        assert_eq!(recent.first_of(&["a", "b"]), Some(2));
        tokio::time::advance(MINUTE / 2).await;
        recent.insert("a", 1);
        assert_eq!(recent.first_of(&["a", "b"]), Some(1));
        tokio::time::advance(MINUTE / 2).await;
        assert_eq!(recent.first_of(&["b"]), None);
        assert_eq!(recent.first_of(&["b", "a"]), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_login_is_not_tried_again_for_a_while() {
        let (guard, calls) = (LoginGuard::new(MINUTE, 1), AtomicUsize::new(0));
        let call = |kind| {
            guard.call(move || async move { Err::<(), _>(CloudError::new("get", kind, "no")) })
        };
        let refused = || async {
            calls.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(CloudError::new("get", ErrorKind::Unauthenticated, "wrong"))
        };
        assert_eq!(
            call(ErrorKind::Timeout).await.unwrap_err().kind(),
            ErrorKind::Timeout
        );
        for _ in 0..3 {
            let error = guard.call(refused).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unauthenticated);
        }
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        tokio::time::advance(MINUTE).await;
        assert!(guard.call(refused).await.is_err());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
