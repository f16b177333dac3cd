//! What is Hetzner's own at the door of every emulated cloud.

use cloudkeel_emulation::{
    Admitted, Answer, Arrival, Behaviour, Complaint, Door, Emulated, ListFault, ScriptedFault,
    bearer_of,
};
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::{Value, json};

use super::HetznerCloud;
use super::fault::Fault;
use super::operation::Operation;
use super::refusal::Refusal;
use super::rest::{self, Call, page_of, perform};
use super::settings::Settings;
use super::tokens::{denial, login_of};
use super::world::{Moment, World};

impl Emulated for HetznerCloud {
    type Operation = Operation;
    type Fault = Fault;
    /// The project that a caller sees. Robot has none.
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
        match login_of(headers) {
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

    fn admit(&self, call: &Arrival<Operation>) -> Admitted<String> {
        self.with(|world, now| world.admit(call, now))
    }

    async fn perform(
        &self,
        call: &Arrival<Operation>,
        caller: &String,
        fault: Option<&Fault>,
    ) -> Answer {
        let result = match fault {
            Some(Fault::Bare { status }) => {
                let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY);
                return Answer::html(status);
            }
            Some(Fault::Refused { code, status }) => Err(by_script(call.operation, code, *status)),
            fault => self.with(|world, now| world.carry_out(call, caller, fault, now)),
        };
        match result {
            Ok(answer) => answer.into(),
            Err(refusal) => refused(call.operation, &refusal),
        }
    }

    /// A list is its meta data and one array; Robot's is the array alone.
    fn spoil_list(&self, answer: &mut Value, how: ListFault) {
        let mut pages = answer
            .pointer("/meta/pagination")
            .cloned()
            .unwrap_or_default();
        let things = match answer {
            Value::Array(things) => Some(things),
            Value::Object(fields) if !pages.is_null() => {
                fields.values_mut().find_map(Value::as_array_mut)
            }
            _ => None,
        };
        let Some(things) = things else { return };
        match how {
            ListFault::TruncatedPage => {
                things.pop();
            }
            ListFault::LostNextPage => set(&mut pages, "next_page", Value::Null),
            ListFault::EmptyList => {
                things.clear();
                set(&mut pages, "next_page", Value::Null);
                set(&mut pages, "last_page", json!(1));
                set(&mut pages, "total_entries", json!(0));
            }
        }
        if let Some(place) = answer.pointer_mut("/meta/pagination") {
            *place = pages;
        }
    }

    fn complain(&self, complaint: Complaint) -> Answer {
        let (code, message) = match complaint {
            Complaint::Refused(answer) => return answer,
            Complaint::Unreadable(why) => ("json_error", why),
            Complaint::NoSuchPath(method, path) => {
                ("not_found", format!("there is no {method} {path} here"))
            }
            Complaint::NoSuchMethod(method, path) => (
                "method_not_allowed",
                format!("there is no {method} {path} here"),
            ),
        };
        Refusal::new(code, message).into_answer()
    }
}

cloudkeel_emulation::handles!(pub HetznerCloud: Settings, Operation, Fault);

fn set(pages: &mut Value, key: &str, value: Value) {
    if let Some(pages) = pages.as_object_mut() {
        pages.insert(key.to_owned(), value);
    }
}

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
    let body = if operation.is_robot() {
        refusal.robot_body()
    } else {
        refusal.body()
    };
    Answer::json(refusal.status, &body)
}

impl Refusal {
    /// As the Cloud API sends it.
    pub(super) fn into_answer(self) -> Answer {
        Answer::json(self.status, &self.body())
    }
}

impl From<Refusal> for Complaint {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.into_answer())
    }
}

impl World {
    fn admit(&mut self, call: &Arrival<Operation>, now: Moment) -> Admitted<String> {
        let mut headers = Vec::new();
        let entry = if call.operation.is_robot() {
            let login = login_of(&call.headers);
            let limit = self.settings.robot_limit;
            let admitted = self
                .robot
                .admit(login.as_ref(), call.operation, limit, now.instant);
            admitted.map(|()| String::new())
        } else {
            self.admit_token(call, now, &mut headers)
        };
        Admitted {
            headers,
            entry: entry.map_err(|refusal| refused(call.operation, &refusal)),
        }
    }

    /// The tokens of a project share its budget.
    fn admit_token(
        &mut self,
        call: &Arrival<Operation>,
        now: Moment,
        headers: &mut Vec<(HeaderName, String)>,
    ) -> Result<String, Refusal> {
        let token = bearer_of(&call.headers);
        let project = self.tokens.admit(token, call.operation.is_mutating());
        let project = project.map_err(denial)?.to_owned();
        let Some(limit) = self.settings.rate_limit else {
            return Ok(project);
        };
        let budget = self.buckets.charge(&project, limit, now.instant);
        let reset = now.plus(budget.reset).time.as_second();
        *headers = budget.headers(reset.to_string());
        if budget.retry_after.is_none() {
            return Ok(project);
        }
        let message = format!("limit of {} requests reached", limit.burst);
        Err(Refusal::new("rate_limit_exceeded", message))
    }

    fn carry_out(
        &mut self,
        call: &Arrival<Operation>,
        project: &str,
        fault: Option<&Fault>,
        now: Moment,
    ) -> Result<rest::Answer, Refusal> {
        let resource = call.resource.as_deref();
        if call.operation.is_robot() {
            let form = String::from_utf8_lossy(&call.body);
            let number = resource.unwrap_or_default();
            let body = self.robot.perform(call.operation, number, &form)?;
            return Ok(rest::Answer::ok(body));
        }
        let consistency = self.settings.consistency;
        let other = fault.and_then(ScriptedFault::other_project);
        let project = other.unwrap_or(project);
        let scene = self.scene(project, now);
        let mut scene = scene.ok_or_else(|| Refusal::not_found("project", project))?;
        scene.view = consistency.view(call.operation.is_list(), fault, now.instant);
        if let Some(Fault::ActionFails { code }) = fault {
            scene.failure = Some(code.clone());
        }
        let call = Call {
            operation: call.operation,
            resource,
            query: &call.query,
            body: &call.body,
        };
        perform(&mut scene, &call)
    }
}
