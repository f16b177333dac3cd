//! Tries new settings: builds a provider and tests it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudProvider, ScopeFingerprint};
use cloudkeel_controllers::clouds::Cloud;
use futures::FutureExt as _;
use tracing::warn;

use super::{Build, Built};
use crate::config::CloudEntry;
use crate::log_messages::SCOPE_CHANGED;

/// How long building and testing a new provider may take.
const BUILD_TIMEOUT: Duration = Duration::from_mins(1);

/// How long the calls of a replaced provider may take before its sessions are closed anyway.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);

/// Builds a provider and tests it with one cheap read.
pub(super) async fn attempt(
    build: &dyn Build,
    entry: &CloudEntry,
) -> Result<(Built, ScopeFingerprint), String> {
    let proven = async {
        let built = build
            .build(entry)
            .await
            .map_err(|error| error.to_string())?;
        match built.provider.check().await {
            Ok(scope) => Ok((built, scope)),
            Err(error) => {
                built.provider.close().await;
                Err(format!("the cloud does not accept them: {error}"))
            }
        }
    };
    // The provider in use works: a panic of the new one must not end the process.
    let contained = AssertUnwindSafe(proven).catch_unwind();
    match tokio::time::timeout(BUILD_TIMEOUT, contained).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_panic)) => Err("the provider panicked".to_owned()),
        Err(_) => Err(format!("no response within {} s", BUILD_TIMEOUT.as_secs())),
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
