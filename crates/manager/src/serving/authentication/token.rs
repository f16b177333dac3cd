//! Users who show a bearer token.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::Secret;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::serving::complaint::Complaints;
use crate::serving::expiring::Expiring;
use crate::serving::review::ReviewError;
use crate::serving::user::User;

/// Tokens whose answers are kept.
const MOST_TOKENS: usize = 4096;

/// Longer than any real token; more is not worth a question.
const MOST_TOKEN_BYTES: usize = 64 * 1024;

/// Knows whose a token is.
#[async_trait]
pub trait TokenReviewer: Send + Sync {
    /// The token's user, or `None` if the token is not good.
    async fn review(&self, token: &Secret) -> Result<Option<User>, ReviewError>;
}

/// Asks about each token once in a while. Kept are only keyed hashes of tokens, never tokens.
pub(super) struct Tokens {
    reviewer: Box<dyn TokenReviewer>,
    lasts: Duration,
    hash_key: hmac::Key,
    answers: Expiring<Vec<u8>, Option<User>>,
    complaints: Complaints,
}

impl Tokens {
    pub(super) fn new(reviewer: Box<dyn TokenReviewer>, lasts: Duration) -> Result<Self, String> {
        let hash_key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the system has no random numbers".to_owned())?;
        Ok(Self {
            reviewer,
            lasts,
            hash_key,
            answers: Expiring::new(MOST_TOKENS),
            complaints: Complaints::new(),
        })
    }

    /// The user of the token in the headers. `None` without a token; a bad one is an error.
    pub(super) async fn user(&self, headers: &HeaderMap) -> Result<Option<User>, String> {
        let Some(token) = bearer_token(headers) else {
            return Ok(None);
        };
        if token.expose().len() > MOST_TOKEN_BYTES {
            return Err("the bearer token is too long".to_owned());
        }
        let key = hmac::sign(&self.hash_key, token.expose().as_bytes());
        let key = key.as_ref().to_vec();
        let mut known = self.answers.get(&key);
        if known.is_none() {
            let answer = self.reviewer.review(&token).await;
            let answer = answer.map_err(|error| {
                let error = error.to_string();
                if self.complaints.is_new(&error) {
                    tracing::warn!(error, "nobody could say whose a token is");
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
