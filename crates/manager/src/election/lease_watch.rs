//! Watches the lease, in addition to polling.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::background::BackgroundTasks;
use super::record::Record;
use super::store::{LeaseStore, StoreError};
use crate::log_messages::LEASE_WATCH_FORBIDDEN;

/// The states of the lease from the watch; only the latest counts.
pub(super) struct LeaseWatch {
    latest: watch::Receiver<Option<Record>>,
    _watching: Option<AbortOnDropHandle<()>>,
}

impl LeaseWatch {
    /// Starts to watch.
    pub(super) fn start(
        store: Arc<dyn LeaseStore>,
        retry_period: Duration,
        background: &BackgroundTasks,
    ) -> Self {
        let (sender, latest) = watch::channel(None);
        let watching = background.spawn(keep_watching(store, retry_period, sender));
        Self {
            latest,
            _watching: Some(AbortOnDropHandle::new(watching)),
        }
    }

    /// Never reports a state.
    pub(super) fn none() -> Self {
        Self {
            latest: watch::channel(None).1,
            _watching: None,
        }
    }

    /// The next state. `None` means that the lease was deleted.
    pub(super) async fn next(&mut self) -> Option<Record> {
        if self.latest.changed().await.is_err() {
            // The watch is over for good; polling continues.
            std::future::pending::<()>().await;
        }
        self.latest.borrow_and_update().clone()
    }
}

/// Restarts the watch whenever a connection ends, until it is forbidden.
async fn keep_watching(
    store: Arc<dyn LeaseStore>,
    retry_period: Duration,
    sender: watch::Sender<Option<Record>>,
) {
    let on_change = |record| {
        sender.send_replace(record);
    };
    loop {
        let began = Instant::now();
        match store.watch(&on_change).await {
            Ok(()) => {}
            Err(StoreError::Forbidden(reason)) => {
                warn!(err = reason, "{LEASE_WATCH_FORBIDDEN}");
                return;
            }
            Err(error) => debug!(err = %error, "watch of the lease failed"),
        }
        // After a connection that lasted, it reconnects at once; after one that failed, it waits, to be no load.
        if began.elapsed() < retry_period {
            tokio::time::sleep(retry_period).await;
        }
    }
}
