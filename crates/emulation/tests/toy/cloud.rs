//! A cloud with disks that have names, snapshots of them, and zones.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_emulation::history::{Table, View};
use cloudkeel_emulation::ids::Ids;
use cloudkeel_emulation::jobs::{Jobs, NewJob, RunsJobs};
use cloudkeel_emulation::list::{Filter, LabelParam, ListApi, Listed, Paging};
use cloudkeel_emulation::rate_limit::Buckets;
use cloudkeel_emulation::{
    Admission, Answer, Call, Consistency, Emulated, Gateway, Latency, ListShape, Logins,
    Permission, RateLimit, RequestError, ScriptedFault, Tokens, api_router, basic_of, bearer_of,
    control_router, go_duration,
};
use cloudkeel_http::{Transport as _, TransportError};
use http::{HeaderName, Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

cloudkeel_emulation::operations! {
    /// One kind of call.
    pub enum Operation {
        /// A session.
        Login = POST "/login" as read,
        /// All disks.
        ListDisks = GET "/disks",
        /// One disk.
        GetDisk = GET "/disks/{id}",
        /// Makes a disk.
        CreateDisk = POST "/disks",
        /// The snapshots of a disk.
        ListSnapshots = GET "/disks/{disk}/snapshots",
        /// One snapshot of a disk.
        GetSnapshot = GET "/disks/{disk}/snapshots/{id}",
        /// Begins a snapshot of a disk, which is locked meanwhile.
        CreateSnapshot = POST "/disks/{disk}/snapshots",
        /// All zones.
        DescribeZones = POST "/query" ? Action = "DescribeZones",
        /// Gives a disk another name.
        RenameDisk = POST "/query" ? Action = "RenameDisk",
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    pub(crate) latency: Latency,
    pub(crate) log_capacity: usize,
    pub(crate) consistency: Consistency,
    pub(crate) rate_limit: Option<RateLimit>,
    #[serde(with = "go_duration")]
    pub(crate) snapshot_duration: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            latency: Latency::default(),
            log_capacity: 3,
            consistency: Consistency::default(),
            rate_limit: None,
            snapshot_duration: Duration::ZERO,
        }
    }
}

struct State {
    gateway: Gateway<Operation, Fault>,
    settings: Settings,
    tokens: Tokens,
    logins: Logins,
    buckets: Buckets,
    disks: Table<Disk>,
    /// By UUID.
    snapshots: Table<Snapshot, String>,
    jobs: Jobs<Self>,
    ids: Ids,
}

impl RunsJobs for State {
    type Key = u64;

    fn jobs(&mut self) -> &mut Jobs<Self> {
        &mut self.jobs
    }
}

#[derive(Debug, Clone)]
struct Disk {
    id: u64,
    name: String,
}

impl Listed for Disk {
    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "id" => Some(json!(self.id)),
            "name" => Some(json!(self.name)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
struct Snapshot {
    id: String,
    disk: u64,
}

impl Listed for Snapshot {
    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "id" => Some(json!(self.id)),
            "disk" => Some(json!(self.disk)),
            _ => None,
        }
    }
}

const DISKS: ListApi = ListApi {
    paging: Paging::Numbered {
        page: "page",
        per_page: "per_page",
        default: 100,
        max: 100,
        rejects_zero: true,
    },
    filters: &[Filter::exact("name")],
    labels: LabelParam::None,
    sort: Some(("sort", &["name"])),
    rejects_unknown: true,
};

const SNAPSHOTS: ListApi = ListApi {
    paging: Paging::Marker {
        marker: "marker",
        limit: "limit",
        max: 100,
    },
    filters: &[],
    labels: LabelParam::None,
    sort: None,
    rejects_unknown: false,
};

/// Clones are the same cloud.
#[derive(Clone)]
pub(crate) struct Toy(Arc<Mutex<State>>);

cloudkeel_emulation::control_methods!(pub(crate) Toy: Settings, Operation, Fault);

impl Toy {
    pub(crate) const TOKEN: &str = "token";

    pub(crate) fn new(settings: Settings) -> Self {
        let mut tokens = Tokens::default();
        tokens.set(Self::TOKEN, "mine", Permission::ReadWrite);
        tokens.set("reader", "mine", Permission::ReadOnly);
        let mut logins = Logins::default();
        logins.set("user", "secret");
        let keep = Duration::from_hours(1);
        Self(Arc::new(Mutex::new(State {
            gateway: Gateway::new(1, Instant::now()),
            settings,
            tokens,
            logins,
            buckets: Buckets::default(),
            disks: Table::remembering(keep),
            snapshots: Table::remembering(keep),
            jobs: Jobs::default(),
            ids: Ids::default(),
        })))
    }

    fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.0.lock().unwrap();
        let now = Instant::now();
        state.advance(now);
        act(&mut state, now)
    }

    /// Disks belong to no project here.
    #[expect(clippy::unused_self, reason = "every cloud has this")]
    fn add_project(&self, _name: &str) {}

    /// Sends a request with a token.
    pub(crate) async fn send(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: &str,
    ) -> Result<Response<Bytes>, TransportError> {
        let authorization = ("authorization", format!("Bearer {token}"));
        self.send_with(authorization, method, path, body).await
    }

    /// Sends a request with a header.
    pub(crate) async fn send_with(
        &self,
        header: (&str, String),
        method: Method,
        path: &str,
        body: &str,
    ) -> Result<Response<Bytes>, TransportError> {
        let is_form = body.contains('=');
        let form = "application/x-www-form-urlencoded";
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(
                "content-type",
                if is_form { form } else { "application/json" },
            )
            .header(header.0, header.1)
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap();
        let router = api_router(self).merge(control_router(self, &[]));
        cloudkeel_emulation::InProcess::new(router)
            .send(request)
            .await
    }

    /// Reads something with the good token.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.send(Self::TOKEN, Method::GET, path, "").await.unwrap();
        (answer.status().as_u16(), json_of(&answer))
    }

    /// Changes something with the good token.
    pub(crate) async fn post(&self, path: &str, body: &str) -> (u16, String) {
        let sent = self.send(Self::TOKEN, Method::POST, path, body).await;
        let (head, body) = sent.unwrap().into_parts();
        let body = String::from_utf8(body.to_vec()).unwrap();
        (head.status.as_u16(), body)
    }

    pub(crate) async fn create(&self, name: &str) -> u16 {
        self.post("/disks", &json!(name).to_string()).await.0
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

    const LIST_SHAPE: ListShape = ListShape::Json {
        is_list: "/total",
        next: &["/next"],
        totals: &["/total"],
        last_page: &[],
    };

    cloudkeel_emulation::gateway_methods!();

    fn request_id(number: u64) -> (HeaderName, String) {
        (HeaderName::from_static("x-id"), format!("call-{number}"))
    }

    fn admit(&self, call: &Call<Operation>) -> Admission<String> {
        let token = bearer_of(&call.headers);
        self.with(|state, now| {
            let limit = state.settings.rate_limit;
            let budget = limit.map(|limit| state.buckets.charge(token, limit, now));
            let wait = budget.and_then(|budget| budget.retry_after);
            let project = state.tokens.admit(token, call.operation.is_mutating());
            let session = state.logins.user_of(token, now);
            let is_login = call.operation == Operation::Login;
            let project = project.ok().or(session).or(is_login.then_some(""));
            Admission {
                headers: budget.map_or_else(Vec::new, |budget| {
                    budget.headers(budget.reset.as_secs().to_string())
                }),
                caller: match (project, wait) {
                    (Some(_), Some(_)) => Err(refused(StatusCode::TOO_MANY_REQUESTS, "too many")),
                    (Some(project), None) => Ok(project.to_owned()),
                    (None, _) => Err(refused(StatusCode::FORBIDDEN, "not you")),
                },
            }
        })
    }

    async fn perform(
        &self,
        call: &Call<Operation>,
        caller: &String,
        fault: Option<&Fault>,
    ) -> Answer {
        if let Some(Fault::Refused { status }) = fault {
            return refused(StatusCode::from_u16(*status).unwrap(), "by script");
        }
        if let Some(project) = fault.and_then(ScriptedFault::other_project) {
            return Answer::json(StatusCode::OK, &json!({"disks": [], "of": project}));
        }
        self.with(|state, now| {
            let is_list = call.operation.is_list();
            let view = state.settings.consistency.view(is_list, fault, now);
            state.perform(call, caller, view, now)
        })
    }

    fn error_answer(&self, error: RequestError) -> Answer {
        match error {
            RequestError::Rejected(answer) => answer,
            RequestError::InvalidBody(why) => refused(StatusCode::BAD_REQUEST, &why),
            RequestError::PathNotFound(..) => refused(StatusCode::NOT_FOUND, "no such path"),
            RequestError::UnknownCommand(name) => {
                let error = json!({"Code": "InvalidAction", "Message": name});
                Answer::xml(StatusCode::BAD_REQUEST, "Error", &error)
            }
            RequestError::MethodNotAllowed(..) => {
                refused(StatusCode::METHOD_NOT_ALLOWED, "no such method")
            }
        }
    }
}

