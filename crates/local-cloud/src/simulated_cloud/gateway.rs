//! What is this cloud's own at the gateway of every emulated cloud.

use std::time::Duration;

use cloudkeel_emulation::{
    Admission, Answer, Call, Denied, Emulated, ListShape, RequestError, ScriptedFault, bearer_of,
};
use cloudkeel_provider_local::wire::{ErrorCode, PROJECT_HEADER, REQUEST_ID_HEADER};
use http::{HeaderName, StatusCode};
use tokio::time::Instant;

use super::SimulatedCloud;
use super::fault::{Fault, code_of};
use super::operation::Operation;
use super::refusal::Refusal;
use super::rest::{self, Request, perform};
use super::settings::Settings;
use super::state::State;

impl Emulated for SimulatedCloud {
    type Operation = Operation;
    type Fault = Fault;
    /// The project that a caller sees.
    type Caller = String;

    const LIST_SHAPE: ListShape = ListShape::Json {
        is_list: "/page",
        next: &["/page/next"],
        totals: &["/page/total"],
        last_page: &[],
    };

    cloudkeel_emulation::gateway_methods!();

    fn request_id(number: u64) -> (HeaderName, String) {
        let header = HeaderName::from_static(REQUEST_ID_HEADER);
        (header, format!("req-{number:06}"))
    }

    fn admit(&self, call: &Call<Operation>) -> Admission<String> {
        self.with(|state, now| state.admit(call, now))
    }

    async fn perform(
        &self,
        call: &Call<Operation>,
        caller: &String,
        fault: Option<&Fault>,
    ) -> Answer {
        let other = fault.and_then(ScriptedFault::other_project);
        let project = other.as_deref().unwrap_or(caller);
        let result = match fault {
            Some(Fault::Status {
                status,
                code,
                retry_after_seconds,
            }) => Err(by_script(*status, *code, *retry_after_seconds)),
            fault => self.with(|state, now| state.carry_out(call, project, fault, now)),
        };
        let result = match result {
            Ok(answer) if call.operation.is_mutating() => self.settle().await.map(|()| answer),
            result => result,
        };
        let answer = result.unwrap_or_else(|refusal| rest::refused(&refusal));
        if self.with(|state, _| state.settings.features.tells_project) {
            return answer.with_header(HeaderName::from_static(PROJECT_HEADER), project);
        }
        answer
    }

    fn error_answer(&self, error: RequestError) -> Answer {
        let refusal = match error {
            RequestError::Rejected(answer) => return answer,
            RequestError::InvalidBody(why) | RequestError::UnknownCommand(why) => {
                Refusal::unreadable(why)
            }
            // Not the code `not_found`: that a path is wrong says nothing about what it should lead to.
            RequestError::PathNotFound(method, path)
            | RequestError::MethodNotAllowed(method, path) => {
                let message = format!("there is no {method} {path} in this API");
                Refusal::new(StatusCode::NOT_FOUND, ErrorCode::Invalid, message)
            }
        };
        rest::refused(&refusal)
    }
}

cloudkeel_emulation::control_methods!(pub SimulatedCloud: Settings, Operation, Fault);

fn by_script(status: u16, code: Option<ErrorCode>, retry_after_seconds: Option<u64>) -> Refusal {
    let code = code.unwrap_or(code_of(status));
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Refusal {
        retry_after: retry_after_seconds.map(Duration::from_secs),
        ..Refusal::new(status, code, "by script")
    }
}

impl State {
    fn admit(&mut self, call: &Call<Operation>, now: Instant) -> Admission<String> {
        let token = bearer_of(&call.headers);
        let mut headers = Vec::new();
        let caller = self.project_of(token, call.operation).and_then(|project| {
            let Some(limit) = self.settings.rate_limit else {
                return Ok(project);
            };
            let budget = self.buckets.charge(token, limit, now);
            headers = budget.headers(rest::whole_seconds(budget.reset));
            match budget.retry_after {
                Some(wait) => Err(Refusal::rate_limited(wait)),
                None => Ok(project),
            }
        });
        Admission {
            headers,
            caller: caller.map_err(|refusal| rest::refused(&refusal)),
        }
    }

    /// The project of a token that may do something like this operation.
    pub(super) fn project_of(&self, token: &str, like: Operation) -> Result<String, Refusal> {
        let admitted = self.tokens.admit(token, like.is_mutating());
        admitted.map(str::to_owned).map_err(|denied| match denied {
            Denied::Unknown => Refusal::unauthorized("the token is missing or unknown"),
            Denied::Forbidden | Denied::ReadOnly => {
                Refusal::forbidden(format!("this token may not {like}"))
            }
        })
    }

    fn carry_out(
        &mut self,
        call: &Call<Operation>,
        project: &str,
        fault: Option<&Fault>,
        now: Instant,
    ) -> Result<Answer, Refusal> {
        let consistency = self.settings.consistency;
        let request = Request {
            call,
            project,
            now,
            view: consistency.view(call.operation.is_list(), fault, now),
        };
        perform(self, &request)
    }
}
