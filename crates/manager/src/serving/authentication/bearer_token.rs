//! Authentication by bearer token.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::Secret;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::log_messages::TOKEN_REVIEW_FAILED;
use crate::serving::review_client::ReviewError;
use crate::serving::ttl_cache::TtlCache;
use crate::serving::user::User;
use crate::serving::warning_limiter::WarningLimiter;

/// How many `TokenReview` results are cached.
const MAX_CACHED_TOKENS: usize = 4096;

/// Longer than any real token; longer ones are rejected without a review.
const MAX_TOKEN_BYTES: usize = 64 * 1024;

/// Authenticates tokens.
#[async_trait]
pub trait TokenReviewer: Send + Sync {
    /// The token's user, or `None` if the token is invalid.
    async fn review(&self, token: &Secret) -> Result<Option<User>, ReviewError>;
}

/// Reviews tokens and caches the results. The cache holds keyed hashes of tokens, never tokens.
pub(super) struct Tokens {
    reviewer: Box<dyn TokenReviewer>,
    lasts: Duration,
    hash_key: hmac::Key,
    answers: TtlCache<Vec<u8>, Option<User>>,
    warnings: WarningLimiter,
}

impl Tokens {
    pub(super) fn new(reviewer: Box<dyn TokenReviewer>, lasts: Duration) -> Result<Self, String> {
        let hash_key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the system has no random numbers".to_owned())?;
        Ok(Self {
            reviewer,
            lasts,
            hash_key,
            answers: TtlCache::new(MAX_CACHED_TOKENS),
            warnings: WarningLimiter::new(),
        })
    }

    /// The user of the token in the headers. `None` without a token; a bad one is an error.
    pub(super) async fn user(&self, headers: &HeaderMap) -> Result<Option<User>, String> {
        let Some(token) = bearer_token(headers) else {
            return Ok(None);
        };
        if token.expose().len() > MAX_TOKEN_BYTES {
            return Err("the bearer token is too long".to_owned());
        }
        let key = hmac::sign(&self.hash_key, token.expose().as_bytes());
        let key = key.as_ref().to_vec();
        let mut known = self.answers.get(&key);
        if known.is_none() {
            let answer = self.reviewer.review(&token).await;
            let answer = answer.map_err(|error| {
                let error = error.to_string();
                if self.warnings.should_log(&error) {
                    tracing::warn!(err = error, "{TOKEN_REVIEW_FAILED}");
                }
                error
            })?;
            self.answers.insert(key, answer.clone(), self.lasts);
            known = Some(answer);
        }
        let user = known.flatten();
        user.map(Some)
            .ok_or_else(|| "invalid bearer token".to_owned())
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<Secret> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let mut parts = value.trim().split(' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| Secret::new(token))
}
