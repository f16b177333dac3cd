//! Work that takes time: it runs, ends well or badly, and locks what it changes meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// How many jobs are remembered once they are over.
const REMEMBERED: usize = 10_000;

/// A resource: its kind, and its key among those of this kind.
pub type ResourceRef<K> = (&'static str, K);

/// One piece of work, running or over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<K = u64> {
    /// Its ID.
    pub id: K,
    /// What is done.
    pub command: &'static str,
    /// What it is done to. The first is locked while the job runs.
    pub resources: Vec<ResourceRef<K>>,
    /// When it began.
    pub started: Instant,
    /// When it ended.
    pub finished: Option<Instant>,
    due: Instant,
    failure: Option<String>,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStatus {
    /// It is under way.
    Running,
    /// It is over and had its effect.
    Succeeded,
    /// It is over and had none.
    Failed,
}

impl<K: PartialEq> Job<K> {
    /// How far it is.
    pub const fn status(&self) -> JobStatus {
        match (self.finished.is_some(), self.failure.is_some()) {
            (false, _) => JobStatus::Running,
            (true, false) => JobStatus::Succeeded,
            (true, true) => JobStatus::Failed,
        }
    }

    /// The error in which it ended.
    pub fn error(&self) -> Option<&str> {
        self.failure.as_deref().filter(|_| self.finished.is_some())
    }

    /// How much of it is done, in per cent: below 100 while it runs.
    pub fn progress(&self, now: Instant) -> u8 {
        if self.finished.is_some() {
            return 100;
        }
        let done = now.saturating_duration_since(self.started).as_millis();
        let all = self.due.saturating_duration_since(self.started).as_millis();
        let percent = (done * 100).checked_div(all).unwrap_or(0).min(99);
        u8::try_from(percent).unwrap_or(99)
    }
}

/// A job that is about to begin.
#[derive(Debug, Clone)]
pub struct NewJob<K = u64> {
    /// Its ID.
    pub id: K,
    /// What is done.
    pub command: &'static str,
    /// What it is done to. The first is locked while the job runs.
    pub resources: Vec<ResourceRef<K>>,
    /// How long it takes. Without a duration it is over at once.
    pub duration: Duration,
    /// The error in which it will end, if it will.
    pub failure: Option<String>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy)]
pub struct JobEnd<'a> {
    /// When.
    pub at: Instant,
    /// In which error, if it failed.
    pub error: Option<&'a str>,
}

