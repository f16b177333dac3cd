//! What goes wrong between a manager and the API. It belongs to the network and to the API server, so it survives the
//! manager's process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_embedded::{After, Before, Call, Interposer, Passage, Refusal, Verb, Watched};
use tokio::time::Instant;

use crate::action::{ApiFault, ManagerId};
use crate::crash::{CrashPoint, CrashSwitch};
use crate::fault_class::FaultClass;
use crate::invariants::Checker;
use crate::rng::Rng;

/// How long a slow answer takes at most.
const SLOWEST: Duration = Duration::from_secs(3);

/// The faults that a manager meets.
pub(crate) struct ApiFaults {
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    disconnected_until: Option<Instant>,
    /// Events of this resource are held back until then; of all without one.
    stalled: Option<(Instant, Option<&'static str>)>,
    watches_to_end: u32,
    /// Lists are so old until then.
    stale: Option<(Instant, Duration)>,
    /// Requests are refused until then, since when, and so many in a hundred.
    throttled: Option<Throttled>,
    faults: Vec<ActiveFault>,
}

#[derive(Clone, Copy)]
struct Throttled {
    since: Instant,
    until: Instant,
    percent: u32,
}

#[derive(Clone, Copy)]
struct ActiveFault {
    kind: ApiFault,
    percent: u32,
    until: Instant,
}

impl ApiFaults {
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                rng: Rng::new(seed),
                disconnected_until: None,
                stalled: None,
                watches_to_end: 0,
                stale: None,
                throttled: None,
                faults: Vec::new(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn disconnect(&self, lasts: Duration) {
        self.state().disconnected_until = Some(Instant::now() + lasts);
    }

    /// Holds back the events of a resource, or of all.
    pub(crate) fn stall(&self, resource: Option<&'static str>, lasts: Duration) {
        self.state().stalled = Some((Instant::now() + lasts, resource));
    }

    pub(crate) fn end_watches(&self) {
        self.state().watches_to_end = 2;
    }

    /// The watches end, and lists are as old as this: another API server answers, whose cache lags behind.
    pub(crate) fn serve_stale_lists(&self, age: Duration, lasts: Duration) {
        let mut state = self.state();
        state.stale = Some((Instant::now() + lasts, age));
        state.watches_to_end = 2;
    }

    pub(crate) fn throttle(&self, percent: u32, lasts: Duration) {
        let since = Instant::now();
        let until = since + lasts;
        self.state().throttled = Some(Throttled {
            since,
            until,
            percent,
        });
    }

    pub(crate) fn add(&self, kind: ApiFault, percent: u32, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.state().faults.push(ActiveFault {
            kind,
            percent,
            until,
        });
    }

    /// Nothing goes wrong any more.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.disconnected_until = None;
        state.stalled = None;
        state.watches_to_end = 0;
        state.stale = None;
        state.throttled = None;
        state.faults.clear();
    }
}

impl State {
    fn is_disconnected(&self) -> bool {
        let until = self.disconnected_until;
        until.is_some_and(|until| Instant::now() < until)
    }

    /// How long events of this resource are held back.
    fn stalled_until(&self, resource: &str) -> Option<Instant> {
        let (until, only) = self.stalled?;
        let is_meant = only.is_none_or(|only| only == resource);
        (is_meant && Instant::now() < until).then_some(until)
    }

    /// How old a list is, if it is not as new as can be.
    fn list_age(&self) -> Option<Duration> {
        let (until, age) = self.stale?;
        (Instant::now() < until).then_some(age)
    }

    /// Since when requests are refused, if this one is.
    fn throttled_since(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let throttled = self.throttled.filter(|it| now < it.until)?;
        self.rng
            .chance(throttled.percent)
            .then_some(throttled.since)
    }

    /// The fault that a request meets, if any.
    fn meet(&mut self, kinds: &[ApiFault]) -> Option<ApiFault> {
        let now = Instant::now();
        self.faults.retain(|fault| now < fault.until);
        let faults = self.faults.clone();
        let mut fitting = faults.iter().filter(|fault| kinds.contains(&fault.kind));
        let met = fitting.find(|fault| self.rng.chance(fault.percent));
        met.map(|fault| fault.kind)
    }
}

/// The connection of one process of a manager to the API.
pub(crate) struct ApiConnection {
    pub(crate) manager_id: ManagerId,
    pub(crate) started: Instant,
    pub(crate) crash_switch: Arc<CrashSwitch>,
    pub(crate) faults: Arc<ApiFaults>,
    pub(crate) checker: Arc<Checker>,
}

impl ApiConnection {
    /// A request that is refused because there are too many, if it is.
    fn throttled(&self) -> Option<Before> {
        let since = self.faults.state().throttled_since()?;
        self.checker.met(FaultClass::ApiThrottled);
        if since < self.started {
            self.checker.met(FaultClass::ThrottledAfterRestart);
        }
        let retry_after = self.faults.state().rng.between(1, 10);
        Some(Before::Refuse(Refusal::too_many_requests(retry_after)))
    }

