//! Asking the API server about tokens and permissions.

use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::Secret;
use cloudkeel_controllers::runtime::Brief;
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
use super::authorization::{AccessReviewer, Answer, Question};
use super::user::User;

/// For one question with all its tries, as upstream.
const DEADLINE: Duration = Duration::from_secs(10);

/// Tries for one question, and the pause after the first; each pause is half as long again.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Questions at the same time, so that a flood of bad tokens does not become one at the API server.
const MOST_QUESTIONS: usize = 50;

/// Questions that wait for their turn. Each keeps its request in memory.
const MOST_WAITING: usize = 512;

/// The API server could not be asked, or did not answer.
#[derive(Debug, Error)]
pub enum ReviewError {
    /// Too many others are waiting.
    #[error("the {kind} was not asked for: {MOST_WAITING} others wait already")]
    Busy {
        /// What should have been asked.
        kind: &'static str,
    },
    /// It did not answer in time.
    #[error("the {kind} was not answered within {} s", DEADLINE.as_secs())]
    Late {
        /// What was asked.
        kind: &'static str,
    },
    /// It did not answer, or not with an answer.
    #[error("the {kind} failed: {reason}")]
    Failed {
        /// What was asked.
        kind: &'static str,
        /// What the client said.
        reason: String,
    },
}

/// Asks a cluster's API server.
pub struct KubeReviews {
    client: Client,
    room: Semaphore,
    queue: Semaphore,
}

impl KubeReviews {
    /// Asks the API server of this client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            room: Semaphore::new(MOST_QUESTIONS),
            queue: Semaphore::new(MOST_QUESTIONS + MOST_WAITING),
        }
    }

    async fn ask<R>(&self, kind: &'static str, question: &R) -> Result<R, ReviewError>
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
            create_with_retries(&api, question).await
        };
        match tokio::time::timeout(DEADLINE, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(ReviewError::Failed {
                kind,
                reason: Brief(&error).to_string(),
            }),
            Err(_) => Err(ReviewError::Late { kind }),
        }
    }
}

async fn create_with_retries<R>(api: &Api<R>, question: &R) -> Result<R, kube::Error>
where
    R: kube::Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let mut pause = FIRST_PAUSE;
    let mut tries = 1;
    loop {
        match api.create(&PostParams::default(), question).await {
            Err(error) if tries < TRIES && is_passing(&error) => {
                tokio::time::sleep(pause).await;
                pause = pause.mul_f64(1.5);
                tries += 1;
            }
            outcome => return outcome,
        }
    }
}

/// Whether asking again may help. A server that cannot be reached is not waited for: the client of this
/// endpoint can ask again itself.
fn is_passing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 429 | 500 | 503 | 504))
}

#[async_trait]
impl TokenReviewer for KubeReviews {
    async fn review(&self, token: &Secret) -> Result<Option<User>, ReviewError> {
        let question = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.expose().to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let answer = self.ask("TokenReview", &question).await?;
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
impl AccessReviewer for KubeReviews {
    async fn review(&self, question: &Question) -> Result<Answer, ReviewError> {
        let User {
            name,
            uid,
            groups,
            extra,
        } = question.user.clone();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(name),
                uid: Some(uid).filter(|uid| !uid.is_empty()),
                groups: Some(groups),
                extra: Some(extra),
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(question.path.clone()),
                    verb: Some(question.verb.clone()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let status = self.ask("SubjectAccessReview", &review).await?.status;
        let status = status.unwrap_or_default();
        Ok(Answer {
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
        let reviews = KubeReviews::new(ApiServer::answering(&[None]).client());
        let token = Secret::new("t");
        let began = Instant::now();
        let ask = || async {
            let answer = TokenReviewer::review(&reviews, &token).await;
            (answer.unwrap_err().to_string(), began.elapsed().as_secs())
        };
        let flood = MOST_QUESTIONS + MOST_WAITING;
        let mut told = join_all((0..=flood).map(|_| ask())).await;
        let (last, seconds) = told.pop().unwrap();
        assert_eq!(
            last,
            "the TokenReview was not asked for: 512 others wait already"
        );
        assert_eq!(seconds, 0, "whoever finds no place is told at once");
        let late = "the TokenReview was not answered within 10 s".to_owned();
        assert_eq!(told, vec![(late, 10); flood]);
        assert_eq!(ask().await.1, 20, "afterwards there is room again");
    }
}
