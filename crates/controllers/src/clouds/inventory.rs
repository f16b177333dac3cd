//! The last list of a cloud's instances. All callers share it.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{Clock, CloudError, ErrorKind, InstanceList};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::ProviderCell;
use crate::runtime::contain_call;

/// A failure this recent is shared: a cloud in trouble is not asked again by each caller.
const FAILED_LATELY: Duration = Duration::from_secs(2);

/// A finished list, with its place in monotonic time.
#[derive(Debug)]
pub struct Snapshot {
    /// What was seen.
    pub list: InstanceList,
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
}

/// Lists a cloud on request, never twice at once, and keeps the last good answer.
pub struct Inventory {
    provider: Arc<ProviderCell>,
    clock: Arc<dyn Clock>,
    last: Mutex<Last>,
    in_flight: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Last {
    good: Option<Arc<Snapshot>>,
    failure: Option<(Instant, Arc<CloudError>)>,
}

impl Inventory {
    /// Nothing has been seen yet.
    pub fn new(provider: Arc<ProviderCell>, clock: Arc<dyn Clock>) -> Self {
        Self {
            provider,
            clock,
            last: Mutex::default(),
            in_flight: tokio::sync::Mutex::new(()),
        }
    }

    /// The clock by which lists are dated.
    pub fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The last good list, however old.
    pub fn latest(&self) -> Option<Arc<Snapshot>> {
        self.last.lock().good.clone()
    }

    /// Why the last list failed, if it did, and how long ago it began.
    pub fn failure(&self) -> Option<(Duration, Arc<CloudError>)> {
        let last = self.last.lock();
        let (began, error) = last.failure.as_ref()?;
        Some((began.elapsed(), Arc::clone(error)))
    }

    /// A list that ended within `age`, or a new one. All callers share it, also those that come while it is under
    /// way.
    pub async fn no_older_than(&self, age: Duration) -> Result<Arc<Snapshot>, Arc<CloudError>> {
        self.begun_after_and_no_older_than(None, age).await
    }

    /// The same, but only a list that began at or after `moment` will do: an older one knows nothing of what
    /// came then, and shows what went.
    pub async fn begun_after_and_no_older_than(
        &self,
        moment: Option<Instant>,
        age: Duration,
    ) -> Result<Arc<Snapshot>, Arc<CloudError>> {
        let will_do =
            |good: &Arc<Snapshot>| Some(good.began) >= moment && good.ended.elapsed() <= age;
        if let Some(snapshot) = self.latest().filter(will_do) {
            return Ok(snapshot);
        }
        let now = Instant::now();
        let lately = now.checked_sub(FAILED_LATELY).unwrap_or(now);
        self.shared(lately, will_do).await
    }

    /// A list that began at or after `moment`. All callers share it.
    pub async fn begun_after(&self, moment: Instant) -> Result<Arc<Snapshot>, Arc<CloudError>> {
        self.shared(moment, |good| good.began >= moment).await
    }

    /// Waits for a list under way, and lists only if that does not satisfy. Failures are shared too: a cloud in
    /// trouble is not asked again by each caller that waits.
    async fn shared(
        &self,
        asked: Instant,
        will_do: impl Fn(&Arc<Snapshot>) -> bool,
    ) -> Result<Arc<Snapshot>, Arc<CloudError>> {
        let _in_flight = self.in_flight.lock().await;
        {
            let last = self.last.lock();
            if let Some(snapshot) = last.good.as_ref().filter(|good| will_do(good)) {
                return Ok(Arc::clone(snapshot));
            }
            if let Some((_, error)) = last.failure.as_ref().filter(|(began, _)| *began >= asked) {
                return Err(Arc::clone(error));
            }
        }
        self.list().await
    }

