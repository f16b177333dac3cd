//! The resources of a cloud as they were last listed. One list serves instances, routes and targets.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{CloudError, Priority};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use crate::{HasId, Resource, RestApi};

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

/// The resources of one kind and the JSON API that lists them.
#[derive(Debug)]
pub struct ListedResources<A, T> {
    /// The API.
    pub api: A,
    inventory: Inventory<T>,
}

impl<A, T> ListedResources<A, T>
where
    A: Deref<Target = RestApi> + Send + Sync,
    T: Resource + Clone + Send + Sync,
    T::Id: Hash + Ord,
{
    /// Nothing was listed yet.
    pub fn new(api: A) -> Self {
        let inventory = Inventory::default();
        Self { api, inventory }
    }

    /// All of them, by a list that begins after this call.
    pub async fn fresh(&self) -> Result<Arc<Vec<T>>, CloudError> {
        let list = || self.api.every(Priority::Background);
        self.inventory.fresh(list).await
    }

    /// All of them, as they were at most this long ago.
    pub async fn no_older_than(&self, age: Duration) -> Result<Arc<Vec<T>>, CloudError> {
        let list = || self.api.every(Priority::Background);
        self.inventory.no_older_than(age, list).await
    }

    /// Those of these that there are not. What a list of the first age does not show is looked for in one of the next, so
    /// that what is known costs no new list.
    pub async fn missing_among(
        &self,
        mut ids: BTreeSet<T::Id>,
        ages: impl IntoIterator<Item = Duration>,
    ) -> Result<BTreeSet<T::Id>, CloudError> {
        for age in ages {
            if ids.is_empty() {
                break;
            }
            for known in self.no_older_than(age).await?.iter() {
                ids.remove(&known.id());
            }
        }
        Ok(ids)
    }

    /// Keeps what a look-up has shown just now.
    pub fn record(&self, items: &[T]) {
        self.inventory.record(items);
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
    use cloudkeel_http::Client;
    use cloudkeel_http::testing::{Reply, Script};
    use serde_json::json;

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

    const PAGING: crate::Paging = crate::Paging {
        next: "/next",
        total: "/total",
    };

    #[derive(Debug, Clone, serde::Deserialize)]
    struct Droplet {
        id: u64,
    }

    crate::resources! {
        Droplet, id: u64 = "droplet", "droplets";
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_older_list_shows_is_not_listed_again_and_what_it_lacks_is() {
        let list = |ids: &[u64]| {
            let droplets: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
            Reply::json(200, &json!({"droplets": droplets}))
        };
        let script = Script::new([list(&[1]), list(&[1, 2])]);
        let client = Client::builder("https://x").transport(script).build();
        let api = RestApi::new(client.unwrap(), "", 50, PAGING);
        let droplets = ListedResources::<_, Droplet>::new(Box::new(api));
        assert_eq!(droplets.fresh().await.unwrap().len(), 1);
        tokio::time::advance(SECOND * 2).await;
        let missing = |ids: &[u64]| {
            let ids = ids.iter().copied().collect();
            droplets.missing_among(ids, [SECOND * 9, SECOND])
        };
        assert!(missing(&[1]).await.unwrap().is_empty());
        assert_eq!(missing(&[1, 2, 3]).await.unwrap(), [3].into());
    }
}
