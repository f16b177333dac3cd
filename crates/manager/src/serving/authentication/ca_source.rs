//! Where client CAs come from, and how they are reloaded when they change.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_controllers::runtime::restart_after_panics;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::client_certificate::CaBundle;
use super::front_proxy::FrontProxy;
use crate::log_messages::CLIENT_CA_UNAVAILABLE;
use crate::serving::ServingError;

/// The wait before a failed source is read again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The content of a source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaContent {
    /// CA certificates, in PEM.
    pub bundle: String,
    /// The headers of front proxies, if this is the CA of front proxies.
    pub front_proxy: FrontProxy,
}

/// A source of CA certificates.
#[async_trait]
pub trait CaSource: Send + Sync {
    /// Its name for people: a path, a `ConfigMap`.
    fn name(&self) -> String;

    /// Its content now; `None` if there is none yet.
    async fn read(&self) -> Result<Option<CaContent>, String>;

    /// Returns when it may have changed since the last call.
    async fn changed(&self);
}

/// What to do when a source cannot be read at startup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtStartup {
    Required(&'static str),
    Optional,
}

/// CA certificates in use.
#[derive(Debug, Clone)]
pub(super) struct TrustedCas {
    pub(super) authorities: CaBundle,
    pub(super) front_proxy: FrontProxy,
}

/// The latest content of a source; `None` until there is some.
pub(super) type CaReceiver = watch::Receiver<Option<Arc<TrustedCas>>>;

/// Reads a source and watches it until `stop`. If it fails later, the last good content stays in use.
pub(super) async fn watch_ca(
    source: Arc<dyn CaSource>,
    at_start: AtStartup,
    stop: CancellationToken,
) -> Result<CaReceiver, ServingError> {
    let (sender, receiver) = watch::channel(None);
    let mut watcher = CaWatcher {
        source,
        sender,
        content: None,
        is_current: false,
        reported: None,
    };
    match (watcher.update().await, at_start) {
        (Err(reason), AtStartup::Required(hint)) => {
            return Err(ServingError::ClientCa {
                origin: watcher.source.name(),
                reason,
                hint,
            });
        }
        (Err(reason), AtStartup::Optional) => watcher.report_failure(reason),
        (Ok(()), _) => watcher.is_current = true,
    }
    tokio::spawn(async move {
        let watcher = tokio::sync::Mutex::new(watcher);
        let run = || async { watcher.lock().await.run().await };
        let running = restart_after_panics("client CAs", |_| (), run);
        stop.run_until_cancelled(running).await
    });
    Ok(receiver)
}

struct CaWatcher {
    source: Arc<dyn CaSource>,
    sender: watch::Sender<Option<Arc<TrustedCas>>>,
    content: Option<CaContent>,
    /// Whether the content is the source's as of its last change: neither a failure nor a panic came between.
    is_current: bool,
    reported: Option<String>,
}

impl CaWatcher {
    async fn run(&mut self) {
        loop {
            if self.is_current {
                self.source.changed().await;
            } else {
                let _ = tokio::time::timeout(RETRY_AFTER, self.source.changed()).await;
            }
            self.is_current = false;
            match self.update().await {
                Ok(()) => {
                    self.is_current = true;
                    self.reported = None;
                }
                Err(reason) => self.report_failure(reason),
            }
        }
    }

    async fn update(&mut self) -> Result<(), String> {
        let content = self.source.read().await?;
        let Some(content) = content.filter(|content| self.content.as_ref() != Some(content)) else {
            return Ok(());
        };
        let authorities = CaBundle::parse(&content.bundle)?;
        tracing::info!(source = self.source.name(), "loaded client CA");
        self.sender.send_replace(Some(Arc::new(TrustedCas {
            authorities,
            front_proxy: content.front_proxy.clone(),
        })));
        self.content = Some(content);
        Ok(())
    }

    /// Logs the failure, once per cause.
    fn report_failure(&mut self, reason: String) {
        if self.reported.as_ref() != Some(&reason) {
            tracing::warn!(
                source = self.source.name(),
                err = reason,
                "{CLIENT_CA_UNAVAILABLE}"
            );
            self.reported = Some(reason);
        }
    }
}
