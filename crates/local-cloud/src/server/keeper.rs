//! The one task that makes true what the world says: written down, carried, routed.

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
use crate::simulated_cloud::{Aftermath, SimulatedCloud};

/// How often it looks whether the world moved by itself, and tries again what failed.
const ROUND: Duration = Duration::from_secs(1);

/// In how many rounds it looks at the routes of the kernel, which others may change.
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

/// The way to the keeper.
#[derive(Debug, Clone)]
pub(crate) struct KeeperHandle(mpsc::Sender<Job>);

impl KeeperHandle {
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
impl Aftermath for KeeperHandle {
    async fn settle(&self) -> Result<(), String> {
        let settled = self.ask(Job::Settle).await;
        settled.unwrap_or_else(|| Err("the cloud is ending".to_owned()))
    }
}

/// What is kept, and how far it is true.
pub(crate) struct Keeper {
    pub(crate) cloud: SimulatedCloud,
    pub(crate) file: Option<StateFile>,
    pub(crate) plane: Plane,
    pub(crate) routes: RouteKeeper,
}

struct Kept {
    keeper: Keeper,
    /// The changes that the file has; `None` if it must be written in any case.
    written: Option<u64>,
    /// The changes that everything else has; `None` if it must be tried again.
    seen: Option<u64>,
    problems: BTreeMap<u64, Vec<String>>,
}

impl Keeper {
    /// Starts to keep the cloud's word. From now on every change waits for it.
    pub(crate) fn start(self) -> KeeperHandle {
        const WAITING: usize = 256;
        let (jobs, queue) = mpsc::channel(WAITING);
        let handle = KeeperHandle(jobs);
        self.cloud.set_aftermath(Arc::new(handle.clone()));
        let kept = Kept {
            keeper: self,
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
                    self.look_around(round).await;
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
                        balancers: self.keeper.plane.stats(),
                        routes: self.keeper.routes.stats().clone(),
                    });
                }
                Some(Job::Close(answer)) => {
                    self.keeper.routes.close();
                    self.keeper.plane.close().await;
                    let _ = answer.send(());
                    return;
                }
                None => return,
            }
        }
    }

    /// Makes true what changed by itself, and tries again what failed.
    async fn look_around(&mut self, round: u32) {
        let stuck = self.problems.values().any(|found| !found.is_empty());
        let changed = self.seen != Some(self.keeper.cloud.changes());
        let astray = round.is_multiple_of(ROUNDS_TO_ROUTES) && self.keeper.routes.look_again();
        if stuck || changed || astray {
            // Nobody waits for this one; the log has said what went wrong.
            let _ = self.make_true().await;
        }
    }

    async fn make_true(&mut self) -> Result<(), String> {
        let seen = self.keeper.cloud.changes();
        let written = self.write_down().await;
        let wanted = self.keeper.cloud.wanted();
        let problems = self.keeper.plane.apply(&wanted.balancers).await;
        self.keeper.routes.apply(&wanted.routes);
        for (id, found) in &problems {
            self.tell(*id, found);
            // A balancer that went meanwhile has no problems any more.
            let _ = self.keeper.cloud.note_problems(*id, found.clone());
        }
        self.problems = problems;
        // What could not be written down is tried again.
        self.seen = written.is_ok().then_some(seen);
        written
    }

    /// Says what changed, once.
    fn tell(&self, id: u64, found: &[String]) {
        let before = self.problems.get(&id).map_or(&[][..], Vec::as_slice);
        if before == found {
            return;
        }
        for problem in found {
            warn!(balancer = id, problem, "a balancer does not work");
        }
        if found.is_empty() {
            info!(balancer = id, "the balancer works again");
        }
    }

    async fn write_down(&mut self) -> Result<(), String> {
        let Some(file) = self.keeper.file.clone() else {
            return Ok(());
        };
        let changes = self.keeper.cloud.changes();
        if self.written == Some(changes) {
            return Ok(());
        }
        let snapshot = self.keeper.cloud.snapshot();
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
        error!(?path, why, "the state cannot be written down");
        let path = path.display();
        Err(format!("the state file {path} cannot be written: {why}"))
    }
}
