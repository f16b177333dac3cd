//! One run, from a seed to its outcome.

mod faults;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use cloudkeel_api::TokioClock;
use cloudkeel_controllers::planted::Bug;
use cloudkeel_embedded::EmbeddedApi;
use cloudkeel_testkit::simulated_cloud::SimulatedCloud;
use jiff::Timestamp;
use tokio::time::Instant;

use self::faults::FaultEnd;
use crate::accounts::Clouds;
use crate::action::ManagerId;
use crate::cluster::Cluster;
use crate::convergence::differences;
use crate::environment::Environment;
use crate::fault_class::{FaultClass, FaultCounts};
use crate::fixtures::add_foreign_nodes;
use crate::invariants::{Checker, Invariant, Violation};
use crate::managers::{Backends, Manager};
use crate::plan::{FAULT_PERIOD, Plan};
use crate::rng::Rng;
use crate::topology::{MOST_MACHINES, Topology};

const SECOND: Duration = Duration::from_secs(1);
/// How long it may take until all is well again.
const CONVERGENCE_TIMEOUT: Duration = Duration::from_hours(1);
/// How long nothing may happen after that.
const QUIET_PERIOD: Duration = Duration::from_mins(40);
/// A manager that ended is started again after this, as a kubelet does.
const RESTART_DELAY: Duration = Duration::from_secs(5);

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Everything that must never be, and was.
    pub violations: Vec<Violation>,
    /// Requests that were checked.
    pub steps: u64,
    /// How often each class of faults had an effect.
    pub met: FaultCounts,
    /// What happened, if it was asked for.
    pub history: Vec<String>,
}

/// Plays a plan, on this thread. The seed decides about everything that the plan leaves open.
pub fn play(seed: u64, plan: &Plan) -> Result<Outcome> {
    play_with(seed, plan, None, false)
}

/// The same with a bug planted, or with everything written down.
pub fn play_with(seed: u64, plan: &Plan, bug: Option<Bug>, with_history: bool) -> Result<Outcome> {
    let _planted = bug.map(Bug::plant);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(async {
        let mut run = Run::set_up(seed, plan.topology, with_history).await?;
        run.go(plan).await
    })
}

struct Run {
    backends: Backends,
    cluster: Cluster,
    environment: Environment,
    managers: [Manager; 2],
    rng: Rng,
    fault_ends: Vec<(Instant, FaultEnd)>,
    began: Instant,
}

impl Run {
    async fn set_up(seed: u64, topology: Topology, with_history: bool) -> Result<Self> {
        let mut rng = Rng::new(seed ^ 0xC10D);
        let epoch: Timestamp = "2026-01-01T00:00:00Z".parse()?;
        let clock = TokioClock::starting_at(epoch);
        let mut api = EmbeddedApi::builder()
            .clock(Arc::new(clock))
            .seed(rng.seed())
            .keep_journal();
        if topology.dual_stack {
            api = api.dual_stack();
        }
        let api = api.build();
        let clouds = Clouds::new(topology.layout, &mut rng);
        let checker = Checker::new(api.clone(), clouds.clone(), clock);
        if with_history {
            checker.keep_history();
        }
        let cluster = Cluster::new(api.client("people"));
        let backends = Backends {
            topology,
            api,
            clouds,
            checker,
        };
        let people = Rng::new(rng.seed());
        let environment = Environment::new(&backends, cluster.clone(), clock, people);
        let managers = ManagerId::BOTH.map(|id| Manager::new(id, clock, &mut rng));
        let mut run = Self {
            backends,
            cluster,
            environment,
            managers,
            rng,
            fault_ends: Vec::new(),
            began: Instant::now(),
        };
        run.backends.clouds.add_fixtures()?;
        add_foreign_nodes(&run.cluster, topology).await?;
        for machine in 0..topology.first_machines {
            run.environment.join(machine).await?;
        }
        run.count_topology();
        Ok(run)
    }

    fn count_topology(&self) {
        let topology = self.backends.topology;
        let clouds = topology.layout.count();
        let classes = [
            (clouds == 2, FaultClass::TwoClouds),
            (clouds == 3, FaultClass::ThreeClouds),
            (topology.first_machines == 0, FaultClass::NoMachines),
            (
                topology.first_machines == MOST_MACHINES,
                FaultClass::ThirtyMachines,
            ),
        ];
        for (_, class) in classes.into_iter().filter(|(is_met, _)| *is_met) {
            self.backends.checker.met(class);
        }
    }

