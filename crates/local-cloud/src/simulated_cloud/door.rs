//! What is this cloud's own at the door of every emulated cloud.

use std::time::Duration;

use cloudkeel_emulation::{
    Admitted, Answer, Arrival, Behaviour, Complaint, Denied, Door, Emulated, ListFault,
    ScriptedFault, bearer_of,
};
use cloudkeel_provider_local::wire::{
    ErrorCode, List, PROJECT_HEADER, PageInfo, REQUEST_ID_HEADER,
};
use http::header::IF_MATCH;
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

use super::SimulatedCloud;
use super::fault::{Fault, code_of};
use super::operation::Operation;
use super::refusal::Refusal;
use super::rest::{self, Call, perform};
use super::settings::Settings;
use super::world::World;

impl Emulated for SimulatedCloud {
    type Operation = Operation;
    type Fault = Fault;
    /// The project that a caller sees.
    type Caller = String;

    fn with_door<R>(&self, act: impl FnOnce(&mut Door<Operation, Fault>) -> R) -> R {
        self.with(|world, _| act(&mut world.door))
    }

    fn behaviour(&self) -> Behaviour {
        self.with(|world, _| Behaviour {
            latency: world.settings.latency,
            log_capacity: world.settings.log_capacity,
        })
    }

    fn name_of_caller(headers: &HeaderMap) -> String {
        bearer_of(headers).to_owned()
    }

    fn request_id(number: u64) -> (HeaderName, String) {
        let header = HeaderName::from_static(REQUEST_ID_HEADER);
        (header, format!("req-{number:06}"))
    }

    fn admit(&self, call: &Arrival<Operation>) -> Admitted<String> {
        self.with(|world, now| world.let_in(call, now))
    }

    async fn perform(
        &self,
        call: &Arrival<Operation>,
        caller: &String,
        fault: Option<&Fault>,
    ) -> Answer {
        let other = fault.and_then(ScriptedFault::other_project);
        let project = other.unwrap_or(caller);
        let result = match fault {
            Some(Fault::Status {
                status,
                code,
                retry_after_seconds,
            }) => Err(by_script(*status, *code, *retry_after_seconds)),
            fault => self.with(|world, now| world.carry_out(call, project, fault, now)),
        };
        let result = match result {
            Ok(answer) if call.operation.is_mutating() => self.settle().await.map(|()| answer),
            result => result,
        };
        let answer = rest::Answer::either(result).into();
        if self.with(|world, _| world.settings.features.tells_project) {
            return told(answer, project);
        }
        answer
    }

    fn spoil_list(&self, answer: &mut Value, how: ListFault) {
        let Ok(mut list) = serde_json::from_value::<List<Value>>(answer.clone()) else {
            return;
        };
        match how {
            ListFault::TruncatedPage => {
                list.items.pop();
            }
            ListFault::LostNextPage => list.page.next = None,
            ListFault::EmptyList => {
                list.items.clear();
                list.page = PageInfo {
                    total: 0,
                    next: None,
                    ..list.page
                };
            }
        }
        if let Ok(list) = serde_json::to_value(&list) {
            *answer = list;
        }
    }

    fn complain(&self, complaint: Complaint) -> Answer {
        let refusal = match complaint {
            Complaint::Refused(answer) => return answer,
            Complaint::Unreadable(why) => Refusal::unreadable(why),
            // Not the code `not_found`: that a path is wrong says nothing about what it should lead to.
            Complaint::NoSuchPath(method, path) | Complaint::NoSuchMethod(method, path) => {
                let message = format!("there is no {method} {path} in this API");
                Refusal::new(StatusCode::NOT_FOUND, ErrorCode::Invalid, message)
            }
        };
        rest::Answer::refused(&refusal).into()
    }
}

cloudkeel_emulation::handles!(pub SimulatedCloud: Settings, Operation, Fault);

/// The answer as a cloud gives it that tells whose it is.
fn told(answer: Answer, project: &str) -> Answer {
    answer.with_header(HeaderName::from_static(PROJECT_HEADER), project)
}

fn by_script(status: u16, code: Option<ErrorCode>, retry_after_seconds: Option<u64>) -> Refusal {
    let code = code.unwrap_or(code_of(status));
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Refusal {
        retry_after: retry_after_seconds.map(Duration::from_secs),
        ..Refusal::new(status, code, "by script")
    }
}

impl World {
    fn let_in(&mut self, call: &Arrival<Operation>, now: Instant) -> Admitted<String> {
        let token = bearer_of(&call.headers);
        let mut headers = Vec::new();
        let entry = self.project_of(token, call.operation).and_then(|project| {
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
        Admitted {
            headers,
            entry: entry.map_err(|refusal| rest::Answer::refused(&refusal).into()),
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
        arrival: &Arrival<Operation>,
        project: &str,
        fault: Option<&Fault>,
        now: Instant,
    ) -> Result<rest::Answer, Refusal> {
        let is_list = arrival.operation.is_list();
        let if_match = arrival.headers.get(IF_MATCH);
        let call = Call {
            operation: arrival.operation,
            project,
            resource: arrival.resource.as_deref(),
            query: &arrival.query,
            if_match: if_match.and_then(|value| value.to_str().ok()),
            body: &arrival.body,
            now,
            view: self.settings.consistency.view(is_list, fault, now),
        };
        perform(self, &call)
    }
}
