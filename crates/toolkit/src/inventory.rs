//! The resources of a cloud as they were last listed. One list serves instances, routes and targets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::CloudError;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use crate::HasId;

/// Lists resources on request, never twice at once, and keeps the last answer together with everything younger
/// that look-ups of single ones have shown.
#[derive(Debug)]
pub struct Inventory<T> {
    /// Held while a list is read. Look-ups do not wait for it: a list may take minutes when requests are scarce.
    listing: AsyncMutex<()>,
    known: Mutex<Known<T>>,
}

#[derive(Debug)]
struct Known<T> {
    last: Option<Listed<T>>,
    /// What look-ups have shown since the last list began, and when.
    looked_up: Vec<(Instant, T)>,
}

#[derive(Debug)]
struct Listed<T> {
    began: Instant,
    items: Arc<Vec<T>>,
}

impl<T> Default for Inventory<T> {
    fn default() -> Self {
        Self {
            listing: AsyncMutex::default(),
            known: Mutex::new(Known {
                last: None,
                looked_up: Vec::new(),
            }),
        }
    }
}

impl<T: HasId + Clone + Send + Sync> Inventory<T> {
    /// All of them, by a list that begins after this call.
    pub async fn fresh<R>(&self, list: impl FnOnce() -> R) -> Result<Arc<Vec<T>>, CloudError>
    where
        R: Future<Output = Result<Vec<T>, CloudError>>,
    {
        let _listing = self.listing.lock().await;
        self.read(list).await
    }

    /// All of them, by a list that began at most this long ago.
    pub async fn no_older_than<R>(
        &self,
        age: Duration,
        list: impl FnOnce() -> R,
    ) -> Result<Arc<Vec<T>>, CloudError>
    where
        R: Future<Output = Result<Vec<T>, CloudError>>,
    {
        if let Some(items) = self.known().no_older_than(age) {
            return Ok(items);
        }
        let _listing = self.listing.lock().await;
        // Another caller may have read it meanwhile.
        let listed = self.known().no_older_than(age);
        match listed {
            Some(items) => Ok(items),
            None => self.read(list).await,
        }
    }

    /// Keeps what a look-up has shown just now: a Node that was initialised by it is about to need a route.
    pub fn record(&self, items: &[T]) {
        self.known().record(items);
    }

    fn known(&self) -> MutexGuard<'_, Known<T>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read<R>(&self, list: impl FnOnce() -> R) -> Result<Arc<Vec<T>>, CloudError>
    where
        R: Future<Output = Result<Vec<T>, CloudError>>,
    {
        let began = Instant::now();
        let items = list().await?;
        Ok(self.known().replace(began, items))
    }
}

impl<T: HasId + Clone> Known<T> {
    fn no_older_than(&self, age: Duration) -> Option<Arc<Vec<T>>> {
        let last = self.last.as_ref();
        let fresh = last.filter(|listed| listed.began.elapsed() <= age);
        fresh.map(|listed| Arc::clone(&listed.items))
    }

    fn record(&mut self, items: &[T]) {
        if let Some(listed) = &mut self.last {
            listed.replace(items);
        }
        let now = Instant::now();
        self.looked_up.retain(|(_, known)| !is_among(items, known));
        let items = items.iter().map(|item| (now, item.clone()));
        self.looked_up.extend(items);
    }

    /// Takes a new list. Pages that were read before a look-up may lack what it showed.
    fn replace(&mut self, began: Instant, items: Vec<T>) -> Arc<Vec<T>> {
        let mut listed = Listed {
            began,
            items: Arc::new(items),
        };
        self.looked_up.retain(|(at, _)| *at >= began);
        for (_, item) in &self.looked_up {
            listed.replace(std::slice::from_ref(item));
        }
        let items = Arc::clone(&listed.items);
        self.last = Some(listed);
        items
    }
}

impl<T: HasId + Clone> Listed<T> {
    fn replace(&mut self, younger: &[T]) {
        let items = Arc::make_mut(&mut self.items);
        items.retain(|known| !is_among(younger, known));
        items.extend_from_slice(younger);
    }
}

fn is_among<T: HasId>(items: &[T], known: &T) -> bool {
    items.iter().any(|item| item.id() == known.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Server(u64, &'static str);

    impl HasId for Server {
        type Id = u64;

        fn id(&self) -> u64 {
            self.0
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    async fn slow(items: &[Server]) -> Result<Vec<Server>, CloudError> {
        tokio::time::sleep(SECOND).await;
        Ok(items.to_vec())
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_serves_until_it_is_too_old() {
        let inventory = Inventory::default();
        let (old, new) = ([Server(1, "old")], [Server(1, "new")]);
        let first = inventory
            .no_older_than(SECOND, || slow(&old))
            .await
            .unwrap();
        assert_eq!(*first, old);
        let kept = inventory
            .no_older_than(SECOND, || slow(&new))
            .await
            .unwrap();
        assert_eq!(*kept, old);
        tokio::time::advance(SECOND).await;
        let read = inventory
            .no_older_than(SECOND, || slow(&new))
            .await
            .unwrap();
        assert_eq!(*read, new);
        let fresh = inventory.fresh(|| slow(&old)).await.unwrap();
        assert_eq!(*fresh, old);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_up_during_a_list_is_not_lost_and_one_before_it_is_not_kept() {
        let inventory = Inventory::default();
        inventory.record(&[Server(7, "before")]);
        tokio::time::advance(SECOND).await;
        let listed = [Server(1, "listed")];
        let (found, ()) = tokio::join!(inventory.fresh(|| slow(&listed)), async {
            tokio::time::sleep(SECOND / 2).await;
            inventory.record(&[Server(1, "younger"), Server(2, "new")]);
        });
        assert_eq!(*found.unwrap(), [Server(1, "younger"), Server(2, "new")]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_list_leaves_the_last_one() {
        let inventory = Inventory::default();
        let listed = [Server(1, "listed")];
        inventory.fresh(|| slow(&listed)).await.unwrap();
        let failing = || async { Err(CloudError::invalid("list", "no")) };
        assert!(inventory.fresh(failing).await.is_err());
        let known = inventory.no_older_than(SECOND * 9, failing).await.unwrap();
        assert_eq!(*known, listed);
    }
}
