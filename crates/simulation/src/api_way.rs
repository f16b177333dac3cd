//! The way of one manager to the API, and what goes wrong on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_embedded::{After, Before, Call, Interposer, Passage, Refusal, Watched};
use tokio::time::Instant;

use crate::action::{ApiTrouble, Who};
use crate::draw::Draw;
use crate::fate::{Fate, Moment};
use crate::witness::Witness;

/// How long a slow answer takes at most. A write that is this late still arrives before the lease could
/// be somebody else's.
const SLOWEST: Duration = Duration::from_secs(3);

/// A way to the API. It ends with the life of its manager.
pub(crate) struct ApiWay {
    who: Who,
    fate: Arc<Fate>,
    state: Mutex<State>,
    witness: Arc<Witness>,
}

struct State {
    draw: Draw,
    cut_until: Option<Instant>,
    stalled_until: Option<Instant>,
    watches_to_end: u32,
    troubles: Vec<Trouble>,
}

#[derive(Clone, Copy)]
struct Trouble {
    kind: ApiTrouble,
    percent: u32,
    until: Instant,
}

impl ApiWay {
    pub(crate) fn new(who: Who, fate: Arc<Fate>, seed: u64, witness: Arc<Witness>) -> Arc<Self> {
        Arc::new(Self {
            who,
            fate,
            witness,
            state: Mutex::new(State {
                draw: Draw::new(seed),
                cut_until: None,
                stalled_until: None,
                watches_to_end: 0,
                troubles: Vec::new(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn cut(&self, lasts: Duration) {
        self.state().cut_until = Some(Instant::now() + lasts);
    }

    pub(crate) fn stall(&self, lasts: Duration) {
        self.state().stalled_until = Some(Instant::now() + lasts);
    }

    pub(crate) fn end_watches(&self) {
        self.state().watches_to_end = 2;
    }

    pub(crate) fn trouble(&self, kind: ApiTrouble, percent: u32, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.state().troubles.push(Trouble {
            kind,
            percent,
            until,
        });
    }

    /// Nothing goes wrong any more.
    pub(crate) fn heal(&self) {
        let mut state = self.state();
        state.cut_until = None;
        state.stalled_until = None;
        state.watches_to_end = 0;
        state.troubles.clear();
    }
}

impl State {
    fn is_cut(&self) -> bool {
        self.cut_until.is_some_and(|until| Instant::now() < until)
    }

    /// What a request meets, if anything.
    fn meet(&mut self, kinds: &[ApiTrouble]) -> Option<ApiTrouble> {
        let now = Instant::now();
        self.troubles.retain(|trouble| now < trouble.until);
        let troubles = self.troubles.clone();
        let fitting = troubles
            .iter()
            .filter(|trouble| kinds.contains(&trouble.kind));
        fitting
            .filter(|trouble| self.draw.chance(trouble.percent))
            .map(|trouble| trouble.kind)
            .next()
    }

    fn slowness(&mut self) -> Duration {
        self.draw.time(SLOWEST)
    }
}

#[async_trait]
impl Interposer for ApiWay {
    async fn before(&self, call: &Call) -> Before {
        let write = call.verb.writes().then_some(Moment::BeforeWrite);
        self.fate.reach(write).await;
        if self.state().is_cut() {
            // A host that is cut off does not say so at once.
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Before::Disconnect;
        }
        let before_it_happens = [
            ApiTrouble::Conflict,
            ApiTrouble::TooMany,
            ApiTrouble::Broken,
            ApiTrouble::LostRequest,
            ApiTrouble::Slow,
        ];
        let met = self.state().meet(&before_it_happens);
        match met {
            Some(ApiTrouble::Conflict) if call.verb.writes() => {
                Before::Refuse(Refusal::conflict("somebody else was faster"))
            }
            Some(ApiTrouble::TooMany) => Before::Refuse(Refusal::too_many_requests(1)),
            Some(ApiTrouble::Broken) => {
                Before::Refuse(Refusal::internal_error("the server is broken"))
            }
            Some(ApiTrouble::LostRequest) => Before::Disconnect,
            Some(ApiTrouble::Slow) => {
                let pause = self.state().slowness();
                tokio::time::sleep(pause).await;
                self.fate.reach(None).await;
                Before::Pass
            }
            Some(ApiTrouble::Conflict | ApiTrouble::LostAnswer) | None => Before::Pass,
        }
    }

    async fn after(&self, call: &Call, code: u16) -> After {
        self.witness.asked_api(self.who, call, code);
        let write = call.verb.writes().then_some(Moment::AfterWrite);
        self.fate.reach(write).await;
        match self.state().meet(&[ApiTrouble::LostAnswer]) {
            Some(_) => After::Lose,
            None => After::Deliver,
        }
    }

    async fn watched(&self, _call: &Call, _event: &Watched<'_>) -> Passage {
        loop {
            self.fate.reach(None).await;
            let until = self.state().stalled_until;
            match until.filter(|until| Instant::now() < *until) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => break,
            }
        }
        let mut state = self.state();
        if state.is_cut() {
            return Passage::Disconnect;
        }
        if state.watches_to_end > 0 {
            state.watches_to_end -= 1;
            return if state.draw.chance(50) {
                Passage::Disconnect
            } else {
                Passage::Refuse(Refusal::expired("the version is too old"))
            };
        }
        // A doubled event costs nothing if it is harmless, so it comes without being planned.
        if state.draw.chance(2) {
            Passage::Twice
        } else {
            Passage::Deliver
        }
    }
}
