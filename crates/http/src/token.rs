//! Tokens that expire: fetched once for all callers, renewed ahead of time, never hammered for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, CloudError, ErrorKind, Secret};
use jiff::Timestamp;
use tokio::time::{Instant, timeout};

use crate::backoff::{Backoff, Dice};

/// Where tokens come from: a login.
///
/// A token is a [`Secret`] unless the cloud hands out more, such as a key to sign with or a catalog of
/// endpoints.
#[async_trait]
pub trait TokenSource<T = Secret>: Send + Sync {
    /// Logs in. A wrong credential should be [`ErrorKind::Unauthenticated`].
    async fn fetch(&self) -> Result<Token<T>, CloudError>;
}

/// A token and how long it is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<T = Secret> {
    /// What the cloud wants to see, or what requests are signed with.
    pub value: T,
    /// When it ends, by the cloud's clock; `None` if it does not.
    pub expires_at: Option<Timestamp>,
}

/// The login that a token came from. A refusal of an older token says nothing about a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoginId(u64);

impl LoginId {
    /// Of a credential that was configured and cannot be renewed.
    pub const FIXED: Self = Self(0);
}

/// A token that is good now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedToken<T = Secret> {
    /// The token itself.
    pub value: T,
    /// The login it came from.
    pub login: LoginId,
}

/// A token is renewed when this much of its life is left, or a fifth of it if that is less.
const AHEAD: Duration = Duration::from_mins(5);

/// A fresh token is used at least this long, even if our clock says it is over: a wrong clock must not
/// turn every request into a login.
const MIN_USE: Duration = Duration::from_secs(30);

/// A login server that takes longer is as good as down, and is left alone for a while.
const LONGEST_LOGIN: Duration = Duration::from_secs(30);

/// While the present token is good, no call waits longer for the next one.
const LONGEST_RENEWAL: Duration = Duration::from_secs(5);

/// Pauses between logins that were refused, and between those after a refused token; too many of them lock
/// accounts.
const AFTER_REFUSAL: Backoff = Backoff {
    first: Duration::from_secs(30),
    longest: Duration::from_mins(10),
};

/// Pauses between logins that failed for other reasons.
const AFTER_FAILURE: Backoff = Backoff {
    first: Duration::from_secs(2),
    longest: Duration::from_mins(1),
};

/// One token for all clients that share a credential.
///
/// Only one login is under way at a time; callers that come meanwhile wait for it, or go on with the
/// present token while that is good. After a failed login, callers get its error until the next try
/// is due. A login that takes too long has failed.
pub struct TokenCache<T = Secret> {
    source: Arc<dyn TokenSource<T>>,
    clock: Arc<dyn Clock>,
    dice: Dice,
    login: tokio::sync::Mutex<()>,
    state: Mutex<State<T>>,
}

struct State<T> {
    current: Option<Current<T>>,
    logins: u64,
    failure: Option<Failure>,
    failures: u32,
    refusals: u32,
    no_relogin_before: Option<Instant>,
}

struct Current<T> {
    token: IssuedToken<T>,
    renew_at: Option<Instant>,
    ends_at: Option<Instant>,
}

/// The last failed login: the error of all callers until the next try.
struct Failure {
    kind: ErrorKind,
    text: String,
    at: Instant,
    next_try: Instant,
}

enum Look<T> {
    Good(IssuedToken<T>),
    /// Good, but the next caller should fetch a new one.
    Ageing(IssuedToken<T>),
    Missing,
    Failed(CloudError),
}

impl<T: Clone> TokenCache<T> {
    /// A cache that logs in when the first token is asked for.
    pub fn new(source: Arc<dyn TokenSource<T>>, clock: Arc<dyn Clock>) -> Self {
        let state = State {
            current: None,
            logins: 0,
            failure: None,
            failures: 0,
            refusals: 0,
            no_relogin_before: None,
        };
        Self {
            source,
            clock,
            dice: Dice::default(),
            login: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
        }
    }

    /// Makes the jitter of renewals repeatable.
    #[must_use]
    pub fn with_dice(mut self, dice: Dice) -> Self {
        self.dice = dice;
        self
    }

