//! A client that cannot write: reads pass, and what would be written is recorded and answered as if it had been.

use std::sync::Arc;

use bytes::Bytes;
use cloudkeel_api::{ServiceRef, StepAction};
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use super::fence::is_write;
use crate::dry_run::{DryRunStep, INSTANCE_GONE, ObjectWrite, Recorder, changes};

/// Questions in the form of objects: the API server answers them and keeps nothing.
const REVIEWS: [&str; 4] = [
    "tokenreviews",
    "subjectaccessreviews",
    "selfsubjectaccessreviews",
    "selfsubjectreviews",
];

/// A client whose writes are recorded under this controller.
pub(super) fn recording_client(
    client: Client,
    recorder: Arc<Recorder>,
    controller: &str,
) -> Client {
    let namespace = client.default_namespace().to_owned();
    let writes = Writes {
        client,
        recorder,
        controller: controller.to_owned(),
    };
    let writes = Arc::new(writes);
    let service = service_fn(move |request: Request<Body>| {
        let writes = Arc::clone(&writes);
        async move { writes.answer(request).await }
    });
    Client::new(service, namespace)
}

/// Forgets writes that need not be made any more, because another manager has made them or their object is gone.
pub(crate) async fn forget_finished(client: &Client, recorder: &Recorder) {
    for write in recorder.writes() {
        let Some(object) = ObjectPath::parse(&write.path) else {
            continue;
        };
        let is_due = match object.read(client).await {
            Ok(Some(present)) => is_due(&write, &present),
            Ok(None) => false,
            // What cannot be read may still be due.
            Err(_) => true,
        };
        if !is_due {
            recorder.forget_write(&write);
        }
    }
    for service in recorder.planned_services() {
        let ServiceRef {
            namespace,
            name,
            uid,
        } = &service;
        let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
        let Some(object) = ObjectPath::parse(&path) else {
            continue;
        };
        let present = object.read(client).await;
        let is_gone = |present: Option<Value>| present.is_none_or(|it| text(&it, "uid") != *uid);
        if present.is_ok_and(is_gone) {
            recorder.forget_service(&service);
        }
    }
}

fn is_due(write: &ObjectWrite, present: &Value) -> bool {
    let is_due = if let Some(patch) = &write.patch {
        !changes(present, patch).is_empty()
    } else {
        let version = write.resource_version.as_deref();
        version.is_none_or(|version| version == text(present, "resourceVersion"))
    };
    is_due && text(present, "uid") == write.uid
}

/// Answers writes.
struct Writes {
    client: Client,
    recorder: Arc<Recorder>,
    controller: String,
}

impl Writes {
    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let path = request.uri().path().to_owned();
        let object = ObjectPath::parse(&path);
        let is_review = object
            .as_ref()
            .is_some_and(|it| REVIEWS.contains(&it.resource.as_str()));
        if !is_write(request.method()) || is_review {
            return Ok(self.client.send(request).await?);
        }
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let Some(object) = object else {
            return refuse(StatusCode::FORBIDDEN, "a dry run writes nothing");
        };
        if object.resource == "events" {
            return object_answer(StatusCode::CREATED, &json!({"metadata": {}}));
        }
        let form = head.headers.get(CONTENT_TYPE);
        let is_json =
            form.is_none_or(|form| form.as_bytes().windows(4).any(|part| part == b"json"));
        if !is_json {
            return refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "a dry run reads JSON only",
            );
        }
        let sent: Value = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body)?
        };
        if object.name.is_none() {
            let step = format!("create {} {}", object.kind(), text(&sent, "name"));
            self.note(&object, &sent, None, StepAction::Create, step);
            return object_answer(StatusCode::CREATED, &sent);
        }
        let present = match object.read(&self.client).await {
            Ok(Some(present)) => present,
            Ok(None) => return refuse(StatusCode::NOT_FOUND, "the object is gone"),
            Err(kube::Error::Api(status)) => return status_answer(&status),
            Err(error) => return Err(error.into()),
        };
        let is_deletion = head.method == Method::DELETE;
        let expected = sent.get(if is_deletion {
            "preconditions"
        } else {
            "metadata"
        });
        if let Some(refusal) = mismatch(expected, &present) {
            return refuse(refusal, "the object has changed");
        }
        self.note_write(&object, &present, &sent, is_deletion);
        object_answer(StatusCode::OK, &with_pod_cidrs(present, &sent))
    }

    fn note_write(&self, object: &ObjectPath, present: &Value, sent: &Value, is_deletion: bool) {
        if is_deletion {
            let why = match object.resource.as_str() {
                "nodes" => INSTANCE_GONE,
                _ => "",
            };
            let step = format!("delete {} {}{why}", object.kind(), text(present, "name"));
            self.note(object, present, None, StepAction::Delete, step);
            return;
        }
        let changes = changes(present, sent);
        if !changes.is_empty() {
            let step = changes.join(", ");
            self.note(object, present, Some(sent), StepAction::Change, step);
        }
    }

    fn note(
        &self,
        object: &ObjectPath,
        present: &Value,
        patch: Option<&Value>,
        action: StepAction,
        step: String,
    ) {
        let name = text(present, "name");
        let full_name = match &object.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        let version = text(present, "resourceVersion");
        self.recorder.note_write(ObjectWrite {
            path: object.path.clone(),
            uid: text(present, "uid").to_owned(),
            resource_version: (action == StepAction::Delete).then(|| version.to_owned()),
            patch: patch.cloned(),
            step: DryRunStep {
                controller: self.controller.clone(),
                action,
                object: format!("{} {full_name}", object.kind()),
                cloud: None,
                text: step,
            },
        });
    }
}