impl State {
    fn perform(
        &mut self,
        call: &Call<Operation>,
        caller: &str,
        view: View,
        now: Instant,
    ) -> Answer {
        match call.operation {
            Operation::Login => match basic_of(&call.headers) {
                Some((user, password)) if self.logins.accepts(&user, &password) => {
                    let until = now + Duration::from_mins(10);
                    let token = self.logins.begin_session(&user, Some(until));
                    Answer::json(StatusCode::CREATED, &json!({"token": token}))
                }
                _ => refused(StatusCode::UNAUTHORIZED, "not you"),
            },
            Operation::ListDisks => match DISKS.read(call.params()) {
                Ok(query) => {
                    let page = query.select(self.disks.values(view));
                    let next = query.next_link("/disks", &page);
                    let total = page.total;
                    let disks = page.map(|disk| disk.name.clone()).items;
                    let body = json!({"disks": disks, "total": total, "next": next, "of": caller});
                    Answer::json(StatusCode::OK, &body)
                }
                Err(error) => refused(StatusCode::BAD_REQUEST, &error.to_string()),
            },
            Operation::GetDisk => {
                let id = call.resource.as_deref().and_then(|id| id.parse().ok());
                match id.and_then(|id: u64| self.disks.seen(&id, view)) {
                    Some(disk) => Answer::json(StatusCode::OK, &disk.name),
                    None => refused(StatusCode::NOT_FOUND, "no such disk"),
                }
            }
            Operation::CreateDisk => {
                let name = String::from_utf8_lossy(&call.body).into_owned();
                let id = self.ids.number();
                self.disks.put(id, Disk { id, name }, now);
                Answer::empty(StatusCode::CREATED)
            }
            Operation::DescribeZones => {
                let zones = json!({"zoneSet": {"item": [{"name": "a"}, {"name": "b"}]}});
                Answer::xml(StatusCode::OK, "DescribeZonesResponse", &zones)
            }
            Operation::RenameDisk => {
                let params = call.params();
                let id = params.number("Disk").ok().flatten().unwrap_or_default();
                let name = params.get("Name").unwrap_or_default().to_owned();
                let renamed = self.disks.edit(&id, now, |disk| disk.name = name);
                let body = json!({"return": renamed.is_some()});
                Answer::xml(StatusCode::OK, "RenameDiskResponse", &body)
            }
            _ => self.snapshots(call, view, now),
        }
    }

    fn snapshots(&mut self, call: &Call<Operation>, view: View, now: Instant) -> Answer {
        let disk: u64 = call.path_param("disk").parse().unwrap_or_default();
        match call.operation {
            Operation::ListSnapshots => {
                let query = SNAPSHOTS.read(call.params()).unwrap();
                let all = self.snapshots.values(view);
                let page = query.select(all.filter(|snapshot| snapshot.disk == disk));
                let next = page.next.as_ref().map(|(_, marker)| marker);
                let body = json!({"snapshots": page.items, "total": page.total, "next": next});
                Answer::json(StatusCode::OK, &body)
            }
            Operation::GetSnapshot => {
                let found = self.snapshots.seen(call.path_param("id"), view);
                match found.filter(|snapshot| snapshot.disk == disk) {
                    Some(snapshot) => Answer::json(StatusCode::OK, &**snapshot),
                    None => refused(StatusCode::NOT_FOUND, "no such snapshot"),
                }
            }
            _ if self.disks.get(&disk).is_none() => refused(StatusCode::NOT_FOUND, "no such disk"),
            _ if self.jobs.lock_on(&("disk", disk)).is_some() => {
                refused(StatusCode::LOCKED, "the disk is busy")
            }
            _ => {
                let job = NewJob {
                    id: self.ids.number(),
                    command: "snapshot",
                    resources: vec![("disk", disk)],
                    duration: self.settings.snapshot_duration,
                    failure: None,
                };
                let id = self.ids.uuid();
                self.begin(job, now, move |state, at| {
                    let snapshot = Snapshot {
                        id: id.clone(),
                        disk,
                    };
                    state.snapshots.put(id, snapshot, at);
                });
                Answer::empty(StatusCode::ACCEPTED)
            }
        }
    }
}
