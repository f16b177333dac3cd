//! The task that carries out changes of the cloud's state: the file is written, proxies and routes follow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info, warn};

use super::state_file::StateFile;
use crate::plane::{BalancerStats, Plane};
use crate::routes::{RouteKeeper, RouteStats};
use crate::simulated_cloud::{CommitHook, SimulatedCloud};

/// How often it checks whether the state changed by itself, and retries what failed.
const ROUND: Duration = Duration::from_secs(1);

/// In how many rounds it checks the routes of the kernel, which others may change.
const ROUNDS_TO_ROUTES: u32 = 10;

/// What the cloud is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CloudStats {
    /// Its balancers.
    pub balancers: Vec<BalancerStats>,
    /// Its routes.
    pub routes: RouteStats,
}

enum Job {
    Settle(oneshot::Sender<Result<(), String>>),
    Stats(oneshot::Sender<CloudStats>),
    Close(oneshot::Sender<()>),
}

/// Sends jobs to the committer.
#[derive(Debug, Clone)]
pub(crate) struct CommitterHandle(mpsc::Sender<Job>);

impl CommitterHandle {
    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.0.send(job(answer)).await.ok()?;
        answered.await.ok()
    }

    /// What the cloud is doing; `None` if it is ending.
    pub(crate) async fn stats(&self) -> Option<CloudStats> {
        self.ask(Job::Stats).await
    }

    /// Ends everything that it keeps, connections within the drain time.
    pub(crate) async fn close(&self) {
        self.ask(Job::Close).await;
    }
}

#[async_trait]
impl CommitHook for CommitterHandle {
    async fn commit(&self) -> Result<(), String> {
        let settled = self.ask(Job::Settle).await;
        settled.unwrap_or_else(|| Err("the cloud is ending".to_owned()))
    }
}

/// The state, and what it is carried out on.
pub(crate) struct Committer {
    pub(crate) cloud: SimulatedCloud,
    pub(crate) file: Option<StateFile>,
    pub(crate) plane: Plane,
    pub(crate) routes: RouteKeeper,
}

struct Kept {
    committer: Committer,
    /// The changes that the file has; `None` if it must be written in any case.
    written: Option<u64>,
    /// The changes that everything else has; `None` if it must be tried again.
    seen: Option<u64>,
    problems: BTreeMap<u64, Vec<String>>,
}

impl Committer {
    /// Starts the task. From now on every change waits until it is carried out.
    pub(crate) fn start(self) -> CommitterHandle {
        const WAITING: usize = 256;
        let (jobs, queue) = mpsc::channel(WAITING);
        let handle = CommitterHandle(jobs);
        self.cloud.set_commit_hook(Arc::new(handle.clone()));
        let kept = Kept {
            committer: self,
            written: None,
            seen: None,
            problems: BTreeMap::new(),
        };
        tokio::spawn(kept.run(queue));
        handle
    }
}

impl Kept {
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut round = 0_u32;
        loop {
            let job = tokio::select! {
                job = queue.recv() => job,
                _ = rounds.tick() => {
                    round = round.wrapping_add(1);
                    self.check_all(round).await;
                    continue;
                }
            };
            match job {
                Some(Job::Settle(answer)) => {
                    let result = self.make_true().await;
                    // Who stopped waiting needs no answer.
                    let _ = answer.send(result);
                }
                Some(Job::Stats(answer)) => {
                    let _ = answer.send(CloudStats {
                        balancers: self.committer.plane.stats(),
                        routes: self.committer.routes.stats().clone(),
                    });
                }
                Some(Job::Close(answer)) => {
                    self.committer.routes.close();
                    self.committer.plane.close().await;
                    let _ = answer.send(());
                    return;
                }
                None => return,
            }
        }
    }

    /// Makes true what changed by itself, and tries again what failed.
    async fn check_all(&mut self, round: u32) {
        self.note_health();
        let stuck = self.problems.values().any(|found| !found.is_empty());
        let changed = self.seen != Some(self.committer.cloud.changes());
        let astray = round.is_multiple_of(ROUNDS_TO_ROUTES) && self.committer.routes.look_again();
        if stuck || changed || astray {
            // No caller waits for this one; the log has the error.
            let _ = self.make_true().await;
        }
    }

    async fn make_true(&mut self) -> Result<(), String> {
        let seen = self.committer.cloud.changes();
        let written = self.write_down().await;
        let wanted = self.committer.cloud.wanted();
        let problems = self.committer.plane.apply(&wanted.balancers).await;
        self.note_health();
        self.committer.routes.apply(&wanted.routes);
        for (id, found) in &problems {
            self.report(*id, found);
            // A balancer that went meanwhile has no problems any more.
            let _ = self.committer.cloud.note_problems(*id, found.clone());
        }
        self.problems = problems;
        // What could not be written down is tried again.
        self.seen = written.is_ok().then_some(seen);
        written
    }

    /// Writes down what the health checks say, for every client to read.
    fn note_health(&self) {
        for (id, health) in self.committer.plane.health() {
            // A balancer that went meanwhile has no targets any more.
            let _ = self.committer.cloud.note_health(id, health);
        }
    }

    /// Says what changed, once.
    fn report(&self, id: u64, found: &[String]) {
        let before = self.problems.get(&id).map_or(&[][..], Vec::as_slice);
        if before == found {
            return;
        }
        for problem in found {
            warn!(balancer = id, problem, "load balancer failed");
        }
        if found.is_empty() {
            info!(balancer = id, "load balancer recovered");
        }
    }

    async fn write_down(&mut self) -> Result<(), String> {
        let Some(file) = self.committer.file.clone() else {
            return Ok(());
        };
        let changes = self.committer.cloud.changes();
        if self.written == Some(changes) {
            return Ok(());
        }
        let snapshot = self.committer.cloud.snapshot();
        let path = file.path().to_owned();
        let written = tokio::task::spawn_blocking(move || file.write(snapshot)).await;
        let why = match written {
            Ok(Ok(())) => {
                self.written = Some(changes);
                return Ok(());
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.written = None;
        error!(?path, why, "failed to write the state file");
        let path = path.display();
        Err(format!("the state file {path} cannot be written: {why}"))
    }
}
