//! The way of one manager to its clouds.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_http::{Transport, TransportError};
use cloudkeel_testkit::simulated_cloud::InProcess;
use http::header::AUTHORIZATION;
use serde::de::IgnoredAny;

use crate::accounts::{Account, Clouds};
use crate::action::Who;
use crate::fate::{Fate, Moment};
use crate::witness::Witness;

/// Hands each request to the account that its token sees, and shows it to the witness. It ends with the life of its
/// manager.
pub(crate) struct CloudWay {
    who: Who,
    clouds: Clouds,
    transports: [InProcess; 2],
    fate: Arc<Fate>,
    witness: Arc<Witness>,
}

impl CloudWay {
    pub(crate) fn new(who: Who, fate: Arc<Fate>, clouds: Clouds, witness: Arc<Witness>) -> Self {
        Self {
            who,
            transports: Account::BOTH.map(|account| clouds.of(account).transport()),
            clouds,
            fate,
            witness,
        }
    }
}

/// The account whose token the configuration has for a request.
fn account_of<T>(request: &http::Request<T>) -> Account {
    let token = request.headers().get(AUTHORIZATION);
    let token = token.and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer "));
    let has_token = |account: &Account| token == Some(account.token());
    let account = Account::BOTH.into_iter().find(has_token);
    account.unwrap_or(Account::First)
}

/// Whether an answer about several things says that some of them were not done, or cannot be read: then
/// nobody knows.
fn refuses_a_part(answer: &http::Response<Bytes>) -> bool {
    let has_something_to_say = answer.status() != http::StatusCode::NO_CONTENT;
    let is_readable = serde_json::from_slice::<IgnoredAny>(answer.body()).is_ok();
    let text = String::from_utf8_lossy(answer.body());
    (has_something_to_say && !is_readable) || text.contains("\"error\"")
}

#[async_trait]
impl Transport for CloudWay {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let changes = request.method() != http::Method::GET;
        let before = changes.then_some(Moment::BeforeChange);
        self.fate.reach(before).await;
        let account = account_of(&request);
        let reached = self.clouds.reached_by(account);
        let asked = self
            .witness
            .asks_cloud(self.who, account, reached, &request);
        let answer = self.transports[reached as usize].send(request).await;
        let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
        let is_refused = answer.as_ref().is_ok_and(refuses_a_part);
        self.witness.cloud_answered(&asked, status, is_refused);
        let after = changes.then_some(Moment::AfterChange);
        self.fate.reach(after).await;
        answer
    }
}
