//! One run, from a seed to a verdict.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cloudkeel_api::TokioClock;
use cloudkeel_controllers::planted::Bug;
use cloudkeel_embedded::EmbeddedApi;
use cloudkeel_testkit::simulated_cloud::{
    Consistency, Fault, FaultMatch, FaultRule, SimulatedCloud,
};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::accounts::{Account, Clouds, Layout};
use crate::action::{Action, Who};
use crate::cluster::Cluster;
use crate::draw::Draw;
use crate::furnish::{FIRST_MACHINES, OTHER_PROJECT, furnish_cluster, settings_of_calm};
use crate::managers::{Home, Manager};
use crate::nature::Nature;
use crate::plan::{Plan, TROUBLE};
use crate::settled::differences;
use crate::witness::{Violation, Witness};

const SECOND: Duration = Duration::from_secs(1);
/// How long it may take until all is well again.
const PATIENCE: Duration = Duration::from_hours(1);
/// How long nothing may happen after that.
const QUIET: Duration = Duration::from_mins(40);
/// A manager that ended is started again after this, as a kubelet does.
const RESTART: Duration = Duration::from_secs(5);

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Everything that must never be, and was.
    pub violations: Vec<Violation>,
    /// Requests that were judged.
    pub steps: u64,
    /// What happened, if it was asked for.
    pub history: Vec<String>,
}

/// Plays a plan, on this thread. The seed decides about everything that the plan leaves open.
pub fn play(seed: u64, plan: &Plan) -> Result<Verdict> {
    play_with(seed, plan, None, false)
}

/// The same with a bug planted, or with everything written down.
pub fn play_with(seed: u64, plan: &Plan, bug: Option<Bug>, with_history: bool) -> Result<Verdict> {
    let _planted = bug.map(Bug::plant);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(async {
        let mut run = Run::set_up(seed, plan.layout, with_history).await?;
        run.go(plan).await
    })
}

/// Something that ends by itself.
#[derive(Debug, Clone, PartialEq)]
enum Ending {
    Fault(Account, FaultRule),
    Credential(Account),
    Token(Account),
    Hidden,
    Lag(Account),
    Life(Who),
}

struct Run {
    home: Home,
    cluster: Cluster,
    nature: Nature,
    managers: [Manager; 2],
    draw: Draw,
    endings: Vec<(Instant, Ending)>,
    began: Instant,
}

impl Run {
    async fn set_up(seed: u64, layout: Layout, with_history: bool) -> Result<Self> {
        let mut draw = Draw::new(seed ^ 0xC10D);
        let epoch: Timestamp = "2026-01-01T00:00:00Z".parse()?;
        let clock = TokioClock::starting_at(epoch);
        let api = EmbeddedApi::builder()
            .clock(Arc::new(clock))
            .seed(draw.seed())
            .keep_journal()
            .build();
        let clouds = Clouds::new(layout, &mut draw);
        let witness = Witness::new(api.clone(), clouds.clone(), clock);
        if with_history {
            witness.keep_history();
        }
        let cluster = Cluster::new(api.client("people"));
        let nature = Nature::new(
            cluster.clone(),
            clouds.clone(),
            clock,
            Draw::new(draw.seed()),
        );
        let managers = Who::BOTH.map(|who| Manager::new(who, clock));
        let mut run = Self {
            home: Home {
                api,
                clouds,
                witness,
            },
            cluster,
            nature,
            managers,
            draw,
            endings: Vec::new(),
            began: Instant::now(),
        };
        run.home.clouds.furnish()?;
        furnish_cluster(&run.cluster).await?;
        for machine in 0..FIRST_MACHINES {
            run.nature.join(machine).await?;
        }
        Ok(run)
    }

    async fn go(&mut self, plan: &Plan) -> Result<Verdict> {
        self.revive()?;
        self.pass(Duration::from_mins(2)).await?;
        self.began = Instant::now();
        for happening in &plan.happenings {
            let at = self.began + happening.at;
            self.pass(at.saturating_duration_since(Instant::now()))
                .await?;
            self.home
                .witness
                .note(format_args!("== {}", happening.action));
            self.happen(&happening.action).await?;
        }
        let end = self.began + TROUBLE;
        self.pass(end.saturating_duration_since(Instant::now()))
            .await?;
        self.heal().await?;
        self.settle().await?;
        self.stay_quiet().await?;
        let (_, _, steps) = self.home.witness.counts();
        Ok(Verdict {
            violations: self.home.witness.violations(),
            steps,
            history: self.home.witness.history(),
        })
    }

