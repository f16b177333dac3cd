//! Many seeds, several at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cloudkeel_simulation::{
    Bug, FaultCounts, Invariant, Outcome, Plan, can_show, is_found, play_with,
};

/// Seeds to be played.
pub(crate) struct Campaign {
    pub(crate) from: u64,
    pub(crate) seeds: u64,
    pub(crate) jobs: usize,
    pub(crate) bug: Option<Bug>,
}

/// What came of them.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) from: u64,
    pub(crate) played: u64,
    pub(crate) steps: u64,
    pub(crate) actions: u64,
    pub(crate) took: Duration,
    pub(crate) bug: Option<Bug>,
    /// How often each class of faults had an effect.
    pub(crate) met: FaultCounts,
    /// Seeds that went wrong, in order. With a planted bug: those that found it.
    pub(crate) failed: Vec<(u64, Outcome)>,
}

impl Found {
    /// How many seeds broke each invariant.
    pub(crate) fn failures_by_invariant(&self) -> BTreeMap<Invariant, u64> {
        let mut seeds = BTreeMap::new();
        for (_, outcome) in &self.failed {
            let violations = outcome.violations.iter();
            let broken: BTreeSet<_> = violations.map(|violation| violation.invariant).collect();
            for invariant in broken {
                *seeds.entry(invariant).or_default() += 1;
            }
        }
        seeds
    }

    #[expect(clippy::cast_precision_loss, reason = "it is rounded for people")]
    pub(crate) fn seeds_per_minute(&self) -> f64 {
        let minutes = self.took.as_secs_f64() / 60.0;
        if minutes > 0.0 {
            self.played as f64 / minutes
        } else {
            0.0
        }
    }
}

/// A planted bug by its name.
pub(crate) fn bug_named(name: Option<&str>) -> Result<Option<Bug>> {
    let Some(name) = name else {
        return Ok(None);
    };
    let found = Bug::ALL.into_iter().find(|bug| bug.name() == name);
    if found.is_none() {
        let known: Vec<_> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        bail!("--bug {name:?}: expected one of {}", known.join(", "));
    }
    Ok(found)
}

impl Campaign {
    pub(crate) fn play(&self) -> Result<Found> {
        let (from, last) = (self.from, self.from + self.seeds.max(1) - 1);
        eprintln!(
            "seeds {from} to {last}; the same again: --from {from} --seeds {}",
            self.seeds
        );
        let began = Instant::now();
        let next = AtomicU64::new(self.from);
        let found = Mutex::new(Found {
            bug: self.bug,
            from,
            ..Found::default()
        });
        let played: Result<Vec<()>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs)
                .map(|_| scope.spawn(|| self.play_next(&next, &found, began)))
                .collect();
            let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
            ended
                .map(|ended| ended.unwrap_or_else(|_| bail!("a run panicked; see above")))
                .collect()
        });
        played?;
        let mut found = found.into_inner()?;
        found.took = began.elapsed();
        found.failed.sort_by_key(|(seed, _)| *seed);
        Ok(found)
    }

    fn play_next(&self, next: &AtomicU64, found: &Mutex<Found>, began: Instant) -> Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.from + self.seeds {
                return Ok(());
            }
            let plan = Plan::of_seed(seed);
            if self.bug.is_some_and(|bug| !can_show(bug, &plan)) {
                continue;
            }
            let outcome = play_with(seed, &plan, self.bug, false)?;
            let Ok(mut found) = found.lock() else {
                bail!("another run panicked");
            };
            found.played += 1;
            found.steps += outcome.steps;
            found.actions += plan.len() as u64;
            for (class, times) in &outcome.met {
                *found.met.entry(*class).or_default() += times;
            }
            let has_failed = match self.bug {
                None => !outcome.violations.is_empty(),
                Some(bug) => is_found(bug, &outcome.violations),
            };
            if has_failed {
                found.failed.push((seed, outcome));
                if self.bug.is_some() {
                    // It is found: that is all there was to know.
                    next.store(u64::MAX / 2, Ordering::Relaxed);
                }
            }
            show_progress(&found, self.seeds, began);
        }
    }
}

/// How many seeds a line of a log stands for.
const SEEDS_PER_LINE: u64 = 50;

/// One line that is overwritten on a terminal; in a log, a line now and then.
fn show_progress(found: &Found, seeds: u64, began: Instant) {
    let mut screen = std::io::stderr();
    let (played, failed) = (found.played, found.failed.len());
    let seconds = began.elapsed().as_secs();
    let line = format!("{played}/{seeds} seeds, {failed} failed, {seconds} s");
    // A terminal that is gone is no reason to stop.
    let _ = if screen.is_terminal() {
        let end = if played == seeds { "\n" } else { " " };
        write!(screen, "\r{line}{end}")
    } else if played.is_multiple_of(SEEDS_PER_LINE) {
        let failed: Vec<u64> = found.failed.iter().map(|(seed, _)| *seed).collect();
        writeln!(screen, "{line} {failed:?}")
    } else {
        Ok(())
    };
}
