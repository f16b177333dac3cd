//! The API itself: one lock around the objects, and everything that may be asked.

mod answer;
mod list;
mod objects;
mod remove;
mod reviews;
mod state;
mod stream;
mod watch;
mod write;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cloudkeel_api::{Clock, SystemClock};
use jiff::Timestamp;
use tokio::sync::watch as signal;

pub(crate) use answer::{Answer, AnswerBody, respond};
pub(crate) use state::State;
pub(crate) use stream::InterposedCall;

use crate::access::{AllowAll, Authorizer, Identity, new_token};
use crate::store::Commit;
use state::Token;

/// How many changes are remembered for watches and pages that lag behind.
const HISTORY: usize = 10_000;

/// A Kubernetes API in memory. Clones are the same one.
#[derive(Clone)]
pub struct EmbeddedApi(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    authorizer: Arc<dyn Authorizer>,
    /// Notifies watches of a change.
    version: signal::Sender<u64>,
}

/// The choices for an API before it starts.
pub struct Builder {
    clock: Arc<dyn Clock>,
    authorizer: Arc<dyn Authorizer>,
    seed: u64,
    history: usize,
    keeps_journal: bool,
    dual_stack: bool,
}

impl Builder {
    /// Where time comes from. The default is the machine's clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Who may do what. The default allows everything.
    #[must_use]
    pub fn authorizer(mut self, authorizer: Arc<dyn Authorizer>) -> Self {
        self.authorizer = authorizer;
        self
    }

    /// What UIDs, generated names, addresses and ports come from, but no token. The same seed gives the same.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many changes are remembered. A request for something older gets a 410.
    #[must_use]
    pub fn history(mut self, changes: usize) -> Self {
        self.history = changes;
        self
    }

    /// Keeps every change that is carried out, for [`EmbeddedApi::journal`].
    #[must_use]
    pub fn keep_journal(mut self) -> Self {
        self.keeps_journal = true;
        self
    }

    /// Gives Services addresses of both families.
    #[must_use]
    pub fn dual_stack(mut self) -> Self {
        self.dual_stack = true;
        self
    }

    /// The API, with the usual namespaces in it.
    pub fn build(self) -> EmbeddedApi {
        let mut state = State::new(self.seed, self.history);
        state.dual_stack = self.dual_stack;
        state.create_first_objects(self.clock.now());
        // Whatever was before the first request is forgotten, as in a server that has just started.
        state.store.compact();
        if self.keeps_journal {
            state.store.keep_journal();
        }
        let (version, _) = signal::channel(state.store.version());
        EmbeddedApi(Arc::new(Inner {
            state: Mutex::new(state),
            clock: self.clock,
            authorizer: self.authorizer,
            version,
        }))
    }
}

impl EmbeddedApi {
    /// An API on the machine's clock, open to all.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An API of choice.
    pub fn builder() -> Builder {
        Builder {
            clock: Arc::new(SystemClock),
            authorizer: Arc::new(AllowAll),
            seed: 0,
            history: HISTORY,
            keeps_journal: false,
            dual_stack: false,
        }
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.state().store.version()
    }

    /// Every change since the start, oldest first; empty unless [`Builder::keep_journal`] was said.
    pub fn journal(&self) -> Vec<Arc<Commit>> {
        self.journal_from(0)
    }

    /// The changes from the one with this index in the journal on.
    pub fn journal_from(&self, index: usize) -> Vec<Arc<Commit>> {
        let state = self.state();
        state
            .store
            .journal()
            .get(index..)
            .unwrap_or_default()
            .to_vec()
    }

    /// Forgets the past, as etcd does every few minutes: watches and pages that lag behind get a 410.
    pub fn compact(&self) {
        self.state().store.compact();
    }

    /// Lets a bearer token stand for an identity.
    pub fn add_token(&self, token: impl Into<String>, identity: Identity) {
        let expires = None;
        let token_for = Token { identity, expires };
        self.state().tokens.insert(token.into(), token_for);
    }

    /// A new token for an identity.
    pub fn issue_token(&self, identity: Identity) -> String {
        let token = new_token();
        self.add_token(token.clone(), identity);
        token
    }

    /// Whom a bearer token stands for.
    pub(crate) fn identify(&self, token: &str) -> Option<Identity> {
        let now = self.now();
        let state = self.state();
        let known = state.tokens.get(token)?;
        let valid = known.expires.is_none_or(|end| now < end);
        valid.then(|| known.identity.clone())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub(crate) fn authorizer(&self) -> &dyn Authorizer {
        &*self.0.authorizer
    }

    /// A panic under the lock is the caller's; the objects are whole between changes.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the watches.
    pub(crate) fn announce(&self, version: u64) {
        self.0.version.send_if_modified(|known| {
            let is_new = *known != version;
            *known = version;
            is_new
        });
    }

    /// Follows the version.
    pub(crate) fn follow(&self) -> signal::Receiver<u64> {
        self.0.version.subscribe()
    }
}

impl Default for EmbeddedApi {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for EmbeddedApi {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = self.version();
        out.debug_struct("EmbeddedApi")
            .field("version", &version)
            .finish_non_exhaustive()
    }
}
