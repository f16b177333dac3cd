//! What a controller remembers of Nodes, by UID, and only for as long as the watch shows them.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::view::{Change, NodeView};

/// One record for every Node that the watch shows.
///
/// Only the watch begins and ends records. What a controller learns after an await about a Node that was
/// deleted meanwhile is dropped, because nothing would ever remove it again.
#[derive(Debug)]
pub struct Records<T>(Mutex<BTreeMap<String, T>>);

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> Records<T> {
    /// Follows a change that the watch shows. Returns the record of a Node that is gone.
    pub fn follow(&self, change: &Change<NodeView>) -> Option<T> {
        let mut records = self.0.lock();
        let ended = change
            .gone()
            .and_then(|gone| records.remove(&gone.facts.uid));
        if let Some(node) = &change.after {
            records.entry(node.facts.uid.clone()).or_default();
        }
        ended
    }

    /// Reads or changes the record of a Node. `None` if the Node is gone.
    pub fn with<R>(&self, uid: &str, use_it: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.lock().get_mut(uid).map(use_it)
    }

    /// Reads all records, in the order of UIDs, and keeps what is found in them.
    pub fn find<R>(&self, find: impl FnMut(&T) -> Option<R>) -> Vec<R> {
        self.0.lock().values().filter_map(find).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn node(uid: &str) -> Arc<NodeView> {
        let mut node = NodeView::default();
        node.facts.name = "n".to_owned();
        node.facts.uid = uid.to_owned();
        Arc::new(node)
    }

    #[test]
    fn a_record_lives_as_long_as_its_node() {
        let records = Records::<u32>::default();
        let follow = |before, after| records.follow(&Change { before, after });
        assert_eq!(
            records.with("a", |record| *record = 1),
            None,
            "not seen yet"
        );
        assert_eq!(follow(None, Some(node("a"))), None);
        assert_eq!(records.with("a", |record| *record = 7), Some(()));
        assert_eq!(
            follow(Some(node("a")), Some(node("a"))),
            None,
            "it has only changed"
        );
        assert_eq!(
            follow(Some(node("a")), Some(node("b"))),
            Some(7),
            "recreated"
        );
        assert_eq!(records.with("a", |record| *record = 1), None);
        assert_eq!(records.find(|record| Some(*record)), [0], "its own");
        assert_eq!(follow(Some(node("b")), None), Some(0));
        assert!(records.is_empty());
    }
}
