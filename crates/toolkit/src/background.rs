//! Controllers of a provider that follow the Services of the cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, CloudError, ProvidedController, ServiceFacts,
    ServiceRef, names,
};
use tokio::time::{Instant, sleep_until};

/// What makes something in the cloud fit the Services of the cluster, such as a firewall.
#[async_trait]
pub trait ServiceFollower: Send + Sync {
    /// Its name, as in `--controllers`.
    const NAME: &'static str;
    /// What is known of its controller before the provider is built.
    const PROVIDED: ProvidedController = ProvidedController {
        name: Self::NAME,
        on_by_default: true,
        watches_services: true,
    };

    /// When it reconciles.
    fn schedule(&self) -> Schedule;

    /// Makes it fit these Services. After an error the controller starts afresh, with backoff.
    async fn reconcile(&self, services: &[ServiceFacts], cause: Cause) -> Result<(), CloudError>;
}

/// When a controller reconciles, besides when it starts.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// How long after the start for the second time.
    pub first: Duration,
    /// The pause between two times from then on.
    pub period: Duration,
    /// Whether also when Services change.
    pub on_change: bool,
}

impl Schedule {
    /// When Services change, and whatever happens to them after each period.
    pub const fn on_change_and_every(period: Duration) -> Self {
        Self {
            first: period,
            period,
            on_change: true,
        }
    }

    /// After each period. The first one is shorter by an amount that depends on this text, so that clusters of one account
    /// do not all begin at the same time.
    pub fn spread(period: Duration, longest_first: Duration, text: &str) -> Self {
        let seconds = longest_first.as_secs().max(1);
        let letters = text.bytes().map(u64::from);
        let delay = letters.fold(0, |sum, letter| sum * 31 % seconds + letter);
        Self {
            first: Duration::from_secs(delay % seconds),
            period,
            on_change: false,
        }
    }
}

/// Why a controller reconciles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It has just started.
    Start,
    /// Services may have changed.
    Change,
    /// The period is over: what another client has changed in the cloud is to be found now.
    Period,
}

/// The controller that a follower makes. It is on by default.
pub(crate) struct FollowingController<F>(pub(crate) F);

#[async_trait]
impl<F: ServiceFollower> BackgroundController for FollowingController<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }

    fn on_by_default(&self) -> bool {
        F::PROVIDED.on_by_default
    }

    fn watches_services(&self) -> bool {
        F::PROVIDED.watches_services
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        let schedule = self.0.schedule();
        let mut next = Instant::now() + schedule.first;
        let mut cause = Cause::Start;
        let mut unpaused = Unpaused::default();
        loop {
            let services = unpaused.of(context.services.snapshot());
            tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                done = self.0.reconcile(&services, cause) => done?,
            }
            tokio::select! {
                () = context.stop.cancelled() => return Ok(()),
                () = context.services.changed(), if schedule.on_change => cause = Cause::Change,
                () = sleep_until(next) => {
                    next += schedule.period;
                    cause = Cause::Period;
                }
            }
        }
    }
}

/// The Services as they were before they were paused, so that what was made for them stays as it is.
#[derive(Default)]
struct Unpaused(BTreeMap<ServiceRef, ServiceFacts>);

