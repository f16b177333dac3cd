//! A watched collection, kept as views, that tells its listeners what changed.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures::{Stream, StreamExt as _};
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::Brief;
use crate::view::{Change, View};

/// Maps a change to the keys of a queue, and adds them.
pub type Listener<V> = Box<dyn Fn(&Change<V>) + Send + Sync>;

/// So many objects tell what else a list will bring. One page of Nodes.
const HERALDS: usize = 100;

/// The objects of one kind, as the watch last showed them.
pub struct Cache<V> {
    views: RwLock<BTreeMap<String, Arc<V>>>,
    /// The first to come of the first list, until it is whole.
    heralds: watch::Sender<Vec<Arc<V>>>,
    synced: watch::Sender<bool>,
}

impl<V: View> Cache<V> {
    /// An empty cache that has not synced yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            views: RwLock::new(BTreeMap::new()),
            heralds: watch::Sender::default(),
            synced: watch::Sender::new(false),
        })
    }

    /// The object of this key.
    pub fn get(&self, key: &str) -> Option<Arc<V>> {
        self.read().get(key).cloned()
    }

    /// All objects, ordered by key.
    pub fn all(&self) -> Vec<Arc<V>> {
        self.read().values().cloned().collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Whether the first list has been seen whole.
    pub fn has_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits until the first list has been seen whole.
    pub async fn synced(&self) {
        let mut synced = self.synced.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// Waits for the first hundred objects of a first list that is long, and for nothing longer than until it is
    /// whole. What begins early for them must be right whatever else there is: nobody else knows them yet.
    pub async fn heralds(&self) -> Vec<Arc<V>> {
        let mut heralds = self.heralds.subscribe();
        tokio::select! {
            biased;
            () = self.synced() => Vec::new(),
            seen = heralds.wait_for(|seen| seen.len() >= HERALDS) => {
                seen.map(|seen| seen.clone()).unwrap_or_default()
            }
        }
    }

    /// Follows a watch until `stop`, telling `listeners` of every change. A list that replaces the
    /// whole (at the start, or after the watch was lost) is compared with what was known, so nothing
    /// that happened meanwhile is missed.
    pub async fn follow<S>(&self, events: S, listeners: &[Listener<V>], stop: &CancellationToken)
    where
        S: Stream<Item = watcher::Result<Event<V::Object>>>,
    {
        let mut arriving: BTreeMap<String, Arc<V>> = BTreeMap::new();
        let mut broken = false;
        futures::pin_mut!(events);
        loop {
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                event = events.next() => event,
            };
            // That a list begins says only that somebody asks for it.
            if broken && matches!(&event, Some(Ok(seen)) if !matches!(seen, Event::Init)) {
                broken = false;
                info!(of = V::KIND, "watch works again");
            }
            match event {
                None => return,
                Some(Err(error)) => {
                    broken = true;
                    warn!(of = V::KIND, error = %Brief(&error), "watch broken; it is being repaired");
                }
                Some(Ok(Event::Init)) => {
                    arriving.clear();
                    self.heralds.send_replace(Vec::new());
                }
                Some(Ok(Event::InitApply(object))) => {
                    let view = Arc::new(V::of(&object));
                    self.herald(&view);
                    arriving.insert(view.key(), view);
                }
                Some(Ok(Event::InitDone)) => {
                    self.replace(std::mem::take(&mut arriving), listeners);
                    self.synced.send_replace(true);
                    self.heralds.send_replace(Vec::new());
                    debug!(of = V::KIND, objects = self.len(), "watch synced");
                }
                Some(Ok(Event::Apply(object))) => {
                    let view = Arc::new(V::of(&object));
                    let before = self.write().insert(view.key(), Arc::clone(&view));
                    tell(listeners, before, Some(view));
                }
                Some(Ok(Event::Delete(object))) => {
                    let before = self.write().remove(&V::of(&object).key());
                    tell(listeners, before, None);
                }
            }
        }
    }

    fn herald(&self, view: &Arc<V>) {
        let is_first_list = !self.has_synced();
        self.heralds.send_if_modified(|seen| {
            let is_early = is_first_list && seen.len() < HERALDS;
            if is_early {
                seen.push(Arc::clone(view));
            }
            is_early
        });
    }

    fn replace(&self, now: BTreeMap<String, Arc<V>>, listeners: &[Listener<V>]) {
        let mut before = std::mem::replace(&mut *self.write(), now.clone());
        for (key, view) in now {
            tell(listeners, before.remove(&key), Some(view));
        }
        for gone in before.into_values() {
            tell(listeners, Some(gone), None);
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<V>>> {
        self.views.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<V>>> {
        self.views.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell<V>(listeners: &[Listener<V>], before: Option<Arc<V>>, after: Option<Arc<V>>) {
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

    use super::*;
    use crate::view::{NodeView, SlimNode};

    fn node(name: &str, version: &str) -> SlimNode {
        let mut node = Node::default();
        node.metadata.name = Some(name.into());
        node.metadata.resource_version = Some(version.into());
        node.into()
    }

    async fn told(events: Vec<Event<SlimNode>>) -> (Arc<Cache<NodeView>>, Vec<String>) {
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
    async fn changes_are_told_with_before_and_after() {
        let (cache, log) = told(vec![
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

    #[tokio::test]
    async fn what_happened_while_the_watch_was_lost_is_told_afterwards() {
        let (cache, log) = told(vec![
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

    #[tokio::test]
    async fn a_long_first_list_sends_heralds_before_it_is_whole_and_a_short_one_does_not() {
        for (case, listed, whole, heralds) in [
            ("a long list, under way", HERALDS + 20, false, Some(HERALDS)),
            ("a short list, under way", HERALDS - 1, false, None),
            ("a long list, whole", HERALDS + 20, true, Some(0)),
            ("a short list, whole", HERALDS - 1, true, Some(0)),
        ] {
            let begin = std::iter::once(Event::Init);
            let nodes = (0..listed).map(|number| Event::InitApply(node(&number.to_string(), "1")));
            let end = whole.then_some(Event::InitDone);
            let (cache, _) = told(begin.chain(nodes).chain(end).collect()).await;
            let came = futures::FutureExt::now_or_never(cache.heralds());
            assert_eq!(came.map(|seen| seen.len()), heralds, "{case}");
        }
    }

    #[tokio::test]
    async fn half_a_list_changes_nothing() {
        let (cache, log) = told(vec![
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
