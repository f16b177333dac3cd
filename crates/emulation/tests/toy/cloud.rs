//! A cloud with disks that have names, and nothing else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_emulation::history::Table;
use cloudkeel_emulation::rate_limit::Buckets;
use cloudkeel_emulation::{
    Admitted, Answer, Arrival, Behaviour, Complaint, Consistency, Door, Emulated, Latency,
    ListFault, Permission, RateLimit, ScriptedFault, Tokens, api_router, bearer_of, control_router,
};
use cloudkeel_http::{Transport as _, TransportError};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

cloudkeel_emulation::operations! {
    /// One kind of call.
    pub enum Operation {
        /// All disks.
        ListDisks = GET "/disks",
        /// One disk.
        GetDisk = GET "/disks/{id}",
        /// Makes a disk.
        CreateDisk = POST "/disks",
    }
}

cloudkeel_emulation::faults! {
    /// Something that goes wrong with a call.
    pub enum Fault {
        /// The cloud refuses.
        Refused {
            /// The HTTP status.
            status: u16,
        },
    }
}

impl Fault {
    pub(crate) const fn status(status: u16) -> Self {
        Self::Refused { status }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    pub(crate) latency: Latency,
    pub(crate) consistency: Consistency,
    pub(crate) rate_limit: Option<RateLimit>,
}

struct World {
    door: Door<Operation, Fault>,
    settings: Settings,
    tokens: Tokens,
    buckets: Buckets,
    disks: Table<String>,
    made: u64,
}

/// Clones are the same cloud.
#[derive(Clone)]
pub(crate) struct Toy(Arc<Mutex<World>>);

cloudkeel_emulation::handles!(pub(crate) Toy: Settings, Operation, Fault);

impl Toy {
    pub(crate) const TOKEN: &str = "token";

    pub(crate) fn new(settings: Settings) -> Self {
        let mut tokens = Tokens::default();
        tokens.set(Self::TOKEN, "mine", Permission::ReadWrite);
        tokens.set("reader", "mine", Permission::ReadOnly);
        Self(Arc::new(Mutex::new(World {
            door: Door::new(1, Instant::now()),
            settings,
            tokens,
            buckets: Buckets::default(),
            disks: Table::remembering(Duration::from_hours(1)),
            made: 0,
        })))
    }

    fn with<R>(&self, act: impl FnOnce(&mut World, Instant) -> R) -> R {
        act(&mut self.0.lock().unwrap(), Instant::now())
    }

    /// Disks belong to nobody here.
    #[expect(clippy::unused_self, reason = "every cloud is asked for this")]
    fn add_project(&self, _name: &str) {}

    /// Sends a request as somebody.
    pub(crate) async fn send(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: &str,
    ) -> Result<Response<Bytes>, TransportError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap();
        let router = api_router(self).merge(control_router(self, &[]));
        cloudkeel_emulation::InProcess::new(router)
            .send(request)
            .await
    }

    /// Looks at something with the good token.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.send(Self::TOKEN, Method::GET, path, "").await.unwrap();
        (answer.status().as_u16(), json_of(&answer))
    }

    pub(crate) async fn create(&self, name: &str) -> u16 {
        let body = json!(name).to_string();
        let sent = self.send(Self::TOKEN, Method::POST, "/disks", &body);
        sent.await.unwrap().status().as_u16()
    }
}

pub(crate) fn json_of(answer: &Response<Bytes>) -> Value {
    serde_json::from_slice(answer.body()).unwrap_or(Value::Null)
}

fn refused(status: StatusCode, why: &str) -> Answer {
    Answer::json(status, &json!({"error": why}))
}

impl Emulated for Toy {
    type Operation = Operation;
    type Fault = Fault;
    type Caller = String;

    fn with_door<R>(&self, act: impl FnOnce(&mut Door<Operation, Fault>) -> R) -> R {
        self.with(|world, _| act(&mut world.door))
    }

    fn behaviour(&self) -> Behaviour {
        self.with(|world, _| Behaviour {
            latency: world.settings.latency,
            log_capacity: 3,
        })
    }

    fn name_of_caller(headers: &HeaderMap) -> String {
        bearer_of(headers).to_owned()
    }

    fn request_id(number: u64) -> (HeaderName, String) {
        (HeaderName::from_static("x-id"), format!("call-{number}"))
    }

    fn admit(&self, call: &Arrival<Operation>) -> Admitted<String> {
        let token = bearer_of(&call.headers);
        self.with(|world, now| {
            let limit = world.settings.rate_limit;
            let budget = limit.map(|limit| world.buckets.charge(token, limit, now));
            let wait = budget.and_then(|budget| budget.retry_after);
            let project = world.tokens.admit(token, call.operation.is_mutating());
            Admitted {
                headers: budget.map_or_else(Vec::new, |budget| {
                    budget.headers(budget.reset.as_secs().to_string())
                }),
                entry: match (project, wait) {
                    (Ok(_), Some(_)) => Err(refused(StatusCode::TOO_MANY_REQUESTS, "too many")),
                    (Ok(project), None) => Ok(project.to_owned()),
                    (Err(_), _) => Err(refused(StatusCode::FORBIDDEN, "not you")),
                },
            }
        })
    }

    async fn perform(
        &self,
        call: &Arrival<Operation>,
        caller: &String,
        fault: Option<&Fault>,
    ) -> Answer {
        if let Some(Fault::Refused { status }) = fault {
            return refused(StatusCode::from_u16(*status).unwrap(), "by script");
        }
        if let Some(project) = fault.and_then(ScriptedFault::other_project) {
            return Answer::json(StatusCode::OK, &json!({"disks": [], "of": project}));
        }
        self.with(|world, now| {
            let is_list = call.operation.is_list();
            let view = world.settings.consistency.view(is_list, fault, now);
            match call.operation {
                Operation::ListDisks => {
                    let disks: Vec<_> = world
                        .disks
                        .all_seen(view)
                        .map(|(_, disk)| &**disk)
                        .collect();
                    let list = json!({"disks": disks, "total": disks.len(), "of": caller});
                    Answer::json(StatusCode::OK, &list)
                }
                Operation::GetDisk => {
                    let id = call.resource.as_deref().and_then(|id| id.parse().ok());
                    match id.and_then(|id| world.disks.seen(id, view)) {
                        Some(disk) => Answer::json(StatusCode::OK, &**disk),
                        None => refused(StatusCode::NOT_FOUND, "no such disk"),
                    }
                }
                Operation::CreateDisk => {
                    world.made += 1;
                    let name = String::from_utf8_lossy(&call.body).into_owned();
                    world.disks.put(world.made, name, now);
                    Answer::empty(StatusCode::CREATED)
                }
            }
        })
    }

    fn spoil_list(&self, answer: &mut Value, how: ListFault) {
        if how == ListFault::TruncatedPage
            && let Some(disks) = answer["disks"].as_array_mut()
        {
            disks.pop();
        }
    }

    fn complain(&self, complaint: Complaint) -> Answer {
        match complaint {
            Complaint::Refused(answer) => answer,
            Complaint::Unreadable(why) => refused(StatusCode::BAD_REQUEST, &why),
            Complaint::NoSuchPath(..) => refused(StatusCode::NOT_FOUND, "no such path"),
            Complaint::NoSuchMethod(..) => {
                refused(StatusCode::METHOD_NOT_ALLOWED, "no such method")
            }
        }
    }
}