    async fn go(&mut self, plan: &Plan) -> Result<Outcome> {
        self.restart_managers()?;
        self.advance(Duration::from_mins(2)).await?;
        self.began = Instant::now();
        for timed in &plan.actions {
            let at = self.began + timed.at;
            self.advance(at.saturating_duration_since(Instant::now()))
                .await?;
            self.backends
                .checker
                .note(format_args!("== {}", timed.action));
            self.perform(&timed.action).await?;
        }
        let end = self.began + FAULT_PERIOD;
        self.advance(end.saturating_duration_since(Instant::now()))
            .await?;
        self.end_all_faults().await?;
        self.settle().await?;
        self.check_quiet().await?;
        self.count_dual_stack();
        let (_, _, steps) = self.backends.checker.counts();
        Ok(Outcome {
            violations: self.backends.checker.violations(),
            steps,
            met: self.backends.checker.fault_counts(),
            history: self.backends.checker.history(),
        })
    }

    /// Lets time pass, second by second.
    async fn advance(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        loop {
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            tokio::time::sleep_until(until.min(now + SECOND)).await;
            self.end_expired_faults();
            self.restart_managers()?;
            let second = self.began.elapsed().as_secs();
            self.environment.beat(second.is_multiple_of(10)).await?;
            self.backends.checker.catch_up();
        }
    }

    /// Starts managers that are dead, unless they are to stay so for a while.
    fn restart_managers(&mut self) -> Result<()> {
        for manager_id in ManagerId::BOTH {
            let waits = self
                .fault_ends
                .iter()
                .any(|(_, e)| *e == FaultEnd::Running(manager_id));
            let place = manager_id as usize;
            let Some(manager) = self.managers.get_mut(place) else {
                continue;
            };
            if manager.is_alive() || waits {
                continue;
            }
            if manager.was_started() && !manager.is_cleaned_up() {
                // It ended by itself or crashed at a point: it comes back after a moment.
                let has_crashed = manager.has_crashed();
                manager.crash();
                if has_crashed {
                    self.backends.checker.manager_crashed(manager_id);
                    self.backends.checker.met(FaultClass::CrashAtWrite);
                }
                self.end_later(RESTART_DELAY, FaultEnd::Running(manager_id));
                continue;
            }
            manager.start(&self.backends, &mut self.rng)?;
        }
        Ok(())
    }

    /// From now on nothing goes wrong any more.
    async fn end_all_faults(&mut self) -> Result<()> {
        self.backends.checker.note("== all faults end");
        self.show_everything();
        for account in self.backends.clouds.layout.accounts() {
            self.backends.clouds.of(*account).faults().clear();
            self.end_lag(*account);
            self.swap_credential(*account, false);
            self.replace_token(*account, None);
        }
        self.fault_ends.clear();
        for manager in &mut self.managers {
            manager.clock.put_right();
            manager.api_faults.clear();
            if let Some(crash_switch) = manager.crash_switch() {
                crash_switch.disarm();
                crash_switch.thaw();
            }
        }
        self.environment.mend_annotations().await?;
        self.environment.delete_left_balancers().await?;
        self.environment.register_mistaken_again().await?;
        self.environment.remove_holds().await
    }

    /// Pods of both families are met where a manager made routes for the second one.
    fn count_dual_stack(&self) {
        let clouds = self.backends.clouds.all();
        let mut routes = clouds.flat_map(SimulatedCloud::routes);
        if routes.any(|route| route.destination.addr().is_ipv6()) {
            self.backends.checker.met(FaultClass::DualStack);
        }
    }

    async fn settle(&mut self) -> Result<()> {
        let ended = Instant::now();
        loop {
            self.advance(Duration::from_mins(2)).await?;
            let left = differences(&self.cluster, &self.backends).await?;
            if left.is_empty() {
                return Ok(());
            }
            if ended.elapsed() > CONVERGENCE_TIMEOUT {
                for difference in left {
                    self.backends
                        .checker
                        .report(Invariant::Convergence, difference);
                }
                return Ok(());
            }
        }
    }

    /// Once all is well, there is nothing to do.
    async fn check_quiet(&mut self) -> Result<()> {
        // What was begun may end: drained targets, the last refresh.
        self.advance(Duration::from_mins(15)).await?;
        let before = self.backends.checker.counts();
        self.advance(QUIET_PERIOD).await?;
        let after = self.backends.checker.counts();
        let (writes, changes) = (after.0 - before.0, after.1 - before.1);
        if writes + changes > 0 {
            let what = format!("{writes} writes and {changes} changes in the cloud");
            self.backends
                .checker
                .report(Invariant::QuietAfterConvergence, what);
        }
        let left = differences(&self.cluster, &self.backends).await?;
        for difference in left {
            self.backends
                .checker
                .report(Invariant::ConvergenceStays, difference);
        }
        Ok(())
    }
}
