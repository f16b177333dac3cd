//! Checks every write of the managers, and every call to the cloud, against what must always hold.

mod cloud_calls;
mod invariant;
pub(crate) mod objects;
mod writes;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudkeel_api::{Clock as _, TokioClock};
use cloudkeel_embedded::{Call, Commit, EmbeddedApi};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use self::cloud_calls::{CloudBefore, Sender};
pub use self::invariant::Invariant;
use self::objects::Objects;
use crate::accounts::{Account, Clouds};
use crate::action::ManagerId;
use crate::crash::Frozen;
use crate::fault_class::{FaultClass, FaultCounts};

/// A manager may still act on what it was shown so long ago.
const STALE_READ_GRACE: Duration = Duration::from_mins(2);
const STALE_READ_GRACE_SIGNED: SignedDuration = SignedDuration::from_mins(2);

/// Something that must never happen, and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When, in seconds since the beginning.
    pub second: i64,
    /// What did not hold.
    pub invariant: Invariant,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "after {} s, {}: {}",
            self.second, self.invariant, self.what
        )
    }
}

/// Watches the managers.
pub(crate) struct Checker {
    api: EmbeddedApi,
    clouds: Clouds,
    clock: TokioClock,
    began: Timestamp,
    state: Mutex<CheckerState>,
}

/// What was seen so far.
#[derive(Default)]
pub(crate) struct CheckerState {
    /// How much of the journal was read.
    read: usize,
    objects: Objects,
    violations: Vec<Violation>,
    /// When Nodes of an account were deleted without being announced, by the manager that did.
    deletions: Vec<(String, Account, Timestamp)>,
    /// Until when what the cloud shows may differ from what it is.
    stale_reads_until: Option<Timestamp>,
    /// Since when every token of an account sees another project there.
    project_swapped: [Option<Timestamp>; 3],
    /// Since when the token of an account is that of another one.
    token_replaced: [Option<Timestamp>; 3],
    /// The names of each manager in the lease: one for each start, and since when.
    identities: BTreeMap<ManagerId, Vec<(Timestamp, String)>>,
    /// When each manager crashed last.
    crashed: BTreeMap<ManagerId, Timestamp>,
    met: FaultCounts,
    /// Writes to objects, without leases and events.
    writes: u64,
    /// Calls that change something in the cloud.
    mutations: u64,
    steps: u64,
    history: Option<Vec<String>>,
}

impl CheckerState {
    /// The name of a manager in the lease at this time.
    fn identity_at(&self, manager_id: ManagerId, at: Timestamp) -> Option<&str> {
        let identities = self.identities.get(&manager_id)?;
        let later = identities.partition_point(|(since, _)| *since <= at);
        let (_, identity) = identities.get(later.checked_sub(1)?)?;
        Some(identity)
    }

    /// Since when the token of an account sees another project, or another account.
    fn misled_since(&self, account: Account) -> Option<Timestamp> {
        let place = account as usize;
        self.token_replaced[place].or(self.project_swapped[place])
    }
}

