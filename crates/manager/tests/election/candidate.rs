//! Candidates of ours, and the lease that they contend for.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::SystemClock;
use cloudkeel_manager::election::{Election, ElectionConfig, Elector, Ended, Leadership};
use cloudkeel_testkit::cluster::{TestNamespace, eventually};
use cloudkeel_testkit::either_api::{EitherApi, RunningApi};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Far beyond anything that is waited for here.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) const LEASE: &str = "ccm";

/// A namespace with one contended lease.
pub(crate) struct Contest {
    _api: RunningApi,
    pub(crate) client: Client,
    pub(crate) namespace: TestNamespace,
}

impl Contest {
    /// On the real API server.
    pub(crate) async fn open() -> Self {
        Self::on(EitherApi::Real).await
    }

    pub(crate) async fn on(api: EitherApi) -> Self {
        let api = api.run().await;
        let client = api.client();
        let namespace = TestNamespace::create(&client, "election").await.unwrap();
        Self {
            _api: api,
            client,
            namespace,
        }
    }

    /// Short durations, so that a lease expires soon.
    pub(crate) fn config(&self, identity: &str) -> ElectionConfig {
        ElectionConfig {
            lease_duration: Duration::from_secs(3),
            renew_deadline: Duration::from_secs(2),
            retry_period: Duration::from_millis(500),
            ..ElectionConfig::new(self.namespace.name(), LEASE, identity)
        }
    }

    pub(crate) fn candidate(&self, identity: &str) -> Running {
        Running::start(self.config(identity), self.client.clone())
    }

    pub(crate) fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), self.namespace.name())
    }

    pub(crate) async fn lease(&self) -> Lease {
        self.leases().get(LEASE).await.unwrap()
    }

    /// Waits until the lease is held by this identity.
    pub(crate) async fn wait_for_holder(&self, identity: &str) {
        eventually("the holder of the lease", DEADLINE, || async {
            let lease = self.leases().get(LEASE).await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity);
            Ok::<_, kube::Error>(holder.as_deref() == Some(identity))
        })
        .await;
    }
}

/// A candidate that runs.
pub(crate) struct Running {
    pub(crate) election: Election,
    stop: CancellationToken,
    task: JoinHandle<Ended>,
}

impl Running {
    pub(crate) fn start(config: ElectionConfig, client: Client) -> Self {
        let elector = Elector::kubernetes(config, client, Arc::new(SystemClock)).unwrap();
        let (election, stop) = (elector.election(), CancellationToken::new());
        let task = tokio::spawn(elector.run(stop.clone()));
        Self {
            election,
            stop,
            task,
        }
    }

    pub(crate) async fn leads(&self) {
        let leading = tokio::time::timeout(DEADLINE, self.election.leading()).await;
        leading.expect("it leads in the end").unwrap();
        assert!(self.election.fence().is_open());
    }

    pub(crate) async fn waits_for(&self, holder: &str) {
        let mut status = self.election.leadership();
        let waiting = Leadership::Standby {
            holder: Some(holder.to_owned()),
            error: None,
        };
        let seen = tokio::time::timeout(DEADLINE, status.wait_for(|now| *now == waiting)).await;
        seen.expect("it sees the holder in the end").unwrap();
    }

    /// Ends as on a planned shutdown.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let ended = self.task.await.unwrap();
        assert_eq!(ended, Ended::Stopped { released: true });
    }

    /// Ends as a process that is killed.
    pub(crate) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}
