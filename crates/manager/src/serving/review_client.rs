//! `TokenReview` and `SubjectAccessReview` requests to the API server.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::Secret;
use cloudkeel_controllers::runtime::ErrorText;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::Semaphore;

use super::authentication::TokenReviewer;
use super::authorization::{AccessDecision, AccessRequest, AccessReviewer};
use super::user::User;

/// The timeout of one review with all its attempts, as upstream.
const DEADLINE: Duration = Duration::from_secs(10);

/// Attempts per review, and the pause after the first one; each pause is 1.5 times as long as the last.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Concurrent reviews, so that a flood of bad tokens does not become a flood at the API server.
const MAX_CONCURRENT_REVIEWS: usize = 50;

/// Reviews that may wait for a slot. Each keeps its request in memory.
const MAX_QUEUED_REVIEWS: usize = 512;

/// The API server could not be asked, or did not answer.
#[derive(Debug, Error)]
pub enum ReviewError {
    /// Too many reviews are waiting.
    #[error("the {kind} was not sent: {MAX_QUEUED_REVIEWS} others are waiting already")]
    Busy {
        /// The kind of review.
        kind: &'static str,
    },
    /// It did not answer in time.
    #[error("the {kind} was not answered within {} s", DEADLINE.as_secs())]
    Late {
        /// The kind of review.
        kind: &'static str,
    },
    /// It did not answer, or not with a review.
    #[error("the {kind} failed: {reason}")]
    Failed {
        /// The kind of review.
        kind: &'static str,
        /// The client's error.
        reason: String,
    },
}

/// Sends reviews to the API server.
pub struct ReviewClient {
    client: Client,
    room: Semaphore,
    queue: Semaphore,
}

impl ReviewClient {
    /// Reviews by the API server of this client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            room: Semaphore::new(MAX_CONCURRENT_REVIEWS),
            queue: Semaphore::new(MAX_CONCURRENT_REVIEWS + MAX_QUEUED_REVIEWS),
        }
    }

    async fn ask<R>(&self, kind: &'static str, access: &R) -> Result<R, ReviewError>
    where
        R: kube::Resource<DynamicType = ()>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let Ok(_place) = self.queue.try_acquire() else {
            return Err(ReviewError::Busy { kind });
        };
        let api: Api<R> = Api::all(self.client.clone());
        let asked = async {
            let _room = self.room.acquire().await;
            create_with_retries(&api, access).await
        };
        match tokio::time::timeout(DEADLINE, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(ReviewError::Failed {
                kind,
                reason: ErrorText(&error).to_string(),
            }),
            Err(_) => Err(ReviewError::Late { kind }),
        }
    }
}

async fn create_with_retries<R>(api: &Api<R>, access: &R) -> Result<R, kube::Error>
where
    R: kube::Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let mut pause = FIRST_PAUSE;
    let mut tries = 1;
    loop {
        match api.create(&PostParams::default(), access).await {
            Err(error) if tries < TRIES && is_passing(&error) => {
                tokio::time::sleep(pause).await;
                pause = pause.mul_f64(1.5);
                tries += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Whether a retry may help. An unreachable server is not waited for: the client of the endpoint can retry itself.
fn is_passing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 429 | 500 | 503 | 504))
}

#[async_trait]
impl TokenReviewer for ReviewClient {
    async fn review(&self, token: &Secret) -> Result<Option<User>, ReviewError> {
        let access = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.expose().to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let answer = self.ask("TokenReview", &access).await?;
        let status = answer.status.unwrap_or_default();
        Ok(status
            .user
            .filter(|_| status.authenticated == Some(true))
            .map(user))
    }
}

fn user(info: UserInfo) -> User {
    User {
        name: info.username.unwrap_or_default(),
        uid: info.uid.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    }
}

#[async_trait]
impl AccessReviewer for ReviewClient {
    async fn review(&self, access: &AccessRequest) -> Result<AccessDecision, ReviewError> {
        let User {
            name,
            uid,
            groups,
            extra,
        } = access.user.clone();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(name),
                uid: Some(uid).filter(|uid| !uid.is_empty()),
                groups: Some(groups),
                extra: Some(extra),
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(access.path.clone()),
                    verb: Some(access.verb.clone()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let status = self.ask("SubjectAccessReview", &review).await?.status;
        let status = status.unwrap_or_default();
        Ok(AccessDecision {
            allowed: status.allowed && status.denied != Some(true),
            reason: status.reason.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::ApiServer;

    #[tokio::test(start_paused = true)]
    async fn a_flood_waits_in_a_queue_that_has_an_end() {
        let reviews = ReviewClient::new(ApiServer::answering(&[None]).client());
        let token = Secret::new("t");
        let began = Instant::now();
        let ask = || async {
            let answer = TokenReviewer::review(&reviews, &token).await;
            (answer.unwrap_err().to_string(), began.elapsed().as_secs())
        };
        let flood = MAX_CONCURRENT_REVIEWS + MAX_QUEUED_REVIEWS;
        let mut outcomes = join_all((0..=flood).map(|_| ask())).await;
        let (last, seconds) = outcomes.pop().unwrap();
        assert_eq!(
            last,
            "the TokenReview was not sent: 512 others are waiting already"
        );
        assert_eq!(
            seconds, 0,
            "a review that finds the queue full fails at once"
        );
        let late = "the TokenReview was not answered within 10 s".to_owned();
        assert_eq!(outcomes, vec![(late, 10); flood]);
        assert_eq!(ask().await.1, 20, "afterwards there is room again");
    }
}
