//! Tries new settings: builds a provider and tests it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudProvider, ErrorKind, RegistryError, ScopeFingerprint};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::runtime::panic_text;
use futures::FutureExt as _;
use tracing::warn;

use super::{Build, Built};
use crate::config::CloudEntry;
use crate::log_messages::SCOPE_CHANGED;

/// How long building and testing a new provider may take.
const BUILD_TIMEOUT: Duration = Duration::from_mins(1);

/// How long the calls of a replaced provider may take before its sessions are closed anyway.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// Why a provider could not be built, or does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) kind: ErrorKind,
    pub(crate) why: String,
    /// Whether the settings are wrong, whatever the cloud answers.
    pub(crate) is_final: bool,
}

impl Failed {
    fn new(kind: ErrorKind, why: impl Into<String>) -> Self {
        Self {
            kind,
            why: why.into(),
            is_final: false,
        }
    }
}

impl From<RegistryError> for Failed {
    fn from(error: RegistryError) -> Self {
        match error.cloud_error() {
            Some(cause) => Self::new(cause.kind(), error.to_string()),
            None => Self {
                is_final: true,
                ..Self::new(ErrorKind::Invalid, error.to_string())
            },
        }
    }
}

/// Builds a provider and tests it with one cheap read.
pub(super) async fn attempt(
    build: &dyn Build,
    entry: &CloudEntry,
) -> Result<(Built, ScopeFingerprint), Failed> {
    let proven = async {
        let built = build.build(entry).await?;
        match built.provider.check().await {
            Ok(scope) => Ok((built, scope)),
            Err(error) => {
                built.provider.close().await;
                let why = format!("the cloud does not accept them: {error}");
                Err(Failed::new(error.kind(), why))
            }
        }
    };
    contained(proven, BUILD_TIMEOUT).await
}

/// What comes of building a provider. Another works, or another cloud: a panic must not end the process, nor may it
/// take too long.
pub(crate) async fn contained<T>(
    building: impl Future<Output = Result<T, Failed>>,
    limit: Duration,
) -> Result<T, Failed> {
    let building = AssertUnwindSafe(building).catch_unwind();
    match tokio::time::timeout(limit, building).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => {
            let why = format!("the provider panicked: {}", panic_text(panic.as_ref()));
            Err(Failed::new(ErrorKind::Other, why))
        }
        Err(_) => {
            let why = format!("no response within {} s", limit.as_secs());
            Err(Failed::new(ErrorKind::Timeout, why))
        }
    }
}

/// Warns if the new credential has another scope: the lifecycle controller then deletes nothing until it shows a
/// known instance.
pub(super) fn warn_if_scope_changed(cloud: &Cloud, now: &ScopeFingerprint) {
    let Some(seen) = cloud.inventory.latest() else {
        return;
    };
    let was = seen.list.scope();
    if was != now {
        warn!(cloud = cloud.name, %was, %now, "{SCOPE_CHANGED}");
    }
}

/// Closes the sessions of a replaced provider, after its last call.
pub(super) fn close_when_idle(provider: Arc<dyn CloudProvider>) {
    tokio::spawn(async move {
        let idle = async {
            while Arc::strong_count(&provider) > 1 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let _ = tokio::time::timeout(IDLE_TIMEOUT, idle).await;
        provider.close().await;
    });
}