    /// A token that is good now.
    pub async fn token(&self) -> Result<IssuedToken<T>, CloudError> {
        let ageing = match self.look() {
            Look::Good(token) => return Ok(token),
            Look::Failed(error) => return Err(error),
            Look::Ageing(token) => Some(token),
            Look::Missing => None,
        };
        let _login = match &ageing {
            Some(token) => match self.login.try_lock() {
                Ok(guard) => guard,
                Err(_) => return Ok(token.clone()),
            },
            None => self.login.lock().await,
        };
        // Another caller may have logged in meanwhile.
        match self.look() {
            Look::Good(token) => return Ok(token),
            Look::Failed(error) => return Err(error),
            Look::Ageing(_) | Look::Missing => {}
        }
        let longest = match ageing {
            Some(_) => LONGEST_RENEWAL,
            None => LONGEST_LOGIN,
        };
        let login = timeout(longest, self.source.fetch()).await;
        match login.unwrap_or_else(|_| Err(too_slow(longest))) {
            Ok(token) => Ok(self.keep(token)),
            Err(error) => {
                self.remember(&error);
                ageing.ok_or(error)
            }
        }
    }

    /// The cloud refused the token of this login: forget it. Whether a new login is worth the attempt: not
    /// if the last one after a refusal was just now, because then the token is not what is wrong.
    pub fn refused(&self, login: LoginId) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        // Others saw the refusal first: a newer token is there or on its way.
        if !state.is_of(login) {
            return true;
        }
        if state.no_relogin_before.is_some_and(|moment| now < moment) {
            return false;
        }
        state.current = None;
        state.refusals = state.refusals.saturating_add(1);
        state.no_relogin_before = now.checked_add(AFTER_REFUSAL.bound(state.refusals));
        true
    }

    /// The cloud accepted the token of this login: refusals before it are over.
    pub fn accepted(&self, login: LoginId) {
        let mut state = self.lock();
        if state.is_of(login) {
            state.refusals = 0;
        }
    }

    fn look(&self) -> Look<T> {
        let now = Instant::now();
        let state = self.lock();
        let must_wait = state
            .failure
            .as_ref()
            .filter(|failure| now < failure.next_try);
        let passed = |moment: Option<Instant>| moment.is_some_and(|moment| now >= moment);
        match (&state.current, must_wait) {
            (Some(current), must_wait) if !passed(current.ends_at) => {
                if passed(current.renew_at) && must_wait.is_none() {
                    Look::Ageing(current.token.clone())
                } else {
                    Look::Good(current.token.clone())
                }
            }
            (_, Some(failure)) => Look::Failed(failure.repeated(now)),
            (_, None) => Look::Missing,
        }
    }

    fn keep(&self, token: Token<T>) -> IssuedToken<T> {
        let now = Instant::now();
        let (mut renew_at, mut ends_at) = (None, None);
        if let Some(expires_at) = token.expires_at {
            let life = expires_at.duration_since(self.clock.now());
            let life = Duration::try_from(life).unwrap_or_default();
            let ahead = AHEAD.min(life / 5);
            // Many processes that logged in together should not do so again together.
            let ahead = ahead + self.dice.up_to(ahead / 4);
            renew_at = now.checked_add(life.saturating_sub(ahead).max(MIN_USE));
            ends_at = now.checked_add(life.max(MIN_USE));
        }
        let mut state = self.lock();
        state.logins += 1;
        let token = IssuedToken {
            value: token.value,
            login: LoginId(state.logins),
        };
        state.current = Some(Current {
            token: token.clone(),
            renew_at,
            ends_at,
        });
        state.failure = None;
        state.failures = 0;
        token
    }

    fn remember(&self, error: &CloudError) {
        let now = Instant::now();
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        let pause = match error.kind() {
            ErrorKind::Throttled {
                retry_after: Some(wait),
            } => wait,
            ErrorKind::Unauthenticated | ErrorKind::Denied => AFTER_REFUSAL.bound(state.failures),
            _ => AFTER_FAILURE.bound(state.failures),
        };
        tracing::warn!(%error, pause = ?pause, "login failed");
        state.failure = Some(Failure {
            kind: error.kind(),
            text: error.to_string(),
            at: now,
            next_try: now.checked_add(pause).unwrap_or(now),
        });
    }

    /// No panic can leave the state half changed, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Whether the present token is the one of this login.
    fn is_of(&self, login: LoginId) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.token.login == login)
    }
}

fn too_slow(longest: Duration) -> CloudError {
    let message = format!("the login server gave no answer within {longest:?}");
    CloudError::new("login", ErrorKind::Timeout, message)
}

impl Failure {
    fn repeated(&self, now: Instant) -> CloudError {
        let ago = now.saturating_duration_since(self.at).as_secs();
        let next = self.next_try.saturating_duration_since(now).as_secs();
        let message = format!(
            "the login failed {ago}s ago and is not repeated for another {next}s: {}",
            self.text
        );
        CloudError::new("login", self.kind, message)
    }
}

#[cfg(test)]
mod tests;
