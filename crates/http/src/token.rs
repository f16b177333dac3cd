//! Tokens that expire: fetched once for all callers, renewed in time, with limited login attempts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Clock, CloudError, ErrorKind, Secret};
use jiff::Timestamp;
use tokio::time::{Instant, timeout};

use crate::backoff::{Backoff, Jitter};
use crate::log_messages::LOGIN_FAILED;

/// Where tokens come from: a login.
///
/// A token is a [`Secret`] unless the cloud returns more, such as a signing key or a catalog of endpoints.
#[async_trait]
pub trait TokenSource<T = Secret>: Send + Sync {
    /// Logs in. A wrong credential should be [`ErrorKind::Unauthenticated`].
    async fn fetch(&self) -> Result<Token<T>, CloudError>;
}

/// A token and its expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<T = Secret> {
    /// The token, or the key that requests are signed with.
    pub value: T,
    /// When it expires, by the cloud's clock; `None` if it does not.
    pub expires_at: Option<Timestamp>,
}

/// The login that a token came from. The rejection of an older token says nothing about a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoginId(u64);

impl LoginId {
    /// Of a credential that was configured and cannot be renewed.
    pub const FIXED: Self = Self(0);
}

/// A valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedToken<T = Secret> {
    /// The token itself.
    pub value: T,
    /// The login it came from.
    pub login: LoginId,
}

/// A token is renewed when this much of its lifetime is left, or a fifth of it if that is less.
const RENEW_BEFORE_EXPIRY: Duration = Duration::from_mins(5);

/// A new token is used at least this long, even if it has expired by our clock: a wrong clock must not turn every
/// request into a login.
const MIN_TOKEN_USE: Duration = Duration::from_secs(30);

/// The timeout of a login; after it, the login counts as failed.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// While the current token is valid, no call waits longer for the next one.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(5);

/// The backoff after rejected logins, and after logins for a rejected token; too many of them lock accounts.
const REFUSAL_BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(30),
    longest: Duration::from_mins(10),
};

/// The backoff after logins that failed for other reasons.
const FAILURE_BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(2),
    longest: Duration::from_mins(1),
};

/// One token for all clients that share a credential.
///
/// Only one login is in flight at a time; other callers wait for it, or use the current token while that is valid.
/// After a failed login, callers get its error until the next attempt is due. A login that takes too long has
/// failed.
pub struct TokenCache<T = Secret> {
    source: Arc<dyn TokenSource<T>>,
    clock: Arc<dyn Clock>,
    jitter: Jitter,
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

/// The last failed login: the error of all callers until the next attempt.
struct Failure {
    kind: ErrorKind,
    text: String,
    at: Instant,
    next_try: Instant,
}

enum CachedToken<T> {
    Good(IssuedToken<T>),
    /// Valid, but due for renewal.
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
            jitter: Jitter::default(),
            login: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
        }
    }

    /// Makes the jitter of renewals repeatable.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// A valid token.
    pub async fn token(&self) -> Result<IssuedToken<T>, CloudError> {
        let ageing = match self.cached() {
            CachedToken::Good(token) => return Ok(token),
            CachedToken::Failed(error) => return Err(error),
            CachedToken::Ageing(token) => Some(token),
            CachedToken::Missing => None,
        };
        let _login = match &ageing {
            Some(token) => match self.login.try_lock() {
                Ok(guard) => guard,
                Err(_) => return Ok(token.clone()),
            },
            None => self.login.lock().await,
        };
        // Another caller may have logged in meanwhile.
        match self.cached() {
            CachedToken::Good(token) => return Ok(token),
            CachedToken::Failed(error) => return Err(error),
            CachedToken::Ageing(_) | CachedToken::Missing => {}
        }
        let longest = match ageing {
            Some(_) => RENEWAL_TIMEOUT,
            None => LOGIN_TIMEOUT,
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

    /// The cloud rejected the token of this login: forget it. Returns whether a new login is worth an attempt: not
    /// if the last login after a rejection was just now, because then the token is not the problem.
    pub fn refused(&self, login: LoginId) -> bool {
        let now = Instant::now();
        let mut state = self.lock();
        // Another caller saw the rejection first: a newer token is there or on its way.
        if !state.is_of(login) {
            return true;
        }
        if state.no_relogin_before.is_some_and(|moment| now < moment) {
            return false;
        }
        state.current = None;
        state.refusals = state.refusals.saturating_add(1);
        state.no_relogin_before = now.checked_add(REFUSAL_BACKOFF.bound(state.refusals));
        true
    }

    /// The cloud accepted the token of this login: earlier rejections no longer count.
    pub fn accepted(&self, login: LoginId) {
        let mut state = self.lock();
        if state.is_of(login) {
            state.refusals = 0;
        }
    }

    /// Lets the next caller log in although the last login failed a moment ago: for a check that an operator or new
    /// settings asked for.
    pub fn forget_failure(&self) {
        self.lock().failure = None;
    }

    fn cached(&self) -> CachedToken<T> {
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
                    CachedToken::Ageing(current.token.clone())
                } else {
                    CachedToken::Good(current.token.clone())
                }
            }
            (_, Some(failure)) => CachedToken::Failed(failure.repeated(now)),
            (_, None) => CachedToken::Missing,
        }
    }

    fn keep(&self, token: Token<T>) -> IssuedToken<T> {
        let now = Instant::now();
        let (mut renew_at, mut ends_at) = (None, None);
        if let Some(expires_at) = token.expires_at {
            let life = expires_at.duration_since(self.clock.now());
            let life = Duration::try_from(life).unwrap_or_default();
            let ahead = RENEW_BEFORE_EXPIRY.min(life / 5);
            // Processes that logged in together should not renew together.
            let ahead = ahead + self.jitter.up_to(ahead / 4);
            renew_at = now.checked_add(life.saturating_sub(ahead).max(MIN_TOKEN_USE));
            ends_at = now.checked_add(life.max(MIN_TOKEN_USE));
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
            ErrorKind::Unauthenticated | ErrorKind::Denied => REFUSAL_BACKOFF.bound(state.failures),
            _ => FAILURE_BACKOFF.bound(state.failures),
        };
        tracing::warn!(err = %error, retry_after = ?pause, "{LOGIN_FAILED}");
        state.failure = Some(Failure {
            kind: error.kind(),
            text: error.to_string(),
            at: now,
            next_try: now.checked_add(pause).unwrap_or(now),
        });
    }

    /// No panic can leave the state half changed, so a poisoned lock can be used.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Whether the current token is the one of this login.
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
