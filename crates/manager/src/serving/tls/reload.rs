//! A certificate that follows its files.

use std::sync::{Arc, PoisonError, RwLock};

use cloudkeel_api::Clock;
use jiff::Timestamp;
use tokio::sync::Mutex;

use super::pair::{Pair, PairBytes, PairFiles};
use super::self_made::SelfMade;
use crate::serving::ServingError;

const NOT_KEPT: &str =
    "the certificate cannot be kept; it is served from memory until the next start";

/// Where a certificate comes from.
#[derive(Debug)]
enum Origin {
    Given(PairFiles),
    SelfMade(SelfMade),
}

impl Origin {
    fn files(&self) -> Option<&PairFiles> {
        match self {
            Self::Given(files) => Some(files),
            Self::SelfMade(recipe) => recipe.files(),
        }
    }
}

/// What became of a new certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum News {
    /// It is served now.
    Taken {
        /// Until when it is good.
        expires: Timestamp,
    },
    /// It cannot be used, and the old one stays.
    Refused {
        /// What is wrong with it.
        why: String,
    },
}

/// A certificate in use. [`Reloading::refresh`] replaces it when its files have changed or its time is
/// near; whatever fails, the present one stays in use.
#[derive(Debug)]
pub(super) struct Reloading {
    origin: Origin,
    current: RwLock<Arc<Pair>>,
    memory: Mutex<Memory>,
}

/// What was tried last, so that the same failure is told once.
#[derive(Debug)]
struct Memory {
    seen: PairBytes,
    /// What is wrong with it.
    broken: Option<String>,
    /// The trouble that was told last.
    told: Option<String>,
}

impl Reloading {
    /// Serves the given files.
    pub(super) async fn given(files: PairFiles) -> Result<Self, ServingError> {
        let refuse = |reason| ServingError::Pair {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            reason,
        };
        let bytes = files.read().await.map_err(refuse)?;
        let pair = bytes.parse().map_err(refuse)?;
        Ok(Self::with(Origin::Given(files), bytes, pair))
    }

    /// Serves a certificate of our own: the one kept from an earlier start if it is still good, else a
    /// new one. A foreign certificate in our place is served, never overwritten. One that cannot be kept,
    /// on a full disk, serves as well: nobody shall go without a manager for that.
    pub(super) async fn self_made(
        recipe: SelfMade,
        clock: &dyn Clock,
    ) -> Result<Self, ServingError> {
        if let Some((bytes, pair)) = kept(&recipe).await?
            && !is_due(&pair, clock.now())
        {
            return Ok(Self::with(Origin::SelfMade(recipe), bytes, pair));
        }
        let failed = |reason| ServingError::SelfMade { reason };
        let bytes = recipe.make(clock.now()).map_err(failed)?;
        let pair = bytes.parse().map_err(failed)?;
        let recipe = match recipe.keep(&bytes) {
            Ok(()) => recipe,
            Err(why) => {
                tracing::warn!(why, "{NOT_KEPT}");
                recipe.in_memory()
            }
        };
        Ok(Self::with(Origin::SelfMade(recipe), bytes, pair))
    }

    fn with(origin: Origin, bytes: PairBytes, pair: Pair) -> Self {
        Self {
            origin,
            current: RwLock::new(Arc::new(pair)),
            memory: Mutex::new(Memory {
                seen: bytes,
                broken: None,
                told: None,
            }),
        }
    }

    /// The certificate to serve now.
    pub(super) fn current(&self) -> Arc<Pair> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Looks whether there is a new certificate, and takes it if it is good. The same trouble is news once.
    pub(super) async fn refresh(&self, clock: &dyn Clock) -> Option<News> {
        let mut memory = self.memory.lock().await;
        match self.newer(&mut memory, clock.now()).await {
            Ok(None) => {
                memory.told = None;
                None
            }
            Ok(Some(pair)) => {
                memory.told = None;
                let expires = pair.about.expires;
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = Arc::new(pair);
                Some(News::Taken { expires })
            }
            Err(why) if memory.told.as_ref() == Some(&why) => None,
            Err(why) => {
                memory.told = Some(why.clone());
                Some(News::Refused { why })
            }
        }
    }

    async fn newer(&self, memory: &mut Memory, now: Timestamp) -> Result<Option<Pair>, String> {
        if let Origin::SelfMade(recipe) = &self.origin
            && is_due(&self.current(), now)
        {
            let bytes = recipe.make(now)?;
            let pair = bytes.parse()?;
            match recipe.keep(&bytes) {
                Ok(()) => {
                    memory.seen = bytes;
                    memory.broken = None;
                }
                // The files stay as they were seen, so that only a change of them counts.
                Err(why) => tracing::warn!(why, "{NOT_KEPT}"),
            }
            return Ok(Some(pair));
        }
        let Some(files) = self.origin.files() else {
            return Ok(None);
        };
        let bytes = files.read().await?;
        if memory.seen == bytes {
            return memory.broken.clone().map_or(Ok(None), Err);
        }
        let parsed = bytes.parse().map_err(|reason| {
            format!(
                "{} with {}: {reason}",
                files.certificate.display(),
                files.key.display()
            )
        });
        memory.seen = bytes;
        memory.broken = parsed.as_ref().err().cloned();
        parsed.map(Some)
    }
}

fn is_due(pair: &Pair, now: Timestamp) -> bool {
    SelfMade::is_due(pair.about.organization.as_deref(), pair.about.expires, now)
}

/// The certificate of an earlier start, if there is one. Half a pair, or one that cannot be read, is for a
/// person to look at.
async fn kept(recipe: &SelfMade) -> Result<Option<(PairBytes, Pair)>, ServingError> {
    let Some(files) = recipe.files() else {
        return Ok(None);
    };
    if !files.certificate.exists() && !files.key.exists() {
        return Ok(None);
    }
    let refuse = |reason| ServingError::Pair {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        reason,
    };
    let bytes = files.read().await.map_err(refuse)?;
    let pair = bytes.parse().map_err(refuse)?;
    Ok(Some((bytes, pair)))
}
