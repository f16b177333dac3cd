//! What is OpenStack's own at the gateway of every emulated cloud.

use cloudkeel_emulation::{
    Admission, Answer, Call, Emulated, ListShape, RequestError, ScriptedFault,
};
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::json;

use crate::OpenStackCloud;
use crate::fault::Fault;
use crate::operation::Operation;
use crate::refusal::Refusal;
use crate::rest::{Context, keystone, perform};
use crate::settings::Settings;

const TOKEN: &str = "x-auth-token";

impl Emulated for OpenStackCloud {
    type Operation = Operation;
    type Fault = Fault;
    /// The project that a caller sees.
    type Caller = String;

    /// Lists have links to the next page, and no totals.
    const LIST_SHAPE: ListShape = ListShape::Json {
        is_list: "",
        next: &["/servers_links", "/ports_links", "/loadbalancers_links"],
        totals: &[],
        last_page: &[],
    };

    cloudkeel_emulation::gateway_methods!();

    fn caller_name(headers: &HeaderMap) -> String {
        let token = headers.get(TOKEN).and_then(|token| token.to_str().ok());
        token.unwrap_or_default().to_owned()
    }

    fn request_id(number: u64) -> (HeaderName, String) {
        let header = HeaderName::from_static("x-openstack-request-id");
        (header, format!("req-{number:08}"))
    }

    fn admit(&self, call: &Call<Operation>) -> Admission<String> {
        let caller = self.with(|state, now| {
            if matches!(call.operation, Operation::Login | Operation::ListVersions) {
                return Ok(String::new());
            }
            let session = state.sessions.get(&Self::caller_name(&call.headers));
            let session = session.filter(|(_, end)| now < *end);
            let refusal = || {
                Refusal::new(
                    401,
                    "",
                    "The request you have made requires authentication.",
                )
            };
            session
                .map(|(project, _)| project.clone())
                .ok_or_else(refusal)
        });
        Admission {
            headers: Vec::new(),
            caller: caller.map_err(|refusal| refusal.answer(call.operation)),
        }
    }

    async fn perform(
        &self,
        call: &Call<Operation>,
        caller: &String,
        fault: Option<&Fault>,
    ) -> Answer {
        let operation = call.operation;
        let result = self.with(|state, now| {
            if let Some(Fault::Refused { status, message }) = fault {
                return Err(Refusal::new(*status, "", message.clone()));
            }
            let other = fault.and_then(ScriptedFault::other_project);
            if operation == Operation::Login {
                return keystone::login(state, call, other.as_deref(), now);
            }
            let view = state
                .settings
                .consistency
                .view(operation.is_list(), fault, now);
            let project = other.unwrap_or_else(|| caller.clone());
            let mut context = Context::new(state, &project, now, view)?;
            context.ends_in_error = fault == Some(&Fault::EndsInError);
            perform(&mut context, call)
        });
        result.unwrap_or_else(|refusal| refusal.answer(operation))
    }

    fn error_answer(&self, error: RequestError) -> Answer {
        match error {
            RequestError::Rejected(answer) => answer,
            RequestError::PathNotFound(..)
            | RequestError::MethodNotAllowed(..)
            | RequestError::UnknownCommand(_) => Answer::html(StatusCode::NOT_FOUND),
            RequestError::InvalidBody(why) => Answer::json(
                StatusCode::BAD_REQUEST,
                &json!({"badRequest": {"code": 400, "message": why}}),
            ),
        }
    }
}

cloudkeel_emulation::control_methods!(pub OpenStackCloud: Settings, Operation, Fault);