type OnEnd<S> = Box<dyn FnOnce(&mut S, JobEnd<'_>) + Send>;

struct Pending<S, K> {
    id: K,
    order: u64,
    due: Instant,
    on_end: OnEnd<S>,
}

impl<S, K: fmt::Debug> fmt::Debug for Pending<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("id", &self.id)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

/// The jobs that change a state of type `S`.
#[derive(Debug)]
pub struct Jobs<S, K = u64> {
    records: BTreeMap<K, Job<K>>,
    /// In the order in which they began.
    ids: VecDeque<K>,
    pending: Vec<Pending<S, K>>,
    begun: u64,
}

impl<S, K> Default for Jobs<S, K> {
    fn default() -> Self {
        Self {
            records: BTreeMap::new(),
            ids: VecDeque::new(),
            pending: Vec::new(),
            begun: 0,
        }
    }
}

impl<S, K: Ord + Clone> Jobs<S, K> {
    /// The job of this ID.
    pub fn get(&self, id: &K) -> Option<&Job<K>> {
        self.records.get(id)
    }

    /// All jobs that are remembered, in the order in which they began.
    pub fn iter(&self) -> impl Iterator<Item = &Job<K>> {
        self.ids.iter().filter_map(|id| self.records.get(id))
    }

    /// The running job that locks a resource.
    pub fn lock_on(&self, resource: &ResourceRef<K>) -> Option<&Job<K>> {
        let mut running = self
            .pending
            .iter()
            .filter_map(|job| self.records.get(&job.id));
        running.find(|job| job.resources.first() == Some(resource))
    }

    fn add(&mut self, new: NewJob<K>, now: Instant, on_end: OnEnd<S>) {
        let job = Job {
            id: new.id.clone(),
            command: new.command,
            resources: new.resources,
            started: now,
            finished: None,
            due: now + new.duration,
            failure: new.failure,
        };
        self.begun += 1;
        self.pending.push(Pending {
            id: new.id.clone(),
            order: self.begun,
            due: job.due,
            on_end,
        });
        self.ids.push_back(new.id.clone());
        self.records.insert(new.id, job);
        self.forget_oldest();
    }

    /// The oldest go first, unless they are still running.
    fn forget_oldest(&mut self) {
        while self.ids.len() > REMEMBERED
            && let Some(oldest) = self.ids.front()
            && self
                .records
                .get(oldest)
                .is_none_or(|job| job.finished.is_some())
        {
            self.records.remove(oldest);
            self.ids.pop_front();
        }
    }

    /// Takes out the job that is due first, and says how it ended.
    fn end_next(&mut self, now: Instant) -> Option<(Instant, Option<String>, OnEnd<S>)> {
        let due = self.pending.iter().enumerate();
        let (at, _) = due
            .filter(|(_, job)| job.due <= now)
            .min_by_key(|(_, job)| (job.due, job.order))?;
        let ended = self.pending.swap_remove(at);
        let job = self.records.get_mut(&ended.id)?;
        job.finished = Some(ended.due);
        Some((ended.due, job.failure.clone(), ended.on_end))
    }
}

/// A state that jobs change.
pub trait RunsJobs: Sized + 'static {
    /// What its jobs and resources are known by.
    type Key: Ord + Clone;

    /// Its jobs.
    fn jobs(&mut self) -> &mut Jobs<Self, Self::Key>;

    /// Begins a job that has this effect when it ends well. If it takes no time, it is over when this returns.
    fn begin(
        &mut self,
        new: NewJob<Self::Key>,
        now: Instant,
        on_success: impl FnOnce(&mut Self, Instant) + Send + 'static,
    ) -> Option<Job<Self::Key>> {
        self.begin_with(new, now, |state, end| {
            if end.error.is_none() {
                on_success(state, end.at);
            }
        })
    }

    /// The same with an effect however it ends.
    fn begin_with(
        &mut self,
        new: NewJob<Self::Key>,
        now: Instant,
        on_end: impl FnOnce(&mut Self, JobEnd<'_>) + Send + 'static,
    ) -> Option<Job<Self::Key>> {
        let id = new.id.clone();
        self.jobs().add(new, now, Box::new(on_end));
        self.advance(now);
        self.jobs().get(&id).cloned()
    }

    /// Ends every job that is due by now, each at its own moment.
    fn advance(&mut self, now: Instant) {
        while let Some((at, error, on_end)) = self.jobs().end_next(now) {
            let error = error.as_deref();
            on_end(self, JobEnd { at, error });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Default)]
    struct Disks {
        jobs: Jobs<Self>,
        log: Vec<String>,
    }

    impl RunsJobs for Disks {
        type Key = u64;

        fn jobs(&mut self) -> &mut Jobs<Self> {
            &mut self.jobs
        }
    }

    impl Disks {
        fn grow(&mut self, id: u64, disk: u64, seconds: u32, failure: Option<&str>, at: Instant) {
            let new = NewJob {
                id,
                command: "grow",
                resources: vec![("disk", disk)],
                duration: SECOND * seconds,
                failure: failure.map(str::to_owned),
            };
            self.begin_with(new, at, move |disks, end| {
                let how = end.error.unwrap_or("done");
                disks.log.push(format!("{id} {how}"));
            });
        }
    }

    #[test]
    fn jobs_end_in_order_and_lock_meanwhile() {
        let start = Instant::now();
        let mut disks = Disks::default();
        disks.grow(1, 7, 10, None, start);
        disks.grow(2, 8, 5, Some("full"), start);
        disks.grow(3, 9, 0, None, start);
        assert_eq!(
            disks.log,
            ["3 done"],
            "without a duration it is over at once"
        );
        let job = disks.jobs.lock_on(&("disk", 7)).unwrap();
        assert_eq!((job.id, job.status()), (1, JobStatus::Running));
        assert_eq!(job.progress(start + SECOND * 5), 50);
        assert!(disks.jobs.lock_on(&("disk", 9)).is_none());
        disks.advance(start + SECOND * 60);
        assert_eq!(disks.log, ["3 done", "2 full", "1 done"]);
        let failed = disks.jobs.get(&2).unwrap();
        assert_eq!(
            (failed.status(), failed.error()),
            (JobStatus::Failed, Some("full"))
        );
        assert_eq!(
            failed.finished,
            Some(start + SECOND * 5),
            "at its own moment"
        );
        assert!(disks.jobs.lock_on(&("disk", 7)).is_none());
    }

    #[test]
    fn what_is_long_over_is_forgotten_and_what_runs_is_not() {
        let start = Instant::now();
        let mut disks = Disks::default();
        disks.grow(0, 1, 1, None, start);
        for id in 1..=REMEMBERED as u64 {
            disks.grow(id, 2, 0, None, start);
        }
        assert_eq!(disks.jobs.iter().count(), REMEMBERED + 1);
        disks.advance(start + SECOND);
        disks.grow(REMEMBERED as u64 + 1, 2, 0, None, start);
        assert_eq!(disks.jobs.iter().next().map(|job| job.id), Some(2));
    }
}
