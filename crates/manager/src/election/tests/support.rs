//! Candidates for tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::TokioClock;
use jiff::Timestamp;
use kube::core::DynamicObject;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;
use super::link::Link;
use crate::election::{
    Election, ElectionConfig, Elector, Ended, Leadership, LeaseEvent, LeaseEvents,
};

/// Remembers the recorded events.
#[derive(Default)]
pub(super) struct RecordedEvents(pub Mutex<Vec<LeaseEvent>>);

#[async_trait]
impl LeaseEvents for RecordedEvents {
    async fn record(&self, _lease: &DynamicObject, event: LeaseEvent, _at: Timestamp) {
        self.0.lock().unwrap().push(event);
    }
}

/// How a candidate ends that is stopped normally.
pub(super) const RELEASED: Ended = Ended::Stopped { released: true };

/// A candidate that runs.
pub(super) struct Running {
    pub election: Election,
    pub stop: CancellationToken,
    pub recorded: Arc<RecordedEvents>,
    pub task: JoinHandle<Ended>,
}

pub(super) fn config(identity: &str) -> ElectionConfig {
    ElectionConfig::new("kube-system", "ccm", identity)
}

pub(super) fn clock() -> Arc<TokioClock> {
    let epoch = Timestamp::from_second(1_770_000_000).unwrap();
    Arc::new(TokioClock::starting_at(epoch))
}

pub(super) fn start(config: ElectionConfig, link: &Arc<Link>) -> Running {
    let recorded = Arc::new(RecordedEvents::default());
    let store = Arc::clone(link);
    let elector = Elector::new(config, store, Arc::clone(&recorded) as _, clock());
    let elector = elector.unwrap().with_seed(7);
    let (election, stop) = (elector.election(), CancellationToken::new());
    let task = tokio::spawn(elector.run(stop.clone()));
    Running {
        election,
        stop,
        recorded,
        task,
    }
}

impl Running {
    pub(super) fn status(&self) -> watch::Receiver<Leadership> {
        self.election.leadership()
    }

    pub(super) fn events(&self) -> Vec<LeaseEvent> {
        self.recorded.0.lock().unwrap().clone()
    }

    /// Stops and waits for the end.
    pub(super) async fn stop(self) -> Ended {
        self.stop.cancel();
        self.task.await.unwrap()
    }

    /// Ends like a process that is killed.
    pub(super) async fn crash(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

/// A leader, alone, and its connection to the cluster.
pub(super) async fn leader(cluster: &Arc<Cluster>) -> (Running, Arc<Link>) {
    leader_by(Link::new(cluster)).await
}

pub(super) async fn leader_by(link: Arc<Link>) -> (Running, Arc<Link>) {
    let leader = start(config("a"), &link);
    leader.election.leading().await.unwrap();
    (leader, link)
}

pub(super) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
