//! Deciding who may read what.
//!
//! Administrators may do everything, some paths are for everybody, and for the rest the API server is
//! asked.

mod paths;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use kube::Client;

pub(super) use self::paths::Paths;
use super::ServingError;
use super::expiring::Expiring;
use super::review::{KubeReviews, ReviewError};
use super::user::{MASTERS, User};
use crate::options::AuthorizationOptions;

/// Answers that are kept.
const MOST_ANSWERS: usize = 4096;

/// Questions longer than this are asked every time: a few of them would fill the memory.
const LONGEST_KEPT_QUESTION: usize = 10_000;

/// May this user do this?
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Question {
    /// Who.
    pub user: User,
    /// The method, in lower case.
    pub verb: String,
    /// The path, decoded.
    pub path: String,
}

impl Question {
    /// Roughly how much memory it takes. All of it is as long as whoever asks makes it, the method too.
    fn size(&self) -> usize {
        self.user.size() + self.verb.len() + self.path.len()
    }
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Yes.
    pub allowed: bool,
    /// Why, if that was told.
    pub reason: String,
}

/// Knows what users may do.
#[async_trait]
pub trait AccessReviewer: Send + Sync {
    /// Answers, or says why there is no answer.
    async fn review(&self, question: &Question) -> Result<Answer, ReviewError>;
}

/// Decides who may read what.
pub struct Authorizer {
    open_paths: Paths,
    reviewer: Option<Box<dyn AccessReviewer>>,
    answers: Expiring<Question, Answer>,
    yes_lasts: Duration,
    no_lasts: Duration,
}

impl Authorizer {
    /// Delegates to the cluster of `client`. Without one, only the open paths are left, and
    /// administrators.
    pub fn delegated(
        options: &AuthorizationOptions,
        client: Option<Client>,
    ) -> Result<Self, ServingError> {
        let reviewer = client.map(|client| Box::new(KubeReviews::new(client)) as Box<_>);
        Self::new(options, reviewer)
    }

    /// Asks this reviewer.
    pub fn new(
        options: &AuthorizationOptions,
        reviewer: Option<Box<dyn AccessReviewer>>,
    ) -> Result<Self, ServingError> {
        Ok(Self {
            open_paths: Paths::parse(&options.always_allow_paths)?,
            reviewer,
            answers: Expiring::new(MOST_ANSWERS),
            yes_lasts: options.authorized_ttl,
            no_lasts: options.unauthorized_ttl,
        })
    }

    /// Decides. An error means that nobody could be asked.
    pub(super) async fn decide(&self, question: Question) -> Result<Answer, ReviewError> {
        let yes = Answer {
            allowed: true,
            reason: String::new(),
        };
        if question.user.is_in(MASTERS) || self.open_paths.contain(&question.path) {
            return Ok(yes);
        }
        let Some(reviewer) = &self.reviewer else {
            return Ok(Answer {
                allowed: false,
                ..yes
            });
        };
        if let Some(answer) = self.answers.get(&question) {
            return Ok(answer);
        }
        let answer = reviewer.review(&question).await?;
        let lasts = if answer.allowed {
            self.yes_lasts
        } else {
            self.no_lasts
        };
        if question.size() <= LONGEST_KEPT_QUESTION {
            self.answers.insert(question, answer.clone(), lasts);
        }
        Ok(answer)
    }
}
