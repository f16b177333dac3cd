//! A watched collection, kept as views, whose changes are passed to listeners.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::{self, Event};
use parking_lot::{RwLock, RwLockWriteGuard};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::ErrorText;
use crate::log_messages::{WATCH_FAILED, WATCH_RECOVERED};
use crate::view::{Change, View};

/// Maps a change to the keys of a queue, and adds them.
pub type Listener<V> = Box<dyn Fn(&Change<V>) + Send + Sync>;

/// The objects of one kind, as the watch last showed them.
pub struct Cache<V> {
    entries: RwLock<BTreeMap<String, Entry<V>>>,
    version: AtomicU64,
    synced: watch::Sender<bool>,
    health: RwLock<Health>,
}

/// How the watch itself stands.
#[derive(Debug, Clone, Copy, Default)]
enum Health {
    /// The first list has not been seen whole.
    #[default]
    New,
    Whole {
        since: Instant,
    },
    Broken {
        at: Instant,
    },
}

/// A broken watch that does not fail again within this time works again, though nothing may have happened since
/// that would show it. Attempts to repair it are closer together.
const REPAIRED_AFTER: Duration = Duration::from_secs(45);

/// An object, and since when it has been here.
struct Entry<V> {
    view: Arc<V>,
    first_seen: Instant,
}

impl<V: View> Entry<V> {
    /// What takes the place of an entry. It is as old as the object is here.
    fn after(before: Option<&Self>, view: Arc<V>, now: Instant) -> Self {
        let same = before.filter(|before| view.continues(&before.view));
        let first_seen = same.map_or(now, |before| before.first_seen);
        Self { view, first_seen }
    }
}

