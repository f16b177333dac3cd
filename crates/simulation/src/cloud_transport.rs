//! The connection of one process of a manager to its clouds.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_http::{Transport, TransportError};
use cloudkeel_testkit::simulated_cloud::{InProcess, SimulatedCloud};
use http::header::AUTHORIZATION;
use serde::de::IgnoredAny;

use crate::accounts::{Account, Clouds};
use crate::action::ManagerId;
use crate::crash::{CrashPoint, CrashSwitch};
use crate::fault_class::FaultClass;
use crate::invariants::Checker;

/// Hands each request to the account that its token sees, and shows it to the checker.
pub(crate) struct CloudTransport {
    manager_id: ManagerId,
    clouds: Clouds,
    transports: Vec<InProcess>,
    crash_switch: Arc<CrashSwitch>,
    checker: Arc<Checker>,
}

impl CloudTransport {
    pub(crate) fn new(
        manager_id: ManagerId,
        crash_switch: Arc<CrashSwitch>,
        clouds: Clouds,
        checker: Arc<Checker>,
    ) -> Self {
        Self {
            manager_id,
            transports: clouds.all().map(SimulatedCloud::transport).collect(),
            clouds,
            crash_switch,
            checker,
        }
    }
}

impl CloudTransport {
    /// Counts requests that see something else than they should, and those with a new token.
    fn count_special(&self, account: Account, reached: Account, token: &str) {
        if account != reached {
            self.checker.met(FaultClass::OtherAccount);
        }
        if token != account.token() && !self.clouds.is_outdated(token) {
            self.checker.met(FaultClass::CredentialReload);
        }
        if self.checker.is_project_swapped(reached) {
            self.checker.met(FaultClass::OtherProject);
        }
        if self.checker.has_stale_reads() {
            self.checker.met(FaultClass::StaleCloudRead);
        }
    }
}

/// The token that a request has.
fn token_of<T>(request: &http::Request<T>) -> &str {
    let token = request.headers().get(AUTHORIZATION);
    let token = token.and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer "));
    token.unwrap_or_default()
}

/// Whether an answer about several things says that some of them were not done, or cannot be read: then it is unknown.
fn refuses_a_part(answer: &http::Response<Bytes>) -> bool {
    let has_something_to_say = answer.status() != http::StatusCode::NO_CONTENT;
    let is_readable = serde_json::from_slice::<IgnoredAny>(answer.body()).is_ok();
    let text = String::from_utf8_lossy(answer.body());
    (has_something_to_say && !is_readable) || text.contains("\"error\"")
}

#[async_trait]
impl Transport for CloudTransport {
    async fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        let changes = request.method() != http::Method::GET;
        let before = changes.then_some(CrashPoint::BeforeChange);
        self.crash_switch.reach(before).await;
        let token = token_of(&request);
        let account = Account::of_token(token);
        let reached = self.clouds.reached_by(account);
        self.count_special(account, reached, token);
        let asked = self
            .checker
            .cloud_call_sent(self.manager_id, account, reached, &request);
        let answer = self.transports[reached as usize].send(request).await;
        let status = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
        if status == 0 || status >= 400 {
            self.checker.met(FaultClass::CloudError);
        }
        let is_refused = answer.as_ref().is_ok_and(refuses_a_part);
        self.checker.cloud_call_answered(&asked, status, is_refused);
        let after = changes.then_some(CrashPoint::AfterChange);
        self.crash_switch.reach(after).await;
        answer
    }
}
