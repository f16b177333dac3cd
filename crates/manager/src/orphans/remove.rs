//! Removes what was found, a few at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_api::{
    BalancerRef, CloudError, CloudProvider, DesiredState, LockKey, Outcome, Retry, Route,
    RouteChange, ServiceRef,
};
use cloudkeel_controllers::clouds::Cloud;
use futures::StreamExt as _;
use serde::Serialize;

use super::{Removal, RemovalTarget};

/// How many are removed at once.
const AT_ONCE: usize = 4;
/// How often a removal is tried until the cloud shows nothing any more.
const MOST_TRIES: u32 = 100;
/// How often a failure is tried again, and after how long.
const MOST_FAILURES: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What became of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemovalResult {
    /// The cloud.
    pub(crate) cloud: String,
    /// What was to be removed.
    pub(crate) object: String,
    /// Why it was not; `None` if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// What removals need.
pub(crate) struct RemovalParts<'a> {
    pub(crate) clouds: &'a [Arc<Cloud>],
    /// Whether a Service is there now, as the API server says. `None` if it does not matter.
    pub(crate) is_wanted: Option<&'a (dyn ServiceCheck + 'a)>,
    /// Reports each result at once.
    pub(crate) on_result: &'a (dyn Fn(&RemovalResult) + Sync),
}

/// Asks the API server about a Service.
#[async_trait::async_trait]
pub(crate) trait ServiceCheck: Sync {
    /// Whether the Service with this UID is there.
    async fn exists(&self, service: &ServiceRef) -> Result<bool, String>;
}

/// Removes all of these, a few at a time. One that fails does not keep the others from being removed.
pub(crate) async fn remove_all(
    removals: &[Removal],
    parts: &RemovalParts<'_>,
) -> Vec<RemovalResult> {
    let locks = Locks::default();
    let removing = removals.iter().map(|removal| {
        let locks = &locks;
        async move {
            let removed = remove(removal, parts, locks).await;
            let result = RemovalResult {
                cloud: removal.cloud.clone(),
                object: removal.object(),
                error: removed.err(),
            };
            (parts.on_result)(&result);
            result
        }
    });
    let removing: Vec<_> = removing.collect();
    futures::stream::iter(removing)
        .buffered(AT_ONCE)
        .collect()
        .await
}

async fn remove(removal: &Removal, parts: &RemovalParts<'_>, locks: &Locks) -> Result<(), String> {
    let mut clouds = parts.clouds.iter();
    let cloud = clouds.find(|cloud| cloud.name == removal.cloud);
    let provider = cloud.ok_or("the cloud is not configured")?.provider();
    match &removal.target {
        RemovalTarget::Service(balancer_ref) => {
            remove_of_service(&provider, balancer_ref, parts, locks).await
        }
        RemovalTarget::Route(route) => remove_route(&provider, route).await,
    }
}

async fn remove_of_service(
    provider: &Arc<dyn CloudProvider>,
    balancer_ref: &BalancerRef,
    parts: &RemovalParts<'_>,
    locks: &Locks,
) -> Result<(), String> {
    let balancers = provider
        .load_balancers()
        .ok_or("the cloud has no load balancers")?;
    let _guards = locks.acquire(balancers.lock_keys(balancer_ref)).await;
    let mut failures = 0;
    for _ in 0..MOST_TRIES {
        // Right before each change: a Service may have come back, as from a backup.
        if let Some(services) = parts.is_wanted
            && services.exists(&balancer_ref.service).await?
        {
            return Err("the Service is there again".to_owned());
        }
        let pause = match balancers.apply(DesiredState::Absent(balancer_ref)).await {
            Ok(Outcome::Gone { kept, .. }) if kept.is_empty() => return Ok(()),
            Ok(Outcome::Gone { kept, .. }) => return Err(format!("kept: {}", kept.join(", "))),
            Ok(Outcome::Pending { check_after, .. }) => check_after,
            Ok(Outcome::Settled { .. } | Outcome::Incomplete { .. }) => RETRY_AFTER,
            Err(error) => {
                failures += 1;
                retry_after(&error)
                    .filter(|_| failures < MOST_FAILURES)
                    .ok_or_else(|| error.to_string())?
            }
        };
        tokio::time::sleep(pause).await;
    }
    Err("the cloud still shows it".to_owned())
}

async fn remove_route(provider: &Arc<dyn CloudProvider>, route: &Route) -> Result<(), String> {
    let routes = provider.routes().ok_or("the cloud has no routes")?;
    let change = [RouteChange::Delete(route.clone())];
    for failures in 1.. {
        let Some(Err(error)) = routes.apply(&change).await.pop() else {
            return Ok(());
        };
        let pause = retry_after(&error).filter(|_| failures < MOST_FAILURES);
        tokio::time::sleep(pause.ok_or_else(|| error.to_string())?).await;
    }
    Ok(())
}

/// How soon to try again; `None` if that is in vain.
fn retry_after(error: &CloudError) -> Option<Duration> {
    match error.retry() {
        Retry::After(delay) => Some(delay),
        Retry::Backoff => Some(RETRY_AFTER),
        Retry::UserAction | Retry::Never => None,
    }
}

/// Services that share a resource are worked on one after the other.
#[derive(Default)]
struct Locks(Mutex<BTreeMap<LockKey, Arc<tokio::sync::Mutex<()>>>>);

impl Locks {
    fn lock_of(&self, key: LockKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(key).or_default())
    }

    /// All of them, in their order, so that two callers never wait for each other.
    async fn acquire(
        &self,
        keys: impl IntoIterator<Item = LockKey>,
    ) -> Vec<tokio::sync::OwnedMutexGuard<()>> {
        let mut guards = Vec::new();
        for key in keys {
            let lock = self.lock_of(key);
            guards.push(lock.lock_owned().await);
        }
        guards
    }
}