    async fn happen(&mut self, action: &Action) -> Result<()> {
        match action {
            Action::CloudTrouble { .. }
            | Action::SwapCredential { .. }
            | Action::LaggingCloud { .. } => self.trouble_cloud(Account::First, action),
            Action::InSecond(action) => self.trouble_cloud(Account::Second, action),
            Action::ReplaceToken { of, lasts } => {
                self.home.witness.reads_lie(*lasts);
                self.replace_token(*of, true);
                self.end_later(*lasts, Ending::Token(*of));
            }
            Action::Hide { machine, lasts } => {
                let hidden = self.nature.hide(*machine);
                self.home.witness.reads_lie(*lasts);
                self.show_machines();
                let cloud = self.home.clouds.of_machine(*machine);
                cloud.change_settings(|settings| settings.hidden = hidden);
                self.end_later(*lasts, Ending::Hidden);
            }
            Action::Outage { lasts } => {
                self.nature.cut_off(*lasts);
                for manager in &self.managers {
                    if let Some(way) = manager.way() {
                        way.cut(*lasts);
                    }
                }
            }
            _ => {
                self.trouble_manager(action);
                self.nature
                    .act(action)
                    .await
                    .with_context(|| action.to_string())?;
            }
        }
        Ok(())
    }

    fn trouble_cloud(&mut self, account: Account, action: &Action) {
        let cloud = self.home.clouds.of(account);
        match action {
            Action::CloudTrouble { on, fault, lasts } => {
                let rule = FaultRule {
                    on: on.map_or_else(FaultMatch::any, FaultMatch::from),
                    times: None,
                    fault: fault.clone(),
                };
                cloud.faults().add(rule.clone());
                if lies(fault) {
                    self.home.witness.reads_lie(*lasts);
                }
                self.end_later(*lasts, Ending::Fault(account, rule));
            }
            Action::SwapCredential { lasts } => {
                self.home.witness.reads_lie(*lasts);
                self.swap_credential(account, true);
                self.end_later(*lasts, Ending::Credential(account));
            }
            Action::LaggingCloud { by, lasts } => {
                let by = *by;
                self.home.witness.reads_lie(*lasts + by);
                cloud.change_settings(|settings| settings.consistency = Consistency::both(by));
                self.end_later(*lasts, Ending::Lag(account));
            }
            _ => {}
        }
    }

    fn trouble_manager(&mut self, action: &Action) {
        match *action {
            Action::Crash { who, back_after } => {
                self.manager(who).crash();
                self.end_later(back_after, Ending::Life(who));
            }
            Action::Stop { who, back_after } => {
                self.manager(who).stop();
                self.end_later(back_after, Ending::Life(who));
            }
            Action::JumpClock { who, seconds } => self.manager(who).clock.jump(seconds),
            Action::Trap { who, moment, nth } => {
                if let Some(fate) = self.manager(who).fate() {
                    fate.trap(moment, nth);
                }
            }
            Action::ApiTrouble {
                who,
                kind,
                percent,
                lasts,
            } => {
                if let Some(way) = self.manager(who).way() {
                    way.trouble(kind, percent, lasts);
                }
            }
            Action::Cut { who, lasts } => {
                if let Some(way) = self.manager(who).way() {
                    way.cut(lasts);
                }
            }
            Action::EndWatches(who) => {
                if let Some(way) = self.manager(who).way() {
                    way.end_watches();
                }
            }
            Action::StallWatches { who, lasts } => {
                if let Some(way) = self.manager(who).way() {
                    way.stall(lasts);
                }
            }
            _ => {}
        }
    }

    fn manager(&mut self, who: Who) -> &mut Manager {
        let [a, b] = &mut self.managers;
        match who {
            Who::A => a,
            Who::B => b,
        }
    }

    fn end_later(&mut self, lasts: Duration, ending: Ending) {
        self.endings.push((Instant::now() + lasts, ending));
    }

    fn swap_credential(&self, account: Account, swapped: bool) {
        let project = if swapped {
            OTHER_PROJECT
        } else {
            SimulatedCloud::PROJECT
        };
        self.home.clouds.set_project(account, project);
        self.home.witness.project_is_swapped(account, swapped);
    }

    fn replace_token(&self, account: Account, replaced: bool) {
        self.home.clouds.replace_token(account, replaced);
        self.home.witness.token_is_replaced(account, replaced);
    }

    /// Lets time pass, second by second.
    async fn pass(&mut self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        loop {
            let now = Instant::now();
            if now >= until {
                return Ok(());
            }
            tokio::time::sleep_until(until.min(now + SECOND)).await;
            self.end_what_is_over();
            self.revive()?;
            let second = self.began.elapsed().as_secs();
            self.nature.beat(second.is_multiple_of(10)).await?;
            self.home.witness.catch_up();
        }
    }

