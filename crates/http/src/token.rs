//! Tokens that expire: fetched once for everybody, renewed ahead of time, never hammered for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, CloudError, ErrorKind, Secret};
use jiff::Timestamp;
use tokio::time::{Instant, timeout};

use crate::backoff::{Backoff, Dice};

/// Where tokens come from: a login.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// Logs in. A wrong credential should be [`ErrorKind::Unauthenticated`].
    async fn fetch(&self) -> Result<Token, CloudError>;
}

/// A token and how long it is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What the cloud wants to see.
    pub value: Secret,
    /// When it ends, by the cloud's clock; `None` if it does not.
    pub expires_at: Option<Timestamp>,
}

/// A token is renewed when this much of its life is left, or a fifth of it if that is less.
const AHEAD: Duration = Duration::from_mins(5);

/// A fresh token is used at least this long, even if our clock says it is over: a wrong clock must not
/// turn every request into a login.
const MIN_USE: Duration = Duration::from_secs(30);

/// A login server that takes longer is as good as down, and is left alone for a while.
const LONGEST_LOGIN: Duration = Duration::from_secs(30);

/// While the present token is good, nobody waits longer for the next one.
const LONGEST_RENEWAL: Duration = Duration::from_secs(5);

/// Pauses between logins that were refused, and between those that a 401 asked for; too many of them
/// lock accounts.
const AFTER_REFUSAL: Backoff = Backoff {
    first: Duration::from_secs(30),
    longest: Duration::from_mins(10),
};

/// Pauses between logins that failed for other reasons.
const AFTER_FAILURE: Backoff = Backoff {
    first: Duration::from_secs(2),
    longest: Duration::from_mins(1),
};

/// One token for everybody who shares a credential.
///
/// Only one login is under way at a time; who comes meanwhile waits for it, or goes on with the
/// present token while that is good. After a failed login, callers get its error until the next try
/// is due. A login that takes too long has failed.
pub struct TokenCache {
    source: Arc<dyn TokenSource>,
    clock: Arc<dyn Clock>,
    dice: Dice,
    login: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Current>,
    failure: Option<Failure>,
    failures: u32,
    refusals: u32,
    no_relogin_before: Option<Instant>,
}

struct Current {
    token: Secret,
    renew_at: Option<Instant>,
    ends_at: Option<Instant>,
}

/// The last failed login, kept so that it can be told to everybody until the next try.
struct Failure {
    kind: ErrorKind,
    text: String,
    at: Instant,
    next_try: Instant,
}

enum Look {
    Good(Secret),
    /// Good, but a new one should be fetched by whoever finds the time.
    Ageing(Secret),
    Missing,
    Failed(CloudError),
}

impl TokenCache {
    /// A cache that logs in when the first token is asked for.
    pub fn new(source: Arc<dyn TokenSource>, clock: Arc<dyn Clock>) -> Self {
        Self {
            source,
            clock,
            dice: Dice::default(),
            login: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Makes the jitter of renewals repeatable.
    #[must_use]
    pub fn with_dice(mut self, dice: Dice) -> Self {
        self.dice = dice;
        self
    }

    /// A token that is good now.
    pub async fn token(&self) -> Result<Secret, CloudError> {
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
        // Somebody else may have been here while we waited.
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

    /// The cloud refused `used` (401): forget it. Whether a new login is worth the attempt: not if the
    /// last one after a refusal was just now, because then the token is not what is wrong.
    pub fn refused(&self, used: &Secret) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        // Others saw the refusal first: a newer token is there or on its way.
        if state
            .current
            .as_ref()
            .is_none_or(|current| current.token != *used)
        {
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

    /// The cloud accepted `used`: refusals before it are over.
    pub fn accepted(&self, used: &Secret) {
        let mut state = self.lock();
        if state.refusals > 0
            && state
                .current
                .as_ref()
                .is_some_and(|current| current.token == *used)
        {
            state.refusals = 0;
        }
    }

    fn look(&self) -> Look {
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
            (_, Some(failure)) => Look::Failed(failure.retold(now)),
            (_, None) => Look::Missing,
        }
    }

    fn keep(&self, token: Token) -> Secret {
        let now = Instant::now();
        let mut current = Current {
            token: token.value.clone(),
            renew_at: None,
            ends_at: None,
        };
        if let Some(expires_at) = token.expires_at {
            let life = expires_at.duration_since(self.clock.now());
            let life = Duration::try_from(life).unwrap_or_default();
            let ahead = AHEAD.min(life / 5);
            // Many processes that logged in together should not do so again together.
            let ahead = ahead + self.dice.up_to(ahead / 4);
            current.renew_at = now.checked_add(life.saturating_sub(ahead).max(MIN_USE));
            current.ends_at = now.checked_add(life.max(MIN_USE));
        }
        let mut state = self.lock();
        state.current = Some(current);
        state.failure = None;
        state.failures = 0;
        token.value
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
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_slow(longest: Duration) -> CloudError {
    let message = format!("the login server gave no answer within {longest:?}");
    CloudError::new("login", ErrorKind::Timeout, message)
}

impl Failure {
    fn retold(&self, now: Instant) -> CloudError {
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
