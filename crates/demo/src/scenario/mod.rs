//! The guided scenario: what a cloud does to a cluster in a year, in two minutes.

mod look;
mod roll;
mod story;
mod trouble;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_page::{Step, StepState};
use tokio::time::Instant;

pub(crate) use self::look::{SHUT_DOWN, has_taint, is_initialised, is_ready};
use crate::screen::Screen;
use crate::world::World;

/// A part of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chapter {
    Join,
    Balance,
    PowerOff,
    Destroy,
    Outage,
    WrongToken,
    FailOver,
    Roll,
}

impl Chapter {
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
            Self::Join => "Machines join and their Nodes are initialised",
            Self::Balance => "A Service gets a load balancer and answers",
            Self::PowerOff => "A machine is switched off: its Node is tainted, and kept",
            Self::Destroy => "A machine is destroyed: its Node is removed",
            Self::Outage => "The cloud fails: no Node is deleted",
            Self::WrongToken => "The token sees another project: no Node is deleted",
            Self::FailOver => "The leader is killed: the other takes over",
            Self::Roll => "Every machine is replaced while the leader is killed once more",
        }
    }

    async fn play(self, stage: &Stage<'_>) -> Result<String, String> {
        match self {
            Self::Join => story::join(stage).await,
            Self::Balance => story::balance(stage).await,
            Self::PowerOff => story::power_off(stage).await,
            Self::Destroy => story::destroy(stage).await,
            Self::Outage => trouble::outage(stage).await,
            Self::WrongToken => trouble::wrong_token(stage).await,
            Self::FailOver => trouble::fail_over(stage).await,
            Self::Roll => roll::roll(stage).await,
        }
    }
}

/// Where a chapter is played.
struct Stage<'a> {
    world: &'a World,
    screen: &'a Screen,
    scenario: &'a Scenario,
}

impl Stage<'_> {
    /// What a chapter does, for those who watch.
    fn say(&self, line: &str) {
        self.screen.detail(line);
    }
}

/// How the scenario went, as far as it was played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// The scenario, for the page and for whoever plays it.
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

    /// Plays these chapters; `None` if it is being played already.
    pub(crate) async fn play(
        &self,
        world: &Arc<World>,
        screen: &Screen,
        chapters: &[Chapter],
    ) -> Option<Verdict> {
        if self.playing.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.announce(chapters);
        let stage = Stage {
            world,
            screen,
            scenario: self,
        };
        let mut verdict = Verdict {
            passed: 0,
            failed: 0,
        };
        for (index, chapter) in chapters.iter().enumerate() {
            self.mark(index, StepState::Running, None);
            screen.begin(index + 1, *chapter);
            let begun = Instant::now();
            let lost_before = world.traffic.count().lost;
            let outcome = chapter.play(&stage).await;
            let outcome = outcome.and_then(|note| nothing_lost(world, lost_before, note));
            screen.end(*chapter, &outcome, begun.elapsed());
            match outcome {
                Ok(note) => {
                    verdict.passed += 1;
                    self.mark(index, StepState::Passed, Some(note));
                }
                Err(why) => {
                    verdict.failed += 1;
                    self.mark(index, StepState::Failed, Some(why));
                    // What comes next must not suffer from what was broken here.
                    world.mend_cloud();
                }
            }
        }
        self.playing.store(false, Ordering::Relaxed);
        Some(verdict)
    }

    fn announce(&self, chapters: &[Chapter]) {
        let steps = chapters.iter().map(|chapter| Step {
            title: chapter.title().to_owned(),
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

/// Whatever a chapter does, traffic goes on.
fn nothing_lost(world: &World, before: u64, note: String) -> Result<String, String> {
    let count = world.traffic.count();
    if count.lost == before {
        return Ok(note);
    }
    let why = count.complaint.unwrap_or_default();
    Err(format!(
        "{} requests were lost meanwhile, the last because: {why}",
        count.lost - before
    ))
}
