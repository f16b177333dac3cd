//! Watching the lease besides polling it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::record::Record;
use super::store::{LeaseStore, StoreError};

/// States of the lease as the watch tells them; only the latest counts.
pub(super) struct Sightings {
    latest: watch::Receiver<Option<Record>>,
    _watching: Option<AbortOnDropHandle<()>>,
}

impl Sightings {
    /// Starts to watch.
    pub(super) fn start(store: Arc<dyn LeaseStore>, retry_period: Duration) -> Self {
        let (sender, latest) = watch::channel(None);
        let watching = tokio::spawn(keep_watching(store, retry_period, sender));
        Self {
            latest,
            _watching: Some(AbortOnDropHandle::new(watching)),
        }
    }

    /// Sees nothing, ever.
    pub(super) fn none() -> Self {
        Self {
            latest: watch::channel(None).1,
            _watching: None,
        }
    }

    /// The next state. `None` means that the lease was deleted.
    pub(super) async fn next(&mut self) -> Option<Record> {
        if self.latest.changed().await.is_err() {
            // The watch is over for good; polling goes on.
            std::future::pending::<()>().await;
        }
        self.latest.borrow_and_update().clone()
    }
}

/// Watches again whenever a connection ends, until that is forbidden.
async fn keep_watching(
    store: Arc<dyn LeaseStore>,
    retry_period: Duration,
    sender: watch::Sender<Option<Record>>,
) {
    let tell = |record| {
        sender.send_replace(record);
    };
    loop {
        let began = Instant::now();
        match store.watch(&tell).await {
            Ok(()) => {}
            Err(StoreError::Forbidden(reason)) => {
                warn!(
                    reason,
                    "the lease cannot be watched, only polled: fail-over takes a few seconds longer"
                );
                return;
            }
            Err(error) => debug!(%error, "the watch of the lease failed"),
        }
        // A connection that lived may be renewed at once; one that did not must not be a load.
        if began.elapsed() < retry_period {
            tokio::time::sleep(retry_period).await;
        }
    }
}
