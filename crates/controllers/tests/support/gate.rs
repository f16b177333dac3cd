//! What stands between the controllers and the API: it counts, refuses, and lets others go first.

use std::sync::Mutex;

use async_trait::async_trait;
use cloudkeel_embedded::{After, Before, Call, Interposer, Refusal, Verb};
use serde_json::Value;
use tokio::time::{Duration, Instant};

use super::world::World;

/// A write that arrived.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    /// Since the cluster was made.
    pub(crate) at: Duration,
    pub(crate) what: What,
    /// The name of the Node or the Service.
    pub(crate) name: String,
    pub(crate) body: Value,
    /// The HTTP status of the answer.
    pub(crate) status: u16,
}

/// What controllers may ask of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Read,
    WriteStatus,
    /// A part of a Node's status that several write.
    WriteConditions,
    Write,
    Delete,
    /// The status of a Service, and its finalizer with it.
    WriteService,
    /// The lease of a kubelet.
    ReadLease,
}

impl What {
    /// What a request is about; `None` if it is not counted.
    fn of(call: &Call) -> Option<Self> {
        let part = call.subresource.as_deref();
        match (call.resource.as_str(), call.verb, part) {
            ("nodes", Verb::Get, None) => Some(Self::Read),
            ("nodes", Verb::Patch, Some("status")) => {
                Some(match call.body["status"]["conditions"] {
                    Value::Null => Self::WriteStatus,
                    _ => Self::WriteConditions,
                })
            }
            ("nodes", Verb::Patch, None) => Some(Self::Write),
            ("nodes", Verb::Delete, None) => Some(Self::Delete),
            ("services", Verb::Patch, Some("status")) => Some(Self::WriteService),
            ("leases", Verb::Get, None) => Some(Self::ReadLease),
            ("events", _, _) => None,
            (_, verb, _) => {
                assert!(!verb.writes(), "unexpected request {call:?}");
                None
            }
        }
    }
}

type Deed = Box<dyn FnOnce(&World) + Send>;

pub(super) struct Gate {
    started: Instant,
    world: World,
    deeds: Mutex<Vec<(What, Deed)>>,
    refusals: Mutex<Vec<(What, u16)>>,
    writes: Mutex<Vec<Write>>,
}

impl Gate {
    pub(super) fn new(world: World) -> Self {
        Self {
            started: Instant::now(),
            world,
            deeds: Mutex::default(),
            refusals: Mutex::default(),
            writes: Mutex::default(),
        }
    }

    pub(super) fn plan(&self, what: What, deed: Deed) {
        self.deeds.lock().unwrap().push((what, deed));
    }

    pub(super) fn refuse(&self, what: What, status: u16) {
        self.refusals.lock().unwrap().push((what, status));
    }

    pub(super) fn end_refusals(&self) {
        self.refusals.lock().unwrap().clear();
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap().clone()
    }

    pub(super) fn forget(&self) {
        self.writes.lock().unwrap().clear();
    }

    fn note(&self, call: &Call, what: What, status: u16) {
        if [What::Read, What::ReadLease].contains(&what) {
            return;
        }
        self.writes.lock().unwrap().push(Write {
            at: self.started.elapsed(),
            what,
            name: call.name.clone().unwrap(),
            body: call.body.clone(),
            status,
        });
    }
}

#[async_trait]
impl Interposer for Gate {
    async fn before(&self, call: &Call) -> Before {
        let Some(what) = What::of(call) else {
            return Before::Pass;
        };
        if let Some(deed) = next(&self.deeds, what) {
            deed(&self.world);
        }
        let Some(status) = next(&self.refusals, what) else {
            return Before::Pass;
        };
        self.note(call, what, status);
        Before::Refuse(refusal(status))
    }

    async fn after(&self, call: &Call, code: u16) -> After {
        if let Some(what) = What::of(call) {
            self.note(call, what, code);
        }
        After::Deliver
    }
}

/// Takes the next thing that is planned for such a request.
fn next<T>(planned: &Mutex<Vec<(What, T)>>, what: What) -> Option<T> {
    let mut planned = planned.lock().unwrap();
    let due = planned.iter().position(|(when, _)| *when == what)?;
    Some(planned.remove(due).1)
}

fn refusal(status: u16) -> Refusal {
    let why = "as the test has planned";
    match status {
        403 => Refusal::forbidden(why),
        404 => Refusal::no_such_path(),
        409 => Refusal::conflict(why),
        500 => Refusal::internal_error(why),
        503 => Refusal::unavailable(why),
        other => panic!("no refusal for {other}"),
    }
}