impl Unpaused {
    /// Those of a list, with paused ones as they were. One that is paused since before the start stays as it is now.
    fn of(&mut self, listed: Vec<ServiceFacts>) -> Vec<ServiceFacts> {
        let mut before = std::mem::take(&mut self.0);
        for facts in listed {
            let kept = before.remove(&facts.service);
            let is_kept = names::is_paused(&facts.annotations);
            let facts = kept.filter(|_| is_kept).unwrap_or(facts);
            self.0.insert(facts.service.clone(), facts);
        }
        self.0.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use cloudkeel_api::{
        MetadataChanges, MetadataWriter, NodeFacts, NodeFeed, ServiceFeed, ServiceType, Shared,
        TrafficPolicy,
    };
    use tokio::sync::Notify;

    use super::*;

    #[derive(Default)]
    struct Cluster(Notify);

    #[async_trait]
    impl NodeFeed for Cluster {
        fn snapshot(&self) -> Vec<Shared<NodeFacts>> {
            Vec::new()
        }

        async fn changed(&self) {
            self.0.notified().await;
        }
    }

    #[async_trait]
    impl ServiceFeed for Cluster {
        fn snapshot(&self) -> Vec<ServiceFacts> {
            Vec::new()
        }

        async fn changed(&self) {
            self.0.notified().await;
        }
    }

    #[async_trait]
    impl MetadataWriter for Cluster {
        async fn label_node(&self, _: &NodeFacts, _: &MetadataChanges) -> Result<(), CloudError> {
            Ok(())
        }

        async fn annotate_node(
            &self,
            _: &NodeFacts,
            _: &MetadataChanges,
        ) -> Result<(), CloudError> {
            Ok(())
        }

        async fn annotate_service(
            &self,
            _: &ServiceRef,
            _: &MetadataChanges,
        ) -> Result<(), CloudError> {
            Ok(())
        }
    }

    const MINUTE: Duration = Duration::from_mins(1);

    /// Notes when it reconciles and why.
    struct Follower {
        schedule: Schedule,
        began: Instant,
        noted: Arc<Mutex<Vec<(u64, Cause)>>>,
    }

    #[async_trait]
    impl ServiceFollower for Follower {
        const NAME: &'static str = "follower";

        fn schedule(&self) -> Schedule {
            self.schedule
        }

        async fn reconcile(&self, _: &[ServiceFacts], cause: Cause) -> Result<(), CloudError> {
            let at = self.began.elapsed().as_secs();
            self.noted.lock().unwrap().push((at, cause));
            Ok(())
        }
    }

    /// What is reconciled in three minutes, with a change after 90 seconds.
    async fn noted(schedule: Schedule) -> Vec<(u64, Cause)> {
        let cluster = Arc::new(Cluster::default());
        let noted = Arc::default();
        let follower = FollowingController(Follower {
            schedule,
            began: Instant::now(),
            noted: Arc::clone(&noted),
        });
        let stop = tokio_util::sync::CancellationToken::new();
        let context = BackgroundContext {
            nodes: Arc::<Cluster>::clone(&cluster),
            services: Arc::<Cluster>::clone(&cluster),
            writer: Arc::<Cluster>::clone(&cluster),
            stop: stop.clone(),
        };
        let (ended, ()) = tokio::join!(follower.run(context), async {
            tokio::time::sleep(MINUTE + MINUTE / 2).await;
            cluster.0.notify_one();
            tokio::time::sleep(MINUTE + MINUTE / 2).await;
            stop.cancel();
        });
        ended.unwrap();
        let noted = noted.lock().unwrap();
        noted.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn changes_and_periods_make_it_reconcile() {
        let noted = noted(Schedule::on_change_and_every(MINUTE)).await;
        let expected = [
            (0, Cause::Start),
            (60, Cause::Period),
            (90, Cause::Change),
            (120, Cause::Period),
        ];
        assert_eq!(noted[..4], expected);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_period_depends_on_a_text_and_changes_may_not_matter() {
        let one = Schedule::spread(MINUTE, MINUTE, "k8s:prod");
        assert_ne!(
            one.first,
            Schedule::spread(MINUTE, MINUTE, "k8s:test").first
        );
        let first = one.first.as_secs();
        assert!(first < 60, "{first}");
        let noted = noted(one).await;
        let expected = [
            (0, Cause::Start),
            (first, Cause::Period),
            (first + 60, Cause::Period),
            (first + 120, Cause::Period),
        ];
        assert_eq!(noted, expected);
    }

    #[test]
    fn a_paused_service_stays_as_it_was() {
        let service = |class: &str, paused: Option<&str>| ServiceFacts {
            service: ServiceRef {
                namespace: "ns".to_owned(),
                name: "web".to_owned(),
                uid: "u-1".to_owned(),
            },
            service_type: ServiceType::LoadBalancer,
            class: Some(class.to_owned()),
            labels: BTreeMap::new(),
            annotations: paused
                .map(|value| (names::PAUSED.name().to_owned(), value.to_owned()))
                .into_iter()
                .collect(),
            ports: Vec::new(),
            traffic_policy: TrafficPolicy::Cluster,
            health_check_node_port: None,
            source_ranges: Vec::new(),
            ingress: Vec::new(),
            is_deleting: false,
        };
        let mut unpaused = Unpaused::default();
        for (case, listed, expected) in [
            ("at first", service("1", None), "1"),
            ("a change", service("2", None), "2"),
            ("paused and changed", service("3", Some("true")), "2"),
            (
                "changed again, and not readable",
                service("4", Some("x")),
                "2",
            ),
            ("resumed", service("5", Some("false")), "5"),
        ] {
            let facts = unpaused.of(vec![listed]);
            assert_eq!(facts[0].class.as_deref(), Some(expected), "{case}");
        }
        assert_eq!(unpaused.of(Vec::new()), [], "it is gone, paused or not");
        let facts = unpaused.of(vec![service("6", Some("true"))]);
        assert_eq!(
            facts[0].class.as_deref(),
            Some("6"),
            "paused before the start"
        );
    }
}
