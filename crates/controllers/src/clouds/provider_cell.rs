//! The provider of a cloud, which can be replaced while it is in use: credentials rotate, configurations
//! change.

use std::sync::Arc;

use cloudkeel_api::CloudProvider;
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::Instant;

/// Holds the provider in use. A caller takes it once per operation, so that an operation is finished by the
/// provider that began it.
pub struct ProviderCell {
    /// The provider, and since when it is in use.
    current: RwLock<(Arc<dyn CloudProvider>, Instant)>,
    replacements: watch::Sender<u64>,
}

impl ProviderCell {
    /// Begins with this provider.
    pub fn new(provider: Arc<dyn CloudProvider>) -> Self {
        Self {
            current: RwLock::new((provider, Instant::now())),
            replacements: watch::Sender::new(0),
        }
    }

    /// The provider in use right now.
    pub fn current(&self) -> Arc<dyn CloudProvider> {
        Arc::clone(&self.current.read().0)
    }

    /// Since when the provider in use is so. What began earlier may have been done by another.
    pub fn in_use_since(&self) -> Instant {
        self.current.read().1
    }

    /// From now on this one. Returns its predecessor, which finishes the calls that it has begun.
    pub fn replace(&self, provider: Arc<dyn CloudProvider>) -> Arc<dyn CloudProvider> {
        let now = (provider, Instant::now());
        let (before, _) = std::mem::replace(&mut *self.current.write(), now);
        self.replacements.send_modify(|count| *count += 1);
        before
    }

    /// How often it was replaced.
    pub fn version(&self) -> u64 {
        *self.replacements.borrow()
    }

    /// Changes with every replacement.
    pub fn replacements(&self) -> watch::Receiver<u64> {
        self.replacements.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl CloudProvider for Named {
        fn name(&self) -> &str {
            self.0
        }
    }

    #[tokio::test]
    async fn a_caller_keeps_the_provider_it_took_and_sees_that_it_was_replaced() {
        let cell = ProviderCell::new(Arc::new(Named("first")));
        let mut replacements = cell.replacements();
        let taken = cell.current();
        let before = cell.replace(Arc::new(Named("second")));
        assert!(Arc::ptr_eq(&taken, &before));
        assert_eq!(taken.name(), "first");
        assert_eq!(cell.current().name(), "second");
        replacements.changed().await.unwrap();
        assert_eq!((*replacements.borrow(), cell.version()), (1, 1));
    }
}
