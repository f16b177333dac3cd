//! What is DigitalOcean's own at the gateway of every emulated cloud.

use std::time::Duration;

use cloudkeel_emulation::{
    Admission, Answer, Call, Emulated, ListShape, RequestError, ScriptedFault, bearer_of,
};
use http::{HeaderName, StatusCode};
use tokio::time::Instant;

use crate::DigitalOceanCloud;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::rest::{page_of, perform};
use crate::settings::Settings;
use crate::state::State;

impl Emulated for DigitalOceanCloud {
    type Operation = Operation;
    type Fault = Fault;
    /// The account that a caller sees.
    type Caller = String;

    const LIST_SHAPE: ListShape = ListShape::Json {
        is_list: "/meta/total",
        next: &["/links/pages/next"],
        totals: &["/meta/total"],
        last_page: &[],
    };

    cloudkeel_emulation::gateway_methods!();

    fn page_of(query: &str) -> u64 {
        page_of(query)
    }

    fn request_id(number: u64) -> (HeaderName, String) {
        let header = HeaderName::from_static("x-request-id");
        (header, cloudkeel_emulation::ids::uuid_of(number))
    }

    fn admit(&self, call: &Call<Operation>) -> Admission<String> {
        self.with(|state, now| {
            let mut headers = Vec::new();
            let caller = state.admit(call, now, &mut headers);
            Admission {
                caller: caller.map_err(|refusal| refusal.answer(&state.request_id())),
                headers,
            }
        })
    }

    async fn perform(
        &self,
        call: &Call<Operation>,
        caller: &String,
        fault: Option<&Fault>,
    ) -> Answer {
        self.with(|state, now| {
            let result = match fault {
                Some(Fault::Bare { status }) => {
                    let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY);
                    return Answer::html(status);
                }
                Some(Fault::Refused { status }) => Err(Refusal::status(*status)),
                fault => state.carry_out(call, caller, fault, now),
            };
            result.unwrap_or_else(|refusal| refusal.answer(&state.request_id()))
        })
    }

    fn error_answer(&self, error: RequestError) -> Answer {
        let refusal = match error {
            RequestError::Rejected(answer) => return answer,
            RequestError::InvalidBody(why) | RequestError::UnknownCommand(why) => {
                Refusal::saying(400, why)
            }
            RequestError::PathNotFound(..) => Refusal::not_found(),
            RequestError::MethodNotAllowed(..) => Refusal::status(405),
        };
        self.with(|state, _| refusal.answer(&state.request_id()))
    }
}

cloudkeel_emulation::control_methods!(pub DigitalOceanCloud: Settings, Operation, Fault);

impl State {
    /// The ID of the call that came last, which the answer names.
    fn request_id(&self) -> String {
        cloudkeel_emulation::ids::uuid_of(self.gateway.log.counts().total())
    }

    fn admit(
        &mut self,
        call: &Call<Operation>,
        now: Instant,
        headers: &mut Vec<(HeaderName, String)>,
    ) -> Result<String, Refusal> {
        // The metadata service knows no tokens.
        if call.operation == Operation::GetOwnRegion {
            return Ok(DigitalOceanCloud::ACCOUNT.to_owned());
        }
        let token = bearer_of(&call.headers);
        let account = self.tokens.admit(token, call.operation.is_mutating());
        let account = account.map_err(|denied| match denied {
            cloudkeel_emulation::Denied::Unknown => Refusal::status(401),
            _ => Refusal::status(403),
        });
        let account = account?.to_owned();
        if let Some(limit) = self.settings.rate_limit {
            let budget = self.buckets.charge(token, limit, now);
            let reset = self.clock.time_at(now + budget.reset).as_second();
            *headers = budget.headers(reset.to_string());
            if budget.retry_after.is_some() {
                return Err(Refusal::status(429));
            }
        }
        if let Some(most) = self.settings.burst_limit {
            let minute = Duration::from_mins(1);
            let charged = self.bursts.charge(token.to_owned(), most, minute, now);
            if let Err(wait) = charged {
                let seconds = wait.as_secs_f64().ceil();
                headers.push((http::header::RETRY_AFTER, format!("{seconds}")));
                return Err(Refusal::status(429));
            }
        }
        Ok(account)
    }

    fn carry_out(
        &mut self,
        call: &Call<Operation>,
        account: &str,
        fault: Option<&Fault>,
        now: Instant,
    ) -> Result<Answer, Refusal> {
        let consistency = self.settings.consistency;
        let other = fault.and_then(ScriptedFault::other_project);
        let mut context = self.context(other.as_deref().unwrap_or(account), now)?;
        context.view = consistency.view(call.operation.is_list(), fault, now);
        perform(&mut context, call)
    }
}