    async fn list(&self) -> Result<Arc<Snapshot>, Arc<CloudError>> {
        let began = Instant::now();
        let provider = self.provider.current();
        let listed = match provider.instances() {
            Some(instances) => contain_call("list instances", instances.list()).await,
            None => Err(CloudError::new(
                "list",
                ErrorKind::Unsupported,
                "this cloud has no machines",
            )),
        };
        let mut last = self.last.lock();
        match listed {
            Ok(list) => {
                let ended = Instant::now();
                let snapshot = Arc::new(Snapshot { list, began, ended });
                last.good = Some(Arc::clone(&snapshot));
                last.failure = None;
                Ok(snapshot)
            }
            Err(error) => {
                let error = Arc::new(error);
                last.failure = Some((began, Arc::clone(&error)));
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use async_trait::async_trait;
    use cloudkeel_api::{
        CloudProvider, Doubt, Existence, Instances, KnownInstance, NodeFacts, ScopeFingerprint,
        SystemClock,
    };

    use super::*;

    /// A cloud whose lists take a second and are counted.
    #[derive(Default)]
    struct Slow {
        lists: AtomicUsize,
        broken: AtomicBool,
        panics: AtomicBool,
    }

    impl CloudProvider for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }
        fn instances(&self) -> Option<&dyn Instances> {
            Some(self)
        }
    }

    #[async_trait]
    impl Instances for Slow {
        async fn list(&self) -> Result<InstanceList, CloudError> {
            self.lists.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(!self.panics.load(Ordering::SeqCst), "planted");
            if self.broken.load(Ordering::SeqCst) {
                return Err(CloudError::new("list", ErrorKind::Unavailable, "broken"));
            }
            let scope = ScopeFingerprint::new("s");
            Ok(InstanceList::complete(scope, SystemClock.now(), []))
        }
        async fn find(&self, node: &NodeFacts, _: Option<&KnownInstance>) -> Existence {
            let looked_for = node.name.clone();
            Existence::Unknown(Doubt::NoMatch { looked_for })
        }
    }

    fn inventory() -> (Arc<Slow>, Inventory) {
        let cloud = Arc::new(Slow::default());
        let provider: Arc<dyn CloudProvider> = Arc::<Slow>::clone(&cloud);
        let cell = Arc::new(ProviderCell::new(provider));
        (cloud, Inventory::new(cell, Arc::new(SystemClock)))
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_one_list() {
        let (cloud, inventory) = inventory();
        let asked: Vec<_> = (0..100)
            .map(|_| inventory.no_older_than(Duration::from_secs(30)))
            .collect();
        let answers = futures::future::join_all(asked).await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 1);
        assert!(inventory.latest().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_comes_while_a_list_is_under_way_shares_it() {
        let (cloud, inventory) = inventory();
        let first = inventory.begun_after(Instant::now());
        let late = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            inventory.no_older_than(Duration::from_secs(30)).await
        };
        let (first, late) = futures::join!(first, late);
        assert!(first.is_ok() && late.is_ok());
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fresh_one_is_reused_and_an_old_one_is_not() {
        let (cloud, inventory) = inventory();
        let age = Duration::from_secs(30);
        inventory.no_older_than(age).await.unwrap();
        tokio::time::advance(Duration::from_secs(29)).await;
        inventory.no_older_than(age).await.unwrap();
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 1);
        tokio::time::advance(Duration::from_secs(2)).await;
        inventory.no_older_than(age).await.unwrap();
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 2);
        inventory.begun_after(Instant::now()).await.unwrap();
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_fresh_but_began_too_early_does_not_do() {
        let (cloud, inventory) = inventory();
        let age = Duration::from_secs(30);
        let after = |moment| inventory.begun_after_and_no_older_than(Some(moment), age);
        let early = inventory.no_older_than(age);
        let late = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let asked = [after(Instant::now()), after(Instant::now())];
            futures::future::join_all(asked).await
        };
        let (early, late) = futures::join!(early, late);
        let began = early.unwrap().began;
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 2, "one for both");
        assert!(late.into_iter().all(|list| list.unwrap().began > began));
        after(began).await.unwrap();
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 2, "it still will do");
        tokio::time::advance(age * 2).await;
        after(began).await.unwrap();
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 3, "too old");
    }

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_failed_after_the_moment_is_asked_again() {
        let (cloud, inventory) = inventory();
        let moment = Instant::now();
        let ask = || inventory.begun_after_and_no_older_than(Some(moment), Duration::from_mins(2));
        cloud.broken.store(true, Ordering::SeqCst);
        assert!(ask().await.is_err());
        cloud.broken.store(false, Ordering::SeqCst);
        tokio::time::advance(FAILED_LATELY).await;
        assert!(ask().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_shared_too_and_the_last_good_answer_stays() {
        let (cloud, inventory) = inventory();
        inventory.begun_after(Instant::now()).await.unwrap();
        cloud.broken.store(true, Ordering::SeqCst);
        tokio::time::advance(Duration::from_secs(1)).await;
        let now = Instant::now();
        let asked: Vec<_> = (0..10).map(|_| inventory.begun_after(now)).collect();
        let answers = futures::future::join_all(asked).await;
        assert!(answers.iter().all(Result::is_err));
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 2);
        assert!(inventory.latest().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_panics_has_failed_and_the_next_one_goes_on() {
        let (cloud, inventory) = inventory();
        cloud.panics.store(true, Ordering::SeqCst);
        let failed = inventory.begun_after(Instant::now()).await.err().unwrap();
        assert!(failed.to_string().contains("planted"), "{failed}");
        assert!(inventory.failure().is_some());
        cloud.panics.store(false, Ordering::SeqCst);
        tokio::time::advance(FAILED_LATELY).await;
        assert!(inventory.begun_after(Instant::now()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_recent_failure_is_shared() {
        let (cloud, inventory) = inventory();
        cloud.broken.store(true, Ordering::SeqCst);
        for _ in 0..10 {
            assert!(inventory.no_older_than(Duration::MAX).await.is_err());
        }
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 1);
        tokio::time::advance(FAILED_LATELY).await;
        assert!(inventory.no_older_than(Duration::MAX).await.is_err());
        assert_eq!(cloud.lists.load(Ordering::SeqCst), 2);
    }
}
