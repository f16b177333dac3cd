//! What is Hetzner's own at the gateway of every emulated cloud.

use cloudkeel_emulation::{
    Admission, Answer, Call, Denied, Emulated, ListShape, RequestError, ScriptedFault, basic_of,
    bearer_of,
};
use http::{HeaderMap, HeaderName, StatusCode};
use tokio::time::Instant;

use crate::HetznerCloud;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::rest::{page_of, perform};
use crate::settings::Settings;
use crate::state::State;

impl Emulated for HetznerCloud {
    type Operation = Operation;
    type Fault = Fault;
    /// The project that a caller sees. Robot has none.
    type Caller = String;

    /// A list is its meta data and one array; Robot's is the array alone.
    const LIST_SHAPE: ListShape = ListShape::Json {
        is_list: "/meta/pagination",
        next: &["/meta/pagination/next_page"],
        totals: &["/meta/pagination/total_entries"],
        last_page: &["/meta/pagination/last_page"],
    };

    cloudkeel_emulation::gateway_methods!();

    fn caller_name(headers: &HeaderMap) -> String {
        match basic_of(headers) {
            Some((user, _)) => user,
            None => bearer_of(headers).to_owned(),
        }
    }

    fn page_of(query: &str) -> u64 {
        page_of(query)
    }

    fn request_id(number: u64) -> (HeaderName, String) {
        let header = HeaderName::from_static("x-correlation-id");
        (header, format!("{number:016x}"))
    }

    fn admit(&self, call: &Call<Operation>) -> Admission<String> {
        self.with(|state, now| {
            let mut headers = Vec::new();
            let caller = if call.operation.is_robot() {
                let (login, limit) = (basic_of(&call.headers), state.settings.robot_limit);
                let admitted = state
                    .robot
                    .admit(login.as_ref(), call.operation, limit, now);
                admitted.map(|()| String::new())
            } else {
                state.admit_token(call, now, &mut headers)
            };
            Admission {
                headers,
                caller: caller.map_err(|refusal| refused(call.operation, &refusal)),
            }
        })
    }

    async fn perform(
        &self,
        call: &Call<Operation>,
        caller: &String,
        fault: Option<&Fault>,
    ) -> Answer {
        let result = match fault {
            Some(Fault::Bare { status }) => {
                let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY);
                return Answer::html(status);
            }
            Some(Fault::Refused { code, status }) => Err(by_script(call.operation, code, *status)),
            fault => self.with(|state, now| state.carry_out(call, caller, fault, now)),
        };
        result.unwrap_or_else(|refusal| refused(call.operation, &refusal))
    }

    fn error_answer(&self, error: RequestError) -> Answer {
        let (code, method, path) = match error {
            RequestError::Rejected(answer) => return answer,
            RequestError::InvalidBody(why) | RequestError::UnknownCommand(why) => {
                return Refusal::new("json_error", why).answer();
            }
            RequestError::PathNotFound(method, path) => ("not_found", method, path),
            RequestError::MethodNotAllowed(method, path) => ("method_not_allowed", method, path),
        };
        Refusal::new(code, format!("there is no {method} {path} here")).answer()
    }
}

cloudkeel_emulation::control_methods!(pub HetznerCloud: Settings, Operation, Fault);

/// A refusal as the API of this call says it: all codes of Robot are in upper case.
fn by_script(operation: Operation, code: &str, status: Option<u16>) -> Refusal {
    let refusal = if operation.is_robot() {
        Refusal::new(&code.to_uppercase(), "by script")
    } else {
        Refusal::new(code, "by script")
    };
    match status.and_then(|status| StatusCode::from_u16(status).ok()) {
        Some(status) => Refusal { status, ..refusal },
        None => refusal,
    }
}

fn refused(operation: Operation, refusal: &Refusal) -> Answer {
    if operation.is_robot() {
        refusal.robot_answer()
    } else {
        refusal.answer()
    }
}

impl State {
    /// The tokens of a project share its budget.
    fn admit_token(
        &mut self,
        call: &Call<Operation>,
        now: Instant,
        headers: &mut Vec<(HeaderName, String)>,
    ) -> Result<String, Refusal> {
        let token = bearer_of(&call.headers);
        let project = self.tokens.admit(token, call.operation.is_mutating());
        let project = project.map_err(denial)?.to_owned();
        let Some(limit) = self.settings.rate_limit else {
            return Ok(project);
        };
        let budget = self.buckets.charge(&project, limit, now);
        let reset = self.clock.time_at(now + budget.reset).as_second();
        *headers = budget.headers(reset.to_string());
        if budget.retry_after.is_none() {
            return Ok(project);
        }
        let message = format!("limit of {} requests reached", limit.burst);
        Err(Refusal::new("rate_limit_exceeded", message))
    }

    fn carry_out(
        &mut self,
        call: &Call<Operation>,
        project: &str,
        fault: Option<&Fault>,
        now: Instant,
    ) -> Result<Answer, Refusal> {
        if call.operation.is_robot() {
            return self.robot.perform(call);
        }
        let consistency = self.settings.consistency;
        let other = fault.and_then(ScriptedFault::other_project);
        let mut context = self.context(other.as_deref().unwrap_or(project), now)?;
        context.view = consistency.view(call.operation.is_list(), fault, now);
        if let Some(Fault::ActionFails { code }) = fault {
            context.failure = Some(code.clone());
        }
        perform(&mut context, call)
    }
}

/// How the Cloud API refuses a token.
fn denial(denied: Denied) -> Refusal {
    let (code, message) = match denied {
        Denied::Unknown => ("unauthorized", "unable to authenticate"),
        Denied::Forbidden => ("forbidden", "insufficient permissions for this request"),
        Denied::ReadOnly => (
            "token_readonly",
            "token is only allowed to perform GET requests",
        ),
    };
    Refusal::new(code, message)
}
