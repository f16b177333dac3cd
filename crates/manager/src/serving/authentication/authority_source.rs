//! Where the authorities of client certificates come from, and following them when they change.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::certificate::Authorities;
use super::front_proxy::FrontProxy;
use crate::serving::ServingError;

/// Before a source that failed is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What a source holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaContent {
    /// Certificates of authorities, in PEM.
    pub bundle: String,
    /// The headers of front proxies, if these are authorities of front proxies.
    pub front_proxy: FrontProxy,
}

/// Where authorities come from.
#[async_trait]
pub trait CaSource: Send + Sync {
    /// What to call it: a path, a `ConfigMap`.
    fn name(&self) -> String;

    /// What is in it now; `None` if there is nothing yet.
    async fn read(&self) -> Result<Option<CaContent>, String>;

    /// Returns when it may have changed since the last call.
    async fn changed(&self);
}

/// What to do when a source cannot be read at start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtStart {
    MustBeReadable(&'static str),
    MayFail,
}

/// Authorities in use.
#[derive(Debug, Clone)]
pub(super) struct Trust {
    pub(super) authorities: Authorities,
    pub(super) front_proxy: FrontProxy,
}

/// The latest authorities of a source; `None` as long as there were none.
pub(super) type Followed = watch::Receiver<Option<Arc<Trust>>>;

/// Reads a source and follows it until `stop`. Whatever goes wrong later, the last good authorities stay.
pub(super) async fn follow(
    source: Arc<dyn CaSource>,
    at_start: AtStart,
    stop: CancellationToken,
) -> Result<Followed, ServingError> {
    let (sender, receiver) = watch::channel(None);
    let mut follower = Follower {
        source,
        sender,
        content: None,
        told: None,
    };
    match (follower.update().await, at_start) {
        (Err(reason), AtStart::MustBeReadable(hint)) => {
            return Err(ServingError::Authorities {
                origin: follower.source.name(),
                reason,
                hint,
            });
        }
        (Err(reason), AtStart::MayFail) => follower.complain(reason),
        (Ok(()), _) => {}
    }
    tokio::spawn(async move { stop.run_until_cancelled(follower.run()).await });
    Ok(receiver)
}

struct Follower {
    source: Arc<dyn CaSource>,
    sender: watch::Sender<Option<Arc<Trust>>>,
    content: Option<CaContent>,
    told: Option<String>,
}

impl Follower {
    async fn run(mut self) {
        loop {
            match self.told {
                None => self.source.changed().await,
                Some(_) => {
                    let _ = tokio::time::timeout(RETRY_AFTER, self.source.changed()).await;
                }
            }
            match self.update().await {
                Ok(()) => self.told = None,
                Err(reason) => self.complain(reason),
            }
        }
    }

    async fn update(&mut self) -> Result<(), String> {
        let content = self.source.read().await?;
        let Some(content) = content.filter(|content| self.content.as_ref() != Some(content)) else {
            return Ok(());
        };
        let authorities = Authorities::parse(&content.bundle)?;
        tracing::info!(
            from = self.source.name(),
            "authorities of client certificates loaded"
        );
        self.sender.send_replace(Some(Arc::new(Trust {
            authorities,
            front_proxy: content.front_proxy.clone(),
        })));
        self.content = Some(content);
        Ok(())
    }

    /// Says what is wrong, once.
    fn complain(&mut self, reason: String) {
        if self.told.as_ref() != Some(&reason) {
            tracing::warn!(
                from = self.source.name(),
                reason,
                "authorities of client certificates cannot be read, the last good ones stay"
            );
            self.told = Some(reason);
        }
    }
}
