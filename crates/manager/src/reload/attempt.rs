//! One attempt with new settings: build, and prove.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudProvider, ScopeFingerprint};
use cloudkeel_controllers::clouds::Cloud;
use futures::FutureExt as _;
use tracing::warn;

use super::{Build, Built};
use crate::config::CloudEntry;

/// How long a new provider may take to be built and to prove itself.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long the calls of a provider that was replaced may take before its sessions are ended anyway.
const LAST_CALLS: Duration = Duration::from_mins(5);

/// Builds a provider and lets it prove itself with one cheap read.
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
    // The provider in use works: nothing that a new one does may end the process.
    let contained = AssertUnwindSafe(proven).catch_unwind();
    match tokio::time::timeout(PATIENCE, contained).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_panic)) => Err("the provider panicked".to_owned()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

/// Says so if the new credential sees another world: the lifecycle controller deletes nothing until
/// something known is seen in it.
pub(super) fn tell_scope(cloud: &Cloud, now: &ScopeFingerprint) {
    let Some(seen) = cloud.inventory.latest() else {
        return;
    };
    let was = seen.sweep.scope();
    if was != now {
        warn!(cloud = cloud.name, %was, %now, "the new credential sees another scope");
    }
}

/// Ends the sessions of a provider that was replaced, after its last call.
pub(super) fn retire(provider: Arc<dyn CloudProvider>) {
    tokio::spawn(async move {
        let idle = async {
            while Arc::strong_count(&provider) > 1 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let _ = tokio::time::timeout(LAST_CALLS, idle).await;
        provider.close().await;
    });
}