/// The path of an object or a collection in the API.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ObjectPath {
    /// Without the subresource.
    path: String,
    collection: String,
    namespace: Option<String>,
    resource: String,
    name: Option<String>,
}

impl ObjectPath {
    fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => (format!("/api/{version}"), rest),
            ["apis", group, version, rest @ ..] => (format!("/apis/{group}/{version}"), rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (resource, name) = match rest {
            [resource] => (*resource, None),
            [resource, name, ..] => (*resource, Some(*name)),
            [] => return None,
        };
        let collection = match namespace {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{resource}"),
            None => format!("{group}/{resource}"),
        };
        Some(Self {
            path: name.map_or_else(|| collection.clone(), |name| format!("{collection}/{name}")),
            collection,
            namespace: namespace.map(str::to_owned),
            resource: resource.to_owned(),
            name: name.map(str::to_owned),
        })
    }

    /// The kind as people write it.
    fn kind(&self) -> &str {
        match self.resource.as_str() {
            "nodes" => "Node",
            "services" => "Service",
            "leases" => "Lease",
            other => other,
        }
    }

    /// The object as it is; `None` if it is gone. A Service is read by a list of one, because the roles of the Go CCMs
    /// allow lists only.
    async fn read(&self, client: &Client) -> kube::Result<Option<Value>> {
        let get = |uri: String| {
            Request::get(uri)
                .body(Vec::new())
                .map_err(kube::Error::HttpError)
        };
        let name = self.name.as_deref().unwrap_or_default();
        if self.resource == "services" {
            let uri = format!("{}?fieldSelector=metadata.name%3D{name}", self.collection);
            let mut list: Value = client.request(get(uri)?).await?;
            let items = list.get_mut("items").and_then(Value::as_array_mut);
            return Ok(items.and_then(Vec::pop));
        }
        match client.request(get(self.path.clone())?).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// How the API server refuses a write that is meant for another object, or for another version of it.
fn mismatch(expected: Option<&Value>, present: &Value) -> Option<StatusCode> {
    let differs = |field: &str| {
        let expected = expected?.get(field)?.as_str()?;
        Some(expected != text(present, field))
    };
    if differs("uid") == Some(true) {
        Some(StatusCode::NOT_FOUND)
    } else if differs("resourceVersion") == Some(true) {
        Some(StatusCode::CONFLICT)
    } else {
        None
    }
}

/// The controller that allocates Pod networks has to be answered with them, or it would give the same to another Node.
fn with_pod_cidrs(mut present: Value, sent: &Value) -> Value {
    let (spec, wanted) = (present.get_mut("spec"), sent.get("spec"));
    if let (Some(Value::Object(spec)), Some(wanted)) = (spec, wanted) {
        for field in ["podCIDR", "podCIDRs"] {
            if let Some(value) = wanted.get(field) {
                spec.insert(field.to_owned(), value.clone());
            }
        }
    }
    present
}

/// A field of the metadata.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    let metadata = object.get("metadata");
    let value = metadata.and_then(|metadata| metadata.get(field));
    value.and_then(Value::as_str).unwrap_or_default()
}

fn object_answer(status: StatusCode, object: &Value) -> Result<Response<Body>, BoxError> {
    let body = Bytes::from(serde_json::to_vec(object)?);
    let answer = Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json");
    Ok(answer.body(Body::from(body))?)
}

fn refuse(status: StatusCode, message: &str) -> Result<Response<Body>, BoxError> {
    let refusal = Status::failure(message, status.canonical_reason().unwrap_or_default());
    status_answer(&refusal.with_code(status.as_u16()))
}

fn status_answer(status: &Status) -> Result<Response<Body>, BoxError> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    object_answer(code, &serde_json::to_value(status)?)
}

#[cfg(test)]
mod tests;