    fn end_what_is_over(&mut self) {
        let now = Instant::now();
        let over: Vec<_> = self
            .endings
            .extract_if(.., |(at, _)| *at <= now)
            .map(|(_, ending)| ending)
            .collect();
        for ending in over {
            self.end(&ending);
        }
    }

    fn end(&mut self, ending: &Ending) {
        match ending {
            Ending::Fault(account, rule) => {
                let faults = self.home.clouds.of(*account).faults();
                let mut rules = faults.rules();
                if let Some(place) = rules.iter().position(|other| other == rule) {
                    rules.remove(place);
                }
                faults.clear();
                for rule in rules {
                    faults.add(rule);
                }
            }
            Ending::Credential(account) => self.swap_credential(*account, self.lasts_on(ending)),
            Ending::Token(account) => self.replace_token(*account, self.lasts_on(ending)),
            Ending::Hidden if !self.lasts_on(ending) => self.show_everything(),
            Ending::Lag(account) if !self.lasts_on(ending) => {
                self.catch_up_with_the_truth(*account);
            }
            Ending::Hidden | Ending::Lag(_) | Ending::Life(_) => {}
        }
    }

    /// Whether the same is to end at another time too.
    fn lasts_on(&self, ending: &Ending) -> bool {
        self.endings.iter().any(|(_, other)| other == ending)
    }

    /// From now on no machine is hidden.
    fn show_everything(&mut self) {
        self.show_machines();
        self.nature.shield_nothing();
    }

    fn show_machines(&self) {
        for cloud in self.home.clouds.all() {
            cloud.change_settings(|settings| settings.hidden.clear());
        }
    }

    /// From now on reads do not lag.
    fn catch_up_with_the_truth(&self, account: Account) {
        let calm = settings_of_calm().consistency;
        let cloud = self.home.clouds.of(account);
        cloud.change_settings(|settings| settings.consistency = calm);
    }

    /// Starts managers that are dead, unless they are to stay so for a while.
    fn revive(&mut self) -> Result<()> {
        for who in Who::BOTH {
            let waits = self.endings.iter().any(|(_, e)| *e == Ending::Life(who));
            let place = who as usize;
            let Some(manager) = self.managers.get_mut(place) else {
                continue;
            };
            if manager.is_alive() || waits {
                continue;
            }
            if manager.has_lived() && !manager.is_buried() {
                // It ended by itself or ran into a trap: it comes back after a moment.
                manager.crash();
                self.end_later(RESTART, Ending::Life(who));
                continue;
            }
            manager.begin(&self.home, &mut self.draw)?;
        }
        Ok(())
    }

    /// From now on nothing goes wrong any more.
    async fn heal(&mut self) -> Result<()> {
        self.home.witness.note("== all trouble ends");
        self.show_everything();
        for account in self.home.clouds.layout.accounts() {
            self.home.clouds.of(*account).faults().clear();
            self.catch_up_with_the_truth(*account);
            self.swap_credential(*account, false);
            self.replace_token(*account, false);
        }
        self.endings.clear();
        for manager in &mut self.managers {
            manager.clock.put_right();
            if let Some(way) = manager.way() {
                way.heal();
            }
            if let Some(fate) = manager.fate() {
                fate.spring_no_trap();
            }
        }
        self.nature.let_go().await
    }

    async fn settle(&mut self) -> Result<()> {
        let healed = Instant::now();
        loop {
            self.pass(Duration::from_mins(2)).await?;
            let left = differences(&self.cluster, &self.home.clouds).await?;
            if left.is_empty() {
                return Ok(());
            }
            if healed.elapsed() > PATIENCE {
                for difference in left {
                    self.home.witness.object("everything converges", difference);
                }
                return Ok(());
            }
        }
    }

    /// Once all is well, nobody has anything to do.
    async fn stay_quiet(&mut self) -> Result<()> {
        // What was begun may end: drained targets, the last refresh.
        self.pass(Duration::from_mins(15)).await?;
        let before = self.home.witness.counts();
        self.pass(QUIET).await?;
        let after = self.home.witness.counts();
        let (writes, changes) = (after.0 - before.0, after.1 - before.1);
        if writes + changes > 0 {
            let what = format!("{writes} writes and {changes} changes in the cloud");
            self.home
                .witness
                .object("who has nothing to do does nothing", what);
        }
        let left = differences(&self.cluster, &self.home.clouds).await?;
        for difference in left {
            self.home
                .witness
                .object("what is right stays right", difference);
        }
        Ok(())
    }
}

/// Whether a fault shows something else than is there.
const fn lies(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::TruncatedPage
            | Fault::LostNextPage
            | Fault::EmptyList
            | Fault::Stale { .. }
            | Fault::OtherProject { .. }
            | Fault::Status { status: 404, .. }
            | Fault::BrokenAfter
    )
}