impl Checker {
    pub(crate) fn new(api: EmbeddedApi, clouds: Clouds, clock: TokioClock) -> Arc<Self> {
        Arc::new(Self {
            api,
            clouds,
            began: clock.now(),
            clock,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, CheckerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down everything that is seen from now on.
    pub(crate) fn keep_history(&self) {
        self.state().history = Some(Vec::new());
    }

    pub(crate) fn history(&self) -> Vec<String> {
        self.state().history.clone().unwrap_or_default()
    }

    pub(crate) fn note(&self, text: impl fmt::Display) {
        let second = self.second();
        if let Some(history) = &mut self.state().history {
            history.push(format!("{second:>6} s  {text}"));
        }
    }

    /// A manager starts under this name.
    pub(crate) fn manager_started(&self, manager_id: ManagerId, identity: &str) {
        let start = (self.now(), identity.to_owned());
        let mut state = self.state();
        state.identities.entry(manager_id).or_default().push(start);
    }

    /// A manager is gone.
    pub(crate) fn manager_crashed(&self, manager_id: ManagerId) {
        let now = self.now();
        self.state().crashed.insert(manager_id, now);
    }

    /// A manager that stood still runs on.
    pub(crate) fn manager_woke(&self, manager_id: ManagerId, frozen: Frozen) {
        self.catch_up();
        self.met(FaultClass::Freeze);
        self.note(format_args!("{} runs on", manager_id.name()));
        if frozen.led && self.has_other_leader(manager_id) {
            self.met(FaultClass::FreezePastLease);
        }
    }

    /// Whether the lease is held, and not by this process of a manager.
    fn has_other_leader(&self, manager_id: ManagerId) -> bool {
        let (now, state) = (self.now(), self.state());
        let lease = state.objects.lease_at(now);
        lease.is_some_and(|lease| Some(lease.holder.as_str()) != state.identity_at(manager_id, now))
    }

    /// Whether a manager holds the lease, by this time.
    pub(crate) fn leads(&self, manager_id: ManagerId) -> bool {
        self.catch_up();
        let (now, state) = (self.now(), self.state());
        writes::without_lease(&state, manager_id, now, "").is_none()
    }

    /// A fault of this class had an effect.
    pub(crate) fn met(&self, class: FaultClass) {
        *self.state().met.entry(class).or_default() += 1;
    }

    pub(crate) fn fault_counts(&self) -> FaultCounts {
        self.state().met.clone()
    }

    /// Whether tokens see another project of this account.
    pub(crate) fn set_project_swapped(&self, account: Account, swapped: bool) {
        let now = self.now();
        let since = &mut self.state().project_swapped[account as usize];
        *since = swapped.then(|| since.unwrap_or(now));
    }

    pub(crate) fn is_project_swapped(&self, account: Account) -> bool {
        self.state().project_swapped[account as usize].is_some()
    }

    /// Whether the cloud may show something else than it is.
    pub(crate) fn has_stale_reads(&self) -> bool {
        let (now, state) = (self.now(), self.state());
        let until = state.stale_reads_until;
        until.is_some_and(|until| now.duration_until(until) > STALE_READ_GRACE_SIGNED)
    }

    /// Whether the token of this account is that of another one.
    pub(crate) fn set_token_replaced(&self, account: Account, replaced: bool) {
        let now = self.now();
        let since = &mut self.state().token_replaced[account as usize];
        *since = replaced.then(|| since.unwrap_or(now));
    }

    /// For so long, and a moment after, the cloud may show something else than it is.
    pub(crate) fn expect_stale_reads(&self, lasts: Duration) {
        let until = self.now().checked_add(lasts + STALE_READ_GRACE).ok();
        let mut state = self.state();
        state.stale_reads_until = state.stale_reads_until.max(until);
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn second(&self) -> i64 {
        self.now().as_second() - self.began.as_second()
    }

    /// A request was carried out.
    pub(crate) fn api_call_answered(&self, manager_id: ManagerId, call: &Call, code: u16) {
        self.catch_up();
        self.state().steps += 1;
        if call.verb.writes() && !is_exempt(&call.resource) {
            let name = call.name.as_deref().unwrap_or_default();
            let what = call.subresource.as_deref().unwrap_or(&call.resource);
            let (verb, body) = (call.verb.as_str(), &call.body);
            let manager_id = manager_id.name();
            self.note(format_args!(
                "{manager_id}: {verb} {what} {name} = {code} {body}"
            ));
        }
    }

    /// Reads what was committed since the last time, and checks it.
    pub(crate) fn catch_up(&self) {
        let (mut state, second) = (self.state(), self.second());
        let new: Vec<Arc<Commit>> = self.api.journal_from(state.read);
        for commit in new {
            state.read += 1;
            self.classify(&mut state, &commit, second);
            state.objects.follow(&commit);
        }
    }

    fn classify(&self, state: &mut CheckerState, commit: &Commit, second: i64) {
        let Some(manager_id) = ManagerId::BOTH
            .into_iter()
            .find(|manager_id| manager_id.name() == &*commit.by)
        else {
            return;
        };
        if is_exempt(commit.resource) {
            return;
        }
        state.writes += 1;
        count_late(state, manager_id, commit);
        if commit.resource == "nodes" && gets_pod_cidr(commit) {
            *state.met.entry(FaultClass::Ipam).or_default() += 1;
        }
        if commit.resource == "services" && publishes_both_families(commit) {
            *state.met.entry(FaultClass::DualStackService).or_default() += 1;
        }
        for (invariant, what) in writes::broken_by(state, &self.clouds, manager_id, commit) {
            state.violations.push(Violation {
                second,
                invariant,
                what,
            });
        }
    }

    /// A request to the cloud begins.
    pub(crate) fn cloud_call_sent(
        &self,
        manager_id: ManagerId,
        account: Account,
        reached: Account,
        request: &http::Request<bytes::Bytes>,
    ) -> CloudBefore {
        self.catch_up();
        let now = self.now();
        let second = self.second();
        let mut state = self.state();
        state.steps += 1;
        let sender = Sender {
            manager_id,
            account,
            reached,
        };
        let before = CloudBefore::of(sender, request, &self.clouds);
        if before.is_change() {
            state.mutations += 1;
        }
        for (invariant, what) in cloud_calls::broken_by_asking(&state, &before, now) {
            state.violations.push(Violation {
                second,
                invariant,
                what,
            });
        }
        before
    }

    /// And ends.
    pub(crate) fn cloud_call_answered(&self, before: &CloudBefore, status: u16, is_refused: bool) {
        let now = self.now();
        if before.is_change() {
            self.note(format_args!("{before} = {status}"));
        }
        let second = self.second();
        let mut state = self.state();
        let done = (200..300).contains(&status) && !is_refused;
        if cloud_calls::has_released(before, &self.clouds) {
            *state.met.entry(FaultClass::ReleasedBalancer).or_default() += 1;
        }
        for (invariant, what) in
            cloud_calls::broken_by_answer(&state, before, done, &self.clouds, now)
        {
            state.violations.push(Violation {
                second,
                invariant,
                what,
            });
        }
    }

    /// Something that is not as it should be at the end.
    pub(crate) fn report(&self, invariant: Invariant, what: impl fmt::Display) {
        let second = self.second();
        self.state().violations.push(Violation {
            second,
            invariant,
            what: what.to_string(),
        });
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.state().violations.clone()
    }

    /// Writes, changes in the cloud, and all requests so far.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let state = self.state();
        (state.writes, state.mutations, state.steps)
    }
}

fn gets_pod_cidr(commit: &Commit) -> bool {
    let has = |node: &Option<Arc<Value>>| {
        let node = node.as_ref();
        node.is_some_and(|node| node["spec"]["podCIDR"].is_string())
    };
    !has(&commit.before) && has(&commit.after)
}

/// Whether a write publishes addresses of both families that were not there before it.
fn publishes_both_families(commit: &Commit) -> bool {
    let has_both = |service: &Option<Arc<Value>>| {
        let ingress = service
            .as_ref()
            .map(|it| &it["status"]["loadBalancer"]["ingress"]);
        let ingress = ingress.and_then(Value::as_array).into_iter().flatten();
        let addresses = ingress.filter_map(|entry| entry["ip"].as_str()?.parse().ok());
        let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = addresses.partition(IpAddr::is_ipv4);
        !v4.is_empty() && !v6.is_empty()
    };
    !has_both(&commit.before) && has_both(&commit.after)
}

/// A write that arrives so much later than it was sent is late.
const LATE: SignedDuration = SignedDuration::from_secs(5);

/// Counts writes that arrive late, and those whose sender is gone or does not lead any more.
fn count_late(state: &mut CheckerState, manager_id: ManagerId, commit: &Commit) {
    if commit.at.duration_since(commit.sent_at) < LATE {
        return;
    }
    *state.met.entry(FaultClass::LateWrite).or_default() += 1;
    let crashed = state.crashed.get(&manager_id);
    let is_gone = crashed.is_some_and(|crashed| *crashed >= commit.sent_at);
    let sender = state.identity_at(manager_id, commit.sent_at);
    let holder = state.objects.lease_at(commit.at);
    let leads = holder.is_some_and(|lease| Some(lease.holder.as_str()) == sender);
    if is_gone || !leads {
        *state.met.entry(FaultClass::WriteAfterSender).or_default() += 1;
    }
}

/// What a manager may write at any time: leases and Events.
fn is_exempt(resource: &str) -> bool {
    matches!(resource, "leases" | "events")
}
