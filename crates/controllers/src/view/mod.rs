//! Views of Kubernetes objects: only the fields that some controller uses.
//!
//! A Node as the API server sends it has images, volumes and managed fields that are twenty times as large as
//! everything that a cloud-controller-manager reads.

mod node;
mod original;
mod service;
mod slim_node;

pub use node::{NodeView, Readiness, version_of};
pub(crate) use original::Base64;
pub use original::Original;
pub use service::ServiceView;
pub use slim_node::SlimNode;

use std::sync::Arc;

/// A Kubernetes object that is watched, and the part of it that is kept.
pub trait View: Sized + Send + Sync + 'static {
    /// The object.
    type Object: Clone + Send + 'static;

    /// What people call such objects.
    const KIND: &'static str;

    /// Keeps what is used.
    fn of(object: &Self::Object) -> Self;

    /// The key it is filed under: its name, or `namespace/name`.
    fn key(&self) -> String;

    /// Whether it is what was filed under this key before, and not its successor.
    fn continues(&self, before: &Self) -> bool;
}

/// A change of one object, as the watch showed it. Both are set for an update; only `before` for a
/// deletion; only `after` for an object that is new here.
#[derive(Debug)]
pub struct Change<V> {
    /// How it was.
    pub before: Option<Arc<V>>,
    /// How it is.
    pub after: Option<Arc<V>>,
}

impl<V: View> Change<V> {
    /// What was here and does not go on: it was deleted, or something else has taken its place.
    pub fn replaced(&self) -> Option<&Arc<V>> {
        let before = self.before.as_ref()?;
        let goes_on = self.after.as_ref().is_some_and(|it| it.continues(before));
        (!goes_on).then_some(before)
    }
}

impl Change<NodeView> {
    /// The Node that is no more: it was deleted, or another has its name by now.
    pub fn gone(&self) -> Option<&Arc<NodeView>> {
        let before = self.before.as_ref()?;
        let is_same = |after: &Arc<NodeView>| after.facts.uid == before.facts.uid;
        (!self.after.as_ref().is_some_and(is_same)).then_some(before)
    }
}