    async fn fail(&self, fault: ApiFault) -> Before {
        let class = match fault {
            ApiFault::Conflict => FaultClass::ApiConflict,
            ApiFault::TooMany => FaultClass::ApiThrottled,
            ApiFault::Broken => FaultClass::ApiError,
            ApiFault::LostRequest => FaultClass::LostRequest,
            ApiFault::LostAnswer => FaultClass::LostAnswer,
            ApiFault::Slow => FaultClass::SlowAnswer,
            // What arrives late is counted when it does.
            ApiFault::Late => {
                let delay = self.faults.state().rng.seconds(5, 90);
                return Before::Late(delay);
            }
        };
        self.checker.met(class);
        match fault {
            ApiFault::Conflict => Before::Refuse(Refusal::conflict("the object was modified")),
            ApiFault::TooMany => Before::Refuse(Refusal::too_many_requests(1)),
            ApiFault::Broken => Before::Refuse(Refusal::internal_error("the server is broken")),
            ApiFault::LostRequest => Before::Disconnect,
            ApiFault::Slow => {
                let delay = self.faults.state().rng.time(SLOWEST);
                tokio::time::sleep(delay).await;
                self.crash_switch.reach(None).await;
                Before::Pass
            }
            ApiFault::LostAnswer | ApiFault::Late => Before::Pass,
        }
    }

    /// What may go wrong with a request before it is carried out.
    fn fitting(call: &Call) -> &'static [ApiFault] {
        if call.verb.writes() {
            &[
                ApiFault::Conflict,
                ApiFault::TooMany,
                ApiFault::Broken,
                ApiFault::LostRequest,
                ApiFault::Slow,
                ApiFault::Late,
            ]
        } else {
            &[
                ApiFault::TooMany,
                ApiFault::Broken,
                ApiFault::LostRequest,
                ApiFault::Slow,
            ]
        }
    }
}

#[async_trait]
impl Interposer for ApiConnection {
    async fn before(&self, call: &Call) -> Before {
        let write = call.verb.writes().then_some(CrashPoint::BeforeWrite);
        self.crash_switch.reach(write).await;
        if self.faults.state().is_disconnected() {
            self.checker.met(FaultClass::Disconnected);
            // A host that is cut off does not say so at once.
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Before::Disconnect;
        }
        if let Some(refused) = self.throttled() {
            return refused;
        }
        let met = self.faults.state().meet(Self::fitting(call));
        if let Some(fault) = met {
            return self.fail(fault).await;
        }
        let age = self.faults.state().list_age();
        match age.filter(|_| call.verb == Verb::List) {
            Some(age) => {
                self.checker.met(FaultClass::StaleList);
                Before::Stale(age)
            }
            None => Before::Pass,
        }
    }

    async fn after(&self, call: &Call, code: u16) -> After {
        self.checker.api_call_answered(self.manager_id, call, code);
        let write = call.verb.writes().then_some(CrashPoint::AfterWrite);
        self.crash_switch.reach(write).await;
        let met = self.faults.state().meet(&[ApiFault::LostAnswer]);
        if met.is_some() {
            self.checker.met(FaultClass::LostAnswer);
            return After::Lose;
        }
        After::Deliver
    }

    async fn watched(&self, call: &Call, _event: &Watched<'_>) -> Passage {
        loop {
            self.crash_switch.reach(None).await;
            let until = self.faults.state().stalled_until(&call.resource);
            let Some(until) = until else {
                break;
            };
            self.checker.met(FaultClass::WatchLag);
            tokio::time::sleep_until(until).await;
        }
        let mut state = self.faults.state();
        if state.is_disconnected() {
            return Passage::Disconnect;
        }
        if state.watches_to_end > 0 {
            state.watches_to_end -= 1;
            self.checker.met(FaultClass::WatchEnded);
            return if state.list_age().is_none() && state.rng.chance(50) {
                Passage::Disconnect
            } else {
                Passage::Refuse(Refusal::expired("the version is too old"))
            };
        }
        // A doubled event costs nothing if it is harmless, so it comes without being planned.
        if state.rng.chance(2) {
            Passage::Twice
        } else {
            Passage::Deliver
        }
    }
}