impl<V: View> Cache<V> {
    /// An empty cache that has not synced yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            entries: RwLock::new(BTreeMap::new()),
            version: AtomicU64::new(0),
            synced: watch::Sender::new(false),
            health: RwLock::default(),
        })
    }

    /// The object of this key.
    pub fn get(&self, key: &str) -> Option<Arc<V>> {
        self.entries
            .read()
            .get(key)
            .map(|entry| Arc::clone(&entry.view))
    }

    /// A moment at which the API server certainly had this very object. Whatever began later has begun after it was
    /// created, and no other clock is compared. `None` if it is not here any more.
    pub fn first_seen(&self, view: &V) -> Option<Instant> {
        let entries = self.entries.read();
        let entry = entries.get(&view.key())?;
        entry.view.continues(view).then_some(entry.first_seen)
    }

    /// All objects, ordered by key.
    pub fn all(&self) -> Vec<Arc<V>> {
        let entries = self.entries.read();
        let views = entries.values().map(|entry| Arc::clone(&entry.view));
        views.collect()
    }

    /// A number that is another one after every change.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.read().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.read().is_empty()
    }

    /// Whether the first list has been seen whole.
    pub fn has_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Since when the watch has missed nothing; `None` before the first list, and while it is broken.
    pub fn whole_since(&self) -> Option<Instant> {
        match *self.health.read() {
            Health::Whole { since } => Some(since),
            Health::Broken { at } => (at.elapsed() >= REPAIRED_AFTER).then_some(at),
            Health::New => None,
        }
    }

    fn note_broken(&self) {
        let at = Instant::now();
        *self.health.write() = Health::Broken { at };
    }

    fn note_whole(&self) {
        let mut health = self.health.write();
        match *health {
            Health::Whole { .. } => return,
            Health::Broken { .. } => info!(kind = V::KIND, "{WATCH_RECOVERED}"),
            Health::New => {}
        }
        let since = Instant::now();
        *health = Health::Whole { since };
    }

    /// Waits until the first list has been seen whole.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// Follows a watch until `stop`, and passes every change to the listeners. A list (at the start, or after the watch
    /// was lost) is compared with what was known, so nothing that happened meanwhile is missed. The pages of a list
    /// show one moment, so all of its objects were there when the first of them came.
    pub async fn follow<S>(&self, events: S, listeners: &[Listener<V>], stop: &CancellationToken)
    where
        S: Stream<Item = watcher::Result<Event<V::Object>>>,
    {
        let mut arriving: BTreeMap<String, Arc<V>> = BTreeMap::new();
        let mut first_came = None;
        futures::pin_mut!(events);
        while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
            match event {
                Err(error) => {
                    self.note_broken();
                    warn!(kind = V::KIND, err = %ErrorText(&error), "{WATCH_FAILED}");
                }
                Ok(Event::Init) => {
                    arriving.clear();
                    first_came = None;
                }
                Ok(Event::InitApply(object)) => {
                    first_came.get_or_insert_with(Instant::now);
                    let view = V::of(&object);
                    arriving.insert(view.key(), Arc::new(view));
                }
                Ok(Event::InitDone) => {
                    let moment = first_came.take().unwrap_or_else(Instant::now);
                    self.replace(std::mem::take(&mut arriving), moment, listeners);
                    self.note_whole();
                    self.synced.send_replace(true);
                    debug!(kind = V::KIND, objects = self.len(), "cache synced");
                }
                Ok(Event::Apply(object)) => {
                    self.note_whole();
                    let view = Arc::new(V::of(&object));
                    let before = self.insert(Arc::clone(&view));
                    notify(listeners, before, Some(view));
                }
                Ok(Event::Delete(object)) => {
                    self.note_whole();
                    let before = self.write().remove(&V::of(&object).key());
                    notify(listeners, before.map(|entry| entry.view), None);
                }
            }
        }
    }

    /// Stores an object that the watch shows, and returns what was in its place.
    fn insert(&self, view: Arc<V>) -> Option<Arc<V>> {
        let (key, now) = (view.key(), Instant::now());
        let mut entries = self.write();
        let entry = Entry::after(entries.get(&key), view, now);
        entries.insert(key, entry).map(|before| before.view)
    }

    /// Stores the objects of a complete list, which were all there at this moment.
    fn replace(
        &self,
        listed: BTreeMap<String, Arc<V>>,
        moment: Instant,
        listeners: &[Listener<V>],
    ) {
        let mut entries = self.write();
        let mut before = std::mem::take(&mut *entries);
        for (key, view) in &listed {
            let entry = Entry::after(before.get(key), Arc::clone(view), moment);
            entries.insert(key.clone(), entry);
        }
        drop(entries);
        for (key, view) in listed {
            let before = before.remove(&key).map(|entry| entry.view);
            notify(listeners, before, Some(view));
        }
        for gone in before.into_values() {
            notify(listeners, Some(gone.view), None);
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Entry<V>>> {
        let entries = self.entries.write();
        // Under the lock: a reader that sees the new number has to wait for what it stands for.
        self.version.fetch_add(1, Ordering::Release);
        entries
    }
}

fn notify<V>(listeners: &[Listener<V>], before: Option<Arc<V>>, after: Option<Arc<V>>) {
    let change = Change { before, after };
    for listener in listeners {
        listener(&change);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::stream;
    use k8s_openapi::api::core::v1::Node;
    use kube::Resource as _;

    use super::*;
    use crate::view::{NodeView, SlimNode};

    fn node(name: &str, version: &str) -> SlimNode {
        let mut node = Node::default();
        node.metadata.name = Some(name.into());
        node.metadata.resource_version = Some(version.into());
        node.into()
    }

    async fn followed(events: Vec<Event<SlimNode>>) -> (Arc<Cache<NodeView>>, Vec<String>) {
        let cache = Cache::<NodeView>::new();
        let log = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&log);
        let version = |view: &Option<Arc<NodeView>>| {
            view.as_ref()
                .map_or("-".to_owned(), |view| view.resource_version.clone())
        };
        let listener: Listener<NodeView> = Box::new(move |change| {
            let name = change
                .after
                .as_ref()
                .or(change.before.as_ref())
                .unwrap()
                .key();
            let line = format!(
                "{name} {}→{}",
                version(&change.before),
                version(&change.after)
            );
            sink.lock().unwrap().push(line);
        });
        let events = stream::iter(events.into_iter().map(Ok));
        cache
            .follow(events, &[listener], &CancellationToken::new())
            .await;
        let log = log.lock().unwrap().clone();
        (cache, log)
    }

    #[tokio::test]
    async fn listeners_get_changes_with_before_and_after() {
        let (cache, log) = followed(vec![
            Event::Init,
            Event::InitApply(node("a", "1")),
            Event::InitApply(node("b", "2")),
            Event::InitDone,
            Event::Apply(node("a", "3")),
            Event::Delete(node("b", "4")),
        ])
        .await;
        assert_eq!(log, ["a -→1", "b -→2", "a 1→3", "b 2→-"]);
        assert_eq!(cache.len(), 1);
        assert!(cache.has_synced());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_whole_again_with_the_next_event_or_after_a_while_without_another_failure() {
        let failed = || Err(watcher::Error::NoResourceVersion);
        let list = || vec![Ok(Event::Init), Ok(Event::InitDone)];
        let joined =
            |first: Vec<_>, second: Vec<_>| -> Vec<_> { first.into_iter().chain(second).collect() };
        let start = Instant::now();
        for (case, events, now, later) in [
            ("never listed", vec![Ok(Event::Init)], false, false),
            ("listed", list(), true, true),
            ("failed", joined(list(), vec![failed()]), false, true),
            (
                "failed, and being listed",
                joined(list(), vec![failed(), Ok(Event::InitApply(node("a", "1")))]),
                false,
                true,
            ),
            (
                "failed, and goes on",
                joined(list(), vec![failed(), Ok(Event::Apply(node("a", "1")))]),
                true,
                true,
            ),
        ] {
            let cache = Cache::<NodeView>::new();
            let stop = CancellationToken::new();
            cache.follow(stream::iter(events), &[], &stop).await;
            assert_eq!(cache.whole_since().is_some(), now, "{case}");
            tokio::time::advance(REPAIRED_AFTER).await;
            assert_eq!(cache.whole_since().is_some(), later, "{case}");
            assert!(
                cache.whole_since().is_none_or(|since| since >= start),
                "{case}"
            );
        }
    }

    #[tokio::test]
    async fn listeners_get_what_happened_while_the_watch_was_lost() {
        let (cache, log) = followed(vec![
            Event::Init,
            Event::InitApply(node("a", "1")),
            Event::InitApply(node("b", "2")),
            Event::InitDone,
            Event::Init,
            Event::InitApply(node("b", "5")),
            Event::InitApply(node("c", "6")),
            Event::InitDone,
        ])
        .await;
        assert_eq!(log[2..], ["b 2→5", "c -→6", "a 1→-"]);
        assert!(cache.get("a").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_as_old_as_it_is_here_and_all_of_a_list_as_old_as_its_first() {
        let second = Duration::from_secs(1);
        let node = |name: &str, uid: &str| {
            let mut node = node(name, "1");
            node.meta_mut().uid = Some(uid.into());
            node
        };
        let start = Instant::now();
        // One event a second, the first at second 1.
        let events = vec![
            Event::Init,
            Event::InitApply(node("a", "1")),
            Event::InitApply(node("b", "2")),
            Event::InitDone,
            Event::Apply(node("a", "1")),
            Event::Apply(node("b", "3")),
            Event::Init,
            Event::InitApply(node("a", "1")),
            Event::InitApply(node("b", "4")),
            Event::InitApply(node("c", "5")),
            Event::InitDone,
        ];
        let events = stream::iter(events).then(async |event| {
            tokio::time::sleep(second).await;
            Ok(event)
        });
        let cache = Cache::<NodeView>::new();
        let seen = |name: &str| {
            let node = cache.get(name).unwrap();
            (cache.first_seen(&node).unwrap() - start).as_secs()
        };
        let never = CancellationToken::new();
        let follow = cache.follow(events, &[], &never);
        let check = async {
            tokio::time::sleep(second * 4 + second / 2).await;
            assert_eq!([seen("a"), seen("b")], [2, 2], "the first list");
            let old = cache.get("b").unwrap();
            tokio::time::sleep(second * 2).await;
            assert_eq!([seen("a"), seen("b")], [2, 6], "changed, and recreated");
            assert_eq!(cache.first_seen(&old), None, "it is not here any more");
        };
        futures::join!(follow, check);
        assert_eq!(
            [seen("a"), seen("b"), seen("c")],
            [2, 8, 8],
            "the next list"
        );
    }

    #[tokio::test]
    async fn half_a_list_changes_nothing() {
        let (cache, log) = followed(vec![
            Event::Init,
            Event::InitApply(node("a", "1")),
            Event::InitDone,
            Event::Init,
            Event::InitApply(node("b", "5")),
        ])
        .await;
        assert_eq!(log.len(), 1);
        assert!(cache.get("a").is_some() && cache.get("b").is_none());
    }
}
