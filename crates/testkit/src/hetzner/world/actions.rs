//! Work that takes time.

use std::fmt;
use std::net::Ipv4Addr;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::refusal::Refusal;
use super::super::rest::wire_time;
use super::{Moment, Project};

/// How many actions of a project are remembered once they are over.
const REMEMBERED: usize = 10_000;

/// A piece of work on some things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Action {
    pub(in super::super) id: u64,
    pub(in super::super) command: &'static str,
    pub(in super::super) started: Timestamp,
    finished: Option<Timestamp>,
    /// The code of the error that it ends in, if it does.
    error: Option<String>,
    /// What it is about: kinds and numbers. The first is locked while it runs.
    pub(in super::super) resources: Vec<(&'static str, u64)>,
    begun: Instant,
    due: Instant,
}

impl Action {
    /// `running`, `success` or `error`.
    pub(in super::super) const fn status(&self) -> &'static str {
        match (self.finished.is_some(), self.error.is_some()) {
            (false, _) => "running",
            (true, false) => "success",
            (true, true) => "error",
        }
    }

    fn progress(&self, now: Instant) -> u128 {
        if self.finished.is_some() {
            return 100;
        }
        let done = now.saturating_duration_since(self.begun).as_millis();
        let all = self.due.saturating_duration_since(self.begun).as_millis();
        (done * 100).checked_div(all).unwrap_or(0).min(99)
    }

    pub(in super::super) fn wire(&self, now: Instant) -> Value {
        let resources = self.resources.iter();
        let resources = resources.map(|(kind, id)| json!({"id": id, "type": kind}));
        json!({
            "id": self.id,
            "command": self.command,
            "status": self.status(),
            "progress": self.progress(now),
            "started": wire_time(self.started),
            "finished": self.finished.map(wire_time),
            "resources": resources.collect::<Vec<_>>(),
            "error": self.error.as_deref().filter(|_| self.finished.is_some()).map(|code| json!({
                "code": code,
                "message": format!("the action ended in {code}"),
            })),
        })
    }
}

/// What changes when an action ends well.
type Change = Box<dyn FnOnce(&mut Project, Moment) + Send>;

/// What is left to do when an action ends.
pub(super) struct Pending {
    action: u64,
    due: Instant,
    /// The place in a network that it will take, which nobody else may have meanwhile.
    pub(super) place: Option<(u64, Ipv4Addr)>,
    on_success: Change,
    on_error: Option<Change>,
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("action", &self.action)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

/// Work that is about to begin.
#[derive(Debug)]
pub(in super::super) struct Work {
    pub(in super::super) id: u64,
    pub(in super::super) command: &'static str,
    pub(in super::super) resources: Vec<(&'static str, u64)>,
    /// How it will fail, if it will.
    pub(in super::super) failure: Option<String>,
    /// The place in a network that it will take, if it will.
    pub(in super::super) place: Option<(u64, Ipv4Addr)>,
    pub(in super::super) begun: Moment,
    pub(in super::super) due: Moment,
}

impl Project {
    /// Begins some work. If it takes no time, it is over when this returns.
    pub(in super::super) fn begin(
        &mut self,
        work: Work,
        on_success: impl FnOnce(&mut Self, Moment) + Send + 'static,
        on_error: Option<Change>,
    ) -> Action {
        let action = Action {
            id: work.id,
            command: work.command,
            started: work.begun.time,
            finished: None,
            error: work.failure,
            resources: work.resources,
            begun: work.begun.instant,
            due: work.due.instant,
        };
        self.actions.insert(action.id, action.clone());
        self.forget_actions();
        self.pending.push(Pending {
            action: action.id,
            due: action.due,
            place: work.place,
            on_success: Box::new(on_success),
            on_error,
        });
        self.advance(work.begun);
        self.actions.get(&action.id).cloned().unwrap_or(action)
    }

    /// Ends all work that is due.
    pub(super) fn advance(&mut self, now: Moment) {
        loop {
            let due = self.pending.iter().enumerate();
            let next = due
                .filter(|(_, pending)| pending.due <= now.instant)
                .min_by_key(|(_, pending)| (pending.due, pending.action))
                .map(|(at, _)| at);
            let Some(at) = next else { return };
            let pending = self.pending.swap_remove(at);
            self.finish(pending, now);
        }
    }

    fn finish(&mut self, pending: Pending, now: Moment) {
        let at = now.back_to(pending.due);
        let Some(action) = self.actions.get_mut(&pending.action) else {
            return;
        };
        action.finished = Some(at.time);
        if action.error.is_none() {
            (pending.on_success)(self, at);
        } else if let Some(on_error) = pending.on_error {
            on_error(self, at);
        }
    }

    /// The oldest go first, unless they are still running.
    fn forget_actions(&mut self) {
        while self.actions.len() > REMEMBERED
            && let Some(oldest) = self.actions.first_entry()
            && oldest.get().finished.is_some()
        {
            oldest.remove();
        }
    }

    /// Refuses while work on this thing is running.
    pub(in super::super) fn check_unlocked(
        &self,
        thing: (&'static str, u64),
    ) -> Result<(), Refusal> {
        let running = self.pending.iter();
        let mut running = running.filter_map(|pending| self.actions.get(&pending.action));
        match running.find(|action| action.resources.first() == Some(&thing)) {
            None => Ok(()),
            Some(action) => Err(Refusal::new(
                "locked",
                format!(
                    "{} {} is locked: action {} ({}) is running",
                    thing.0, thing.1, action.id, action.command
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{HetznerCloud, Settings};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_long_over_is_forgotten_and_what_runs_is_not() {
        let cloud = HetznerCloud::new(Settings::default());
        let left = cloud.in_project(HetznerCloud::PROJECT, |scene| {
            let mut slow = scene.work("slow", vec![("server", 1)]);
            slow.due = slow.due.plus(std::time::Duration::from_secs(1));
            scene.project.begin(slow, |_, _| {}, None);
            for _ in 0..REMEMBERED {
                let work = scene.work("quick", vec![("server", 2)]);
                scene.project.begin(work, |_, _| {}, None);
            }
            assert_eq!(scene.project.actions.len(), REMEMBERED + 1);
            assert!(scene.project.check_unlocked(("server", 1)).is_err());
            let later = scene.now.plus(std::time::Duration::from_secs(1));
            scene.project.advance(later);
            assert!(scene.project.check_unlocked(("server", 1)).is_ok());
            let work = scene.work("last", vec![("server", 2)]);
            scene.project.begin(work, |_, _| {}, None);
            Ok(scene.project.actions.values().next().map(|a| a.command))
        });
        assert_eq!(left.unwrap(), Some("quick"));
    }
}
