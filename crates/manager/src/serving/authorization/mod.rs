//! Authorization: who may read what.
//!
//! Members of `system:masters` may do everything, some paths are always allowed, and for the rest the API server
//! decides, by a `SubjectAccessReview`.

mod allowed_paths;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use kube::Client;

pub(super) use self::allowed_paths::AllowedPaths;
use super::ServingError;
use super::review_client::{ReviewClient, ReviewError};
use super::ttl_cache::TtlCache;
use super::user::{MASTERS, User};
use crate::options::AuthorizationOptions;

/// How many decisions are cached.
const MAX_CACHED_DECISIONS: usize = 4096;

/// Larger requests are not cached: a few of them would fill the memory.
const MAX_CACHED_REQUEST_BYTES: usize = 10_000;

/// A request to be authorized.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccessRequest {
    /// The user.
    pub user: User,
    /// The method, in lower case.
    pub verb: String,
    /// The path, decoded.
    pub path: String,
}

impl AccessRequest {
    /// Approximate memory use. The client controls the length of every part, the method included.
    fn size(&self) -> usize {
        self.user.size() + self.verb.len() + self.path.len()
    }
}

/// The decision about an [`AccessRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessDecision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The reason, if there is one.
    pub reason: String,
}

/// Authorizes requests.
#[async_trait]
pub trait AccessReviewer: Send + Sync {
    /// The decision, or why there is none.
    async fn review(&self, access: &AccessRequest) -> Result<AccessDecision, ReviewError>;
}

/// Authorizes requests, with a cache.
pub struct Authorizer {
    always_allowed: AllowedPaths,
    reviewer: Option<Box<dyn AccessReviewer>>,
    answers: TtlCache<AccessRequest, AccessDecision>,
    allowed_ttl: Duration,
    denied_ttl: Duration,
}

impl Authorizer {
    /// Delegates to the cluster of `client`. Without one, only always-allowed paths and `system:masters` remain.
    pub fn delegated(
        options: &AuthorizationOptions,
        client: Option<Client>,
    ) -> Result<Self, ServingError> {
        let reviewer = client.map(|client| Box::new(ReviewClient::new(client)) as Box<_>);
        Self::new(options, reviewer)
    }

    /// With this reviewer.
    pub fn new(
        options: &AuthorizationOptions,
        reviewer: Option<Box<dyn AccessReviewer>>,
    ) -> Result<Self, ServingError> {
        Ok(Self {
            always_allowed: AllowedPaths::parse(&options.always_allow_paths)?,
            reviewer,
            answers: TtlCache::new(MAX_CACHED_DECISIONS),
            allowed_ttl: options.authorized_ttl,
            denied_ttl: options.unauthorized_ttl,
        })
    }

    /// Decides. An error means that the review failed.
    pub(super) async fn decide(
        &self,
        access: AccessRequest,
    ) -> Result<AccessDecision, ReviewError> {
        let yes = AccessDecision {
            allowed: true,
            reason: String::new(),
        };
        if access.user.is_in(MASTERS) || self.always_allowed.contain(&access.path) {
            return Ok(yes);
        }
        let Some(reviewer) = &self.reviewer else {
            return Ok(AccessDecision {
                allowed: false,
                ..yes
            });
        };
        if let Some(answer) = self.answers.get(&access) {
            return Ok(answer);
        }
        let answer = reviewer.review(&access).await?;
        let lasts = if answer.allowed {
            self.allowed_ttl
        } else {
            self.denied_ttl
        };
        if access.size() <= MAX_CACHED_REQUEST_BYTES {
            self.answers.insert(access, answer.clone(), lasts);
        }
        Ok(answer)
    }
}
