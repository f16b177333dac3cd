//! Sees every write of the managers as it happens, knows the truth, and says what must never be.

mod cloud;
pub(crate) mod mirror;
mod rules;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{Clock as _, TokioClock};
use cloudkeel_embedded::{Call, Commit, EmbeddedApi};
use jiff::Timestamp;

use self::cloud::{CloudBefore, Sender};
use self::mirror::Mirror;
use crate::accounts::{Account, Clouds};
use crate::action::Who;

/// Whoever was lied to may still act on it.
const AFTER_A_LIE: Duration = Duration::from_mins(2);

/// Something that must never happen, and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When, in seconds since the beginning.
    pub second: i64,
    /// Which rule.
    pub rule: &'static str,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} s, {}: {}", self.second, self.rule, self.what)
    }
}

/// Watches the managers.
pub(crate) struct Witness {
    api: EmbeddedApi,
    clouds: Clouds,
    clock: TokioClock,
    began: Timestamp,
    seen: Mutex<Seen>,
}

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Seen {
    /// How much of the journal was read.
    read: usize,
    mirror: Mirror,
    violations: Vec<Violation>,
    /// When Nodes of an account were deleted without being announced, by the manager that did.
    deletions: Vec<(String, Account, Timestamp)>,
    /// Until when what the cloud shows may differ from what it is.
    reads_lie_until: Option<Timestamp>,
    /// Since when every token of an account sees another project there.
    project_swapped: [Option<Timestamp>; 2],
    /// Since when the token of an account is that of the other one.
    token_replaced: [Option<Timestamp>; 2],
    /// Who each manager is in this life.
    identities: [Option<String>; 2],
    /// Writes to objects, without leases and events.
    writes: u64,
    /// Calls that change something in the cloud.
    mutations: u64,
    steps: u64,
    history: Option<Vec<String>>,
}

impl Seen {
    /// Since when an account is seen wrongly: its token sees another project, or the other account.
    fn misled_since(&self, account: Account) -> Option<Timestamp> {
        let place = account as usize;
        self.token_replaced[place].or(self.project_swapped[place])
    }
}

impl Witness {
    pub(crate) fn new(api: EmbeddedApi, clouds: Clouds, clock: TokioClock) -> Arc<Self> {
        Arc::new(Self {
            api,
            clouds,
            began: clock.now(),
            clock,
            seen: Mutex::default(),
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down everything that is seen from now on.
    pub(crate) fn keep_history(&self) {
        self.seen().history = Some(Vec::new());
    }

    pub(crate) fn history(&self) -> Vec<String> {
        self.seen().history.clone().unwrap_or_default()
    }

    pub(crate) fn note(&self, text: impl fmt::Display) {
        let second = self.second();
        if let Some(history) = &mut self.seen().history {
            history.push(format!("{second:>6} s  {text}"));
        }
    }

    /// A manager begins a life under this name.
    pub(crate) fn begins(&self, who: Who, identity: &str) {
        self.seen().identities[who as usize] = Some(identity.to_owned());
    }

    /// Whether tokens see another project of this account.
    pub(crate) fn project_is_swapped(&self, account: Account, swapped: bool) {
        let now = self.now();
        let since = &mut self.seen().project_swapped[account as usize];
        *since = swapped.then(|| since.unwrap_or(now));
    }

    /// Whether the token of this account is that of the other one.
    pub(crate) fn token_is_replaced(&self, account: Account, replaced: bool) {
        let now = self.now();
        let since = &mut self.seen().token_replaced[account as usize];
        *since = replaced.then(|| since.unwrap_or(now));
    }

    /// For so long, and a moment after, the cloud may show something else than it is.
    pub(crate) fn reads_lie(&self, lasts: Duration) {
        let until = self.now().checked_add(lasts + AFTER_A_LIE).ok();
        let mut seen = self.seen();
        seen.reads_lie_until = seen.reads_lie_until.max(until);
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn second(&self) -> i64 {
        self.now().as_second() - self.began.as_second()
    }

    /// A request was carried out.
    pub(crate) fn asked_api(&self, who: Who, call: &Call, code: u16) {
        self.catch_up();
        self.seen().steps += 1;
        if call.verb.writes() && !is_chatter(&call.resource) {
            let name = call.name.as_deref().unwrap_or_default();
            let what = call.subresource.as_deref().unwrap_or(&call.resource);
            let (verb, body) = (call.verb.as_str(), &call.body);
            let who = who.name();
            self.note(format_args!("{who}: {verb} {what} {name} = {code} {body}"));
        }
    }

    /// Reads what was committed since the last time, and judges it.
    pub(crate) fn catch_up(&self) {
        let (mut seen, second) = (self.seen(), self.second());
        let new: Vec<Arc<Commit>> = self.api.journal_from(seen.read);
        for commit in new {
            seen.read += 1;
            self.judge(&mut seen, &commit, second);
            seen.mirror.follow(&commit);
        }
    }

    fn judge(&self, seen: &mut Seen, commit: &Commit, second: i64) {
        let Some(who) = Who::BOTH.into_iter().find(|who| who.name() == &*commit.by) else {
            return;
        };
        if is_chatter(commit.resource) {
            return;
        }
        seen.writes += 1;
        for (rule, what) in rules::broken_by(seen, &self.clouds, who, commit) {
            seen.violations.push(Violation { second, rule, what });
        }
    }

    /// A request to the cloud begins.
    pub(crate) fn asks_cloud(
        &self,
        who: Who,
        account: Account,
        reached: Account,
        request: &http::Request<bytes::Bytes>,
    ) -> CloudBefore {
        self.catch_up();
        let now = self.now();
        let second = self.second();
        let mut seen = self.seen();
        seen.steps += 1;
        let sender = Sender {
            who,
            account,
            reached,
        };
        let before = CloudBefore::of(sender, request, &self.clouds);
        if before.is_change() {
            seen.mutations += 1;
        }
        for (rule, what) in cloud::broken_by_asking(&seen, &before, now) {
            seen.violations.push(Violation { second, rule, what });
        }
        before
    }

    /// And ends.
    pub(crate) fn cloud_answered(&self, before: &CloudBefore, status: u16, is_refused: bool) {
        let now = self.now();
        if before.is_change() {
            self.note(format_args!("{before} = {status}"));
        }
        let second = self.second();
        let mut seen = self.seen();
        let done = (200..300).contains(&status) && !is_refused;
        for (rule, what) in cloud::broken_by_answer(&seen, before, done, &self.clouds, now) {
            seen.violations.push(Violation { second, rule, what });
        }
    }

    /// Something that is not as it should be at the end.
    pub(crate) fn object(&self, rule: &'static str, what: impl fmt::Display) {
        let second = self.second();
        self.seen().violations.push(Violation {
            second,
            rule,
            what: what.to_string(),
        });
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.seen().violations.clone()
    }

    /// Writes, changes in the cloud, and all requests so far.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let seen = self.seen();
        (seen.writes, seen.mutations, seen.steps)
    }
}

/// What may be written at any time: the election itself, and what is told about it.
fn is_chatter(resource: &str) -> bool {
    matches!(resource, "leases" | "events")
}
