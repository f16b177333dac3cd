//! A certificate that is reloaded when its files change.

use std::sync::{Arc, PoisonError, RwLock};

use cloudkeel_api::Clock;
use jiff::Timestamp;
use tokio::sync::Mutex;

use super::key_pair::{KeyPairFiles, KeyPairPem, SharedKeyPair, TlsKeyPair};
use super::self_signed::SelfSigned;
use crate::log_messages::CERTIFICATE_NOT_SAVED;
use crate::serving::ServingError;

/// Where a certificate comes from.
#[derive(Debug)]
enum Origin {
    Given(KeyPairFiles),
    SelfSigned(SelfSigned),
    Provided(SharedKeyPair),
}

impl Origin {
    fn files(&self) -> Option<&KeyPairFiles> {
        match self {
            Self::Given(files) => Some(files),
            Self::SelfSigned(recipe) => recipe.files(),
            Self::Provided(_) => None,
        }
    }
}

/// The outcome of a reload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReloadOutcome {
    /// The new certificate is in use.
    Loaded {
        /// When it expires.
        expires: Timestamp,
    },
    /// The new certificate cannot be used, and the current one stays.
    Rejected {
        /// What is wrong with it.
        why: String,
    },
}

/// A certificate in use. [`ReloadingKeyPair::refresh`] replaces it when its files have changed or it is about to
/// expire; if that fails, the current one stays in use.
#[derive(Debug)]
pub(super) struct ReloadingKeyPair {
    origin: Origin,
    current: RwLock<Arc<TlsKeyPair>>,
    state: Mutex<ReloadState>,
}

/// The last attempt, so that the same failure is reported once.
#[derive(Debug)]
struct ReloadState {
    seen: KeyPairPem,
    /// What is wrong with it.
    broken: Option<String>,
    /// The failure that was reported last.
    reported: Option<String>,
}

impl ReloadingKeyPair {
    /// Serves the certificate in these files.
    pub(super) async fn from_files(files: KeyPairFiles) -> Result<Self, ServingError> {
        let refuse = |reason| ServingError::KeyPair {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            reason,
        };
        let bytes = files.read().await.map_err(refuse)?;
        let pair = bytes.parse().map_err(refuse)?;
        Ok(Self::with(Origin::Given(files), bytes, pair))
    }

    /// Serves a self-signed certificate: the saved one if it is still valid, else a new one. A certificate of
    /// another issuer in its place is served and never overwritten. One that cannot be saved, for example on a full
    /// disk, is served from memory: that must not stop the manager.
    pub(super) async fn self_signed(
        recipe: SelfSigned,
        clock: &dyn Clock,
    ) -> Result<Self, ServingError> {
        if let Some((bytes, pair)) = load_saved(&recipe).await?
            && !is_due(&pair, clock.now())
        {
            return Ok(Self::with(Origin::SelfSigned(recipe), bytes, pair));
        }
        let failed = |reason| ServingError::SelfSigned { reason };
        let bytes = recipe.make(clock.now()).map_err(failed)?;
        let pair = bytes.parse().map_err(failed)?;
        let recipe = match recipe.save(&bytes) {
            Ok(()) => recipe,
            Err(why) => {
                tracing::warn!(err = why, "{CERTIFICATE_NOT_SAVED}");
                recipe.in_memory()
            }
        };
        Ok(Self::with(Origin::SelfSigned(recipe), bytes, pair))
    }

    /// Serves what is provided, and until then a certificate of its own, which no client trusts.
    pub(super) fn provided(
        shared: SharedKeyPair,
        recipe: &SelfSigned,
        clock: &dyn Clock,
    ) -> Result<Self, ServingError> {
        let failed = |reason| ServingError::SelfSigned { reason };
        let bytes = recipe.make(clock.now()).map_err(failed)?;
        let pair = bytes.parse().map_err(failed)?;
        Ok(Self::with(Origin::Provided(shared), bytes, pair))
    }

    fn with(origin: Origin, bytes: KeyPairPem, pair: TlsKeyPair) -> Self {
        Self {
            origin,
            current: RwLock::new(Arc::new(pair)),
            state: Mutex::new(ReloadState {
                seen: bytes,
                broken: None,
                reported: None,
            }),
        }
    }

    /// The certificate in use.
    pub(super) fn current(&self) -> Arc<TlsKeyPair> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Checks for a new certificate and uses it if it is valid. The same failure is reported once.
    pub(super) async fn refresh(&self, clock: &dyn Clock) -> Option<ReloadOutcome> {
        let mut state = self.state.lock().await;
        match self.load_newer(&mut state, clock.now()).await {
            Ok(None) => {
                state.reported = None;
                None
            }
            Ok(Some(pair)) => {
                state.reported = None;
                let expires = pair.info.expires;
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = Arc::new(pair);
                Some(ReloadOutcome::Loaded { expires })
            }
            Err(why) if state.reported.as_ref() == Some(&why) => None,
            Err(why) => {
                state.reported = Some(why.clone());
                Some(ReloadOutcome::Rejected { why })
            }
        }
    }

    async fn load_newer(
        &self,
        state: &mut ReloadState,
        now: Timestamp,
    ) -> Result<Option<TlsKeyPair>, String> {
        if let Origin::SelfSigned(recipe) = &self.origin
            && is_due(&self.current(), now)
        {
            let bytes = recipe.make(now)?;
            let pair = bytes.parse()?;
            match recipe.save(&bytes) {
                Ok(()) => {
                    state.seen = bytes;
                    state.broken = None;
                }
                // The recorded content stays, so that only a change of the files counts.
                Err(why) => tracing::warn!(err = why, "{CERTIFICATE_NOT_SAVED}"),
            }
            return Ok(Some(pair));
        }
        if let Origin::Provided(shared) = &self.origin {
            let Some(bytes) = shared.get().filter(|bytes| state.seen != *bytes) else {
                return state.broken.clone().map_or(Ok(None), Err);
            };
            let parsed = bytes.parse();
            state.seen = bytes;
            state.broken = parsed.as_ref().err().cloned();
            return parsed.map(Some);
        }
        let Some(files) = self.origin.files() else {
            return Ok(None);
        };
        let bytes = files.read().await?;
        if state.seen == bytes {
            return state.broken.clone().map_or(Ok(None), Err);
        }
        let parsed = bytes.parse().map_err(|reason| {
            format!(
                "{} with {}: {reason}",
                files.certificate.display(),
                files.key.display()
            )
        });
        state.seen = bytes;
        state.broken = parsed.as_ref().err().cloned();
        parsed.map(Some)
    }
}

fn is_due(pair: &TlsKeyPair, now: Timestamp) -> bool {
    SelfSigned::is_due(pair.info.organization.as_deref(), pair.info.expires, now)
}

/// The saved certificate of an earlier start, if there is one. An incomplete or unreadable pair is an error that an
/// operator has to resolve.
async fn load_saved(recipe: &SelfSigned) -> Result<Option<(KeyPairPem, TlsKeyPair)>, ServingError> {
    let Some(files) = recipe.files() else {
        return Ok(None);
    };
    if !files.certificate.exists() && !files.key.exists() {
        return Ok(None);
    }
    let refuse = |reason| ServingError::KeyPair {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        reason,
    };
    let bytes = files.read().await.map_err(refuse)?;
    let pair = bytes.parse().map_err(refuse)?;
    Ok(Some((bytes, pair)))
}
