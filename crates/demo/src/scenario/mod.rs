//! The guided scenario: a year of cloud events in two minutes.

mod checks;
mod failure_steps;
mod lifecycle_steps;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_page::{Step, StepState};
use tokio::time::Instant;

pub(crate) use self::checks::{SHUT_DOWN, has_taint, is_initialised, is_ready};
use crate::terminal::Terminal;
use crate::world::World;

/// A step of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScenarioStep {
    Join,
    Balance,
    PowerOff,
    Destroy,
    Outage,
    WrongToken,
    FailOver,
    Roll,
}

impl ScenarioStep {
    pub(crate) const ALL: [Self; 8] = [
        Self::Join,
        Self::Balance,
        Self::PowerOff,
        Self::Destroy,
        Self::Outage,
        Self::WrongToken,
        Self::FailOver,
        Self::Roll,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Balance => "balance",
            Self::PowerOff => "power-off",
            Self::Destroy => "destroy",
            Self::Outage => "outage",
            Self::WrongToken => "wrong-token",
            Self::FailOver => "fail-over",
            Self::Roll => "roll",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Join => "Machines join and their Nodes are initialized",
            Self::Balance => "A Service gets a load balancer and answers",
            Self::PowerOff => "A machine is switched off: its Node is tainted, and kept",
            Self::Destroy => "A machine is destroyed: its Node is removed",
            Self::Outage => "The cloud fails: no Node is deleted",
            Self::WrongToken => "The token sees another project: no Node is deleted",
            Self::FailOver => "The leader is killed: the other takes over",
            Self::Roll => "Every machine is replaced while the leader is killed once more",
        }
    }

    async fn play(self, context: &StepContext<'_>) -> Result<String, String> {
        match self {
            Self::Join => lifecycle_steps::join(context).await,
            Self::Balance => lifecycle_steps::balance(context).await,
            Self::PowerOff => lifecycle_steps::power_off(context).await,
            Self::Destroy => lifecycle_steps::destroy(context).await,
            Self::Outage => failure_steps::outage(context).await,
            Self::WrongToken => failure_steps::wrong_token(context).await,
            Self::FailOver => failure_steps::fail_over(context).await,
            Self::Roll => lifecycle_steps::roll(context).await,
        }
    }
}

/// What a step works with.
struct StepContext<'a> {
    world: &'a World,
    terminal: &'a Terminal,
    scenario: &'a Scenario,
}

impl StepContext<'_> {
    /// Prints what a step does.
    fn say(&self, line: &str) {
        self.terminal.detail(line);
    }
}

/// The outcome of the scenario so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScenarioResult {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// The scenario, shown on the page.
#[derive(Default)]
pub(crate) struct Scenario {
    steps: Mutex<Vec<Step>>,
    playing: AtomicBool,
    first_answer: Mutex<Option<Duration>>,
}

impl Scenario {
    pub(crate) fn steps(&self) -> Vec<Step> {
        let steps = self.steps.lock();
        steps.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_playing(&self) -> bool {
        self.playing.load(Ordering::Relaxed)
    }

    /// How long after the start of the demo the first request was answered.
    pub(crate) fn first_answer(&self) -> Option<Duration> {
        *self
            .first_answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn note_first_answer(&self, after: Duration) {
        let mut first = self
            .first_answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(after);
    }

    /// Runs these steps; `None` if the scenario is running already.
    pub(crate) async fn play(
        &self,
        world: &Arc<World>,
        terminal: &Terminal,
        steps: &[ScenarioStep],
    ) -> Option<ScenarioResult> {
        if self.playing.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.announce(steps);
        let context = StepContext {
            world,
            terminal,
            scenario: self,
        };
        let mut result = ScenarioResult {
            passed: 0,
            failed: 0,
        };
        for (index, step) in steps.iter().enumerate() {
            self.mark(index, StepState::Running, None);
            terminal.begin(index + 1, *step);
            let begun = Instant::now();
            let lost_before = world.traffic.count().lost;
            let outcome = step.play(&context).await;
            let outcome = outcome.and_then(|note| check_no_lost_requests(world, lost_before, note));
            terminal.end(*step, &outcome, begun.elapsed());
            match outcome {
                Ok(note) => {
                    result.passed += 1;
                    self.mark(index, StepState::Passed, Some(note));
                }
                Err(why) => {
                    result.failed += 1;
                    self.mark(index, StepState::Failed, Some(why));
                    // The next step must not suffer from what was broken here.
                    world.repair_cloud();
                }
            }
        }
        self.playing.store(false, Ordering::Relaxed);
        Some(result)
    }

    fn announce(&self, steps: &[ScenarioStep]) {
        let steps = steps.iter().map(|step| Step {
            title: step.title().to_owned(),
            ..Step::default()
        });
        let mut shown = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = steps.collect();
    }

    fn mark(&self, index: usize, state: StepState, note: Option<String>) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = steps.get_mut(index) {
            step.state = state;
            step.note = note;
        }
    }
}

/// No step may lose requests.
fn check_no_lost_requests(world: &World, before: u64, note: String) -> Result<String, String> {
    let count = world.traffic.count();
    if count.lost == before {
        return Ok(note);
    }
    let why = count.last_error.unwrap_or_default();
    Err(format!(
        "{} requests were lost meanwhile, the last because: {why}",
        count.lost - before
    ))
}
