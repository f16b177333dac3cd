//! From a request to an answer.

use std::io;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use super::EmbeddedApi;
use super::watch::Watch;
use crate::access::{Attributes, Identity};
use crate::discovery;
use crate::protobuf;
use crate::refusal::Refusal;
use crate::request::{Accepted, Encoding, Incoming, Place, Target, View};
use crate::store::Verb;

/// The body of an answer: at once, or as long as a watch lasts.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) enum Answer {
    Json {
        code: u16,
        body: Value,
        warnings: Vec<String>,
    },
    Text(u16, &'static str),
    Watch(Box<Watch>),
}

impl Answer {
    pub(crate) fn ok(body: Value) -> Self {
        Self::with(200, body)
    }

    pub(crate) fn with(code: u16, body: Value) -> Self {
        let warnings = Vec::new();
        Self::Json {
            code,
            body,
            warnings,
        }
    }

    pub(crate) fn warning(self, warnings: Vec<String>) -> Self {
        match self {
            Self::Json { code, body, .. } => Self::Json {
                code,
                body,
                warnings,
            },
            other => other,
        }
    }

    pub(crate) fn refusal(refusal: &Refusal) -> Self {
        Self::with(refusal.code, refusal.status())
    }

    /// The HTTP status.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Json { code, .. } | Self::Text(code, _) => *code,
            Self::Watch(_) => 200,
        }
    }
}

impl EmbeddedApi {
    /// Carries out a request.
    pub(crate) fn answer(&self, who: &Identity, request: &Incoming, place: &Place) -> Answer {
        self.try_answer(who, request, place)
            .unwrap_or_else(|refusal| Answer::refusal(&refusal))
    }

    /// The same with a refusal as itself.
    pub(crate) fn try_answer(
        &self,
        who: &Identity,
        request: &Incoming,
        place: &Place,
    ) -> Result<Answer, Refusal> {
        let outcome = match place {
            Place::Objects(target) => self.about_objects(who, request, target),
            Place::Review(group, plural) if request.method == Method::POST => {
                let body = request.json();
                body.and_then(|body| self.review(who, group, plural, body))
            }
            Place::Review(..) => Err(Refusal::method_not_allowed()),
            Place::Other(parts) => discovery::answer(parts),
        };
        let version = self.version();
        self.announce(version);
        outcome
    }

    fn about_objects(
        &self,
        who: &Identity,
        request: &Incoming,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let verb = request.verb(target)?;
        self.authorize(who, verb, target, named_by(request))?;
        match verb {
            Verb::Get => self.get(request, target),
            Verb::List => self.list(request, target),
            Verb::Watch => self.watch(request, target),
            Verb::Create if target.subresource.is_some() => self.create_token(request, target),
            Verb::Create => self.create(who, request, target),
            Verb::Update => self.replace(who, request, target),
            Verb::Patch => self.patch(who, request, target),
            Verb::Delete => self.delete(who, request, target),
            Verb::DeleteCollection => self.delete_many(who, request, target),
        }
    }

    /// A list or watch of one object by its name is a request for that one.
    fn authorize(
        &self,
        who: &Identity,
        verb: Verb,
        target: &Target,
        named: Option<&str>,
    ) -> Result<(), Refusal> {
        let mut attributes = Attributes::new(verb, target);
        if let Some(name) = named.filter(|_| attributes.name.is_empty()) {
            name.clone_into(&mut attributes.name);
        }
        if self.authorizer().allows(who, &attributes) {
            return Ok(());
        }
        let place = match target.namespace.as_deref() {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        let mut resource = target.kind.plural.to_owned();
        if let Some(part) = &target.subresource {
            resource = format!("{resource}/{part}");
        }
        let why = format!(
            "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\" {place}",
            who.name,
            verb.as_str(),
            target.kind.group,
        );
        let name = attributes.name.as_str();
        Err(Refusal::forbidden_on(target.kind, name, &why))
    }
}

/// The name that a field selector asks for.
fn named_by(request: &Incoming) -> Option<&str> {
    let selector = request.query.field_selector.as_deref()?;
    let mut terms = selector.split(',');
    let name = terms.find_map(|term| term.strip_prefix("metadata.name="))?;
    Some(name.strip_prefix('=').unwrap_or(name))
}

/// A body in the encoding that was asked for, if its kind is spoken like that.
fn encode(body: &Value, accepted: Accepted) -> Result<(&'static str, Vec<u8>), Refusal> {
    // As in the real server, a client that asks for a part of an object gets refusals in JSON.
    let is_refusal_of_part = body["kind"] == "Status" && accepted.view != View::Object;
    if accepted.encoding == Encoding::Json || is_refusal_of_part {
        return Ok(encode_json(body));
    }
    match protobuf::encode_object(body) {
        Some(bytes) => Ok((protobuf::MEDIA_TYPE, bytes)),
        None if accepted.or_json => Ok(encode_json(body)),
        None => Err(Refusal::not_acceptable()),
    }
}

fn encode_json(body: &Value) -> (&'static str, Vec<u8>) {
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    ("application/json", bytes)
}

/// An answer that is complete, on the wire.
pub(crate) fn respond(answer: Answer, accepted: Accepted) -> Response<AnswerBody> {
    let (code, kind, bytes, warnings) = match answer {
        Answer::Json {
            code,
            body,
            warnings,
        } => match encode(&body, accepted) {
            Ok((kind, bytes)) => (code, kind, bytes, warnings),
            Err(refusal) => {
                let (kind, bytes) = encode_json(&refusal.status());
                (refusal.code, kind, bytes, Vec::new())
            }
        },
        Answer::Text(code, text) => (code, "text/plain", text.as_bytes().to_vec(), Vec::new()),
        Answer::Watch(_) => (200, "application/json", Vec::new(), Vec::new()),
    };
    let body = Full::new(Bytes::from(bytes));
    let body = body.map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('"', "\\\""));
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.append(header::WARNING, value);
        }
    }
    response
}
