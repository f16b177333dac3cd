//! What a cloud brings to be emulated.

use std::future::Future;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::params::Params;
use super::{
    Answer, ApiOperation, Faults, Gateway, GatewaySettings, ListShape, Permission, ScriptedFault,
    bearer_of,
};

/// A call, as it was received.
#[derive(Debug, Clone)]
pub struct Call<O> {
    /// What is asked for.
    pub operation: O,
    /// The resource in the path, if there is one: the last of its parameters.
    pub resource: Option<String>,
    /// Every parameter of the path, in order.
    pub path_params: Vec<(String, String)>,
    /// The query, as it was sent.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl<O> Call<O> {
    /// A parameter of the path; empty if there is none of this name.
    pub fn path_param(&self, name: &str) -> &str {
        let mut params = self.path_params.iter();
        let found = params.find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// The parameters of the query, and then those of the body if it is a form.
    pub fn params(&self) -> Params {
        params_of(&self.query, &self.headers, &self.body)
    }

    /// The body, as far as a log can show it: JSON, or the fields of a form.
    pub(super) fn body_shown(&self) -> Value {
        if is_form(&self.headers) {
            let text = String::from_utf8_lossy(&self.body);
            let fields = Params::parse(&text);
            let fields = fields
                .iter()
                .map(|(name, value)| (name, Value::from(value)));
            return fields.collect();
        }
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// The parameters of a query, and then those of the body if it is a form.
pub(super) fn params_of(query: &str, headers: &HeaderMap, body: &[u8]) -> Params {
    let params = Params::parse(query);
    if !is_form(headers) {
        return params;
    }
    params.and(Params::parse(&String::from_utf8_lossy(body)))
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"))
}

/// What was decided about a call before anything else.
#[derive(Debug)]
pub struct Admission<C> {
    /// What every answer to it carries, such as how many more calls there may be.
    pub headers: Vec<(HeaderName, String)>,
    /// Who calls, or the refusal.
    pub caller: Result<C, Answer>,
}

/// What is wrong with a request before it becomes a call.
#[derive(Debug)]
pub enum RequestError {
    /// There is nothing at this path.
    PathNotFound(Method, String),
    /// There is something at this path, but not with this method.
    MethodNotAllowed(Method, String),
    /// The path serves commands, and this is none of them.
    UnknownCommand(String),
    /// The body cannot be read.
    InvalidBody(String),
    /// The cloud refused, and says so itself.
    Rejected(Answer),
}

/// A cloud that is emulated: what is its own, beside the gateway that all of them have.
///
/// Clones are the same cloud.
pub trait Emulated: Clone + Send + Sync + 'static {
    /// The calls that it understands, written by [`operations!`](crate::operations).
    type Operation: ApiOperation;
    /// What can go wrong with them, written by [`faults!`](crate::faults).
    type Fault: ScriptedFault;
    /// A caller that was admitted.
    type Caller: Send + Sync;

    /// How its lists look, for the faults that make them wrong.
    const LIST_SHAPE: ListShape;

    /// Reads the state of its gateway, or changes it, under the cloud's lock.
    fn with_gateway<R>(
        &self,
        act: impl FnOnce(&mut Gateway<Self::Operation, Self::Fault>) -> R,
    ) -> R;

    /// The settings that its gateway goes by now.
    fn gateway_settings(&self) -> GatewaySettings;

    /// The name of the caller in log and script: its token, or its user.
    fn caller_name(headers: &HeaderMap) -> String {
        bearer_of(headers).to_owned()
    }

    /// The page of a list that a query asks for. Clouds whose pages have no numbers know one page.
    fn page_of(_query: &str) -> u64 {
        1
    }

    /// The header that names a call in its answer, and the name of the call of this number.
    fn request_id(number: u64) -> (HeaderName, String);

    /// Decides who calls, what they may do, and whether they call too often.
    fn admit(&self, call: &Call<Self::Operation>) -> Admission<Self::Caller>;

    /// Does what was asked for, or what the fault makes of that.
    fn perform(
        &self,
        call: &Call<Self::Operation>,
        caller: &Self::Caller,
        fault: Option<&Self::Fault>,
    ) -> impl Future<Output = Answer> + Send;

    /// The answer to a request that is no call of the API, in the API's form.
    fn error_answer(&self, error: RequestError) -> Answer;

    /// The script of faults.
    fn faults(&self) -> Faults<'_, Self> {
        Faults::of(self)
    }
}

/// A cloud that another process can control. Written by [`control_methods!`](crate::control_methods).
pub trait Controllable: Emulated {
    /// Its settings.
    type Settings: Serialize + DeserializeOwned;

    /// Its settings now.
    fn settings(&self) -> Self::Settings;

    /// Replaces its settings from now on.
    fn set_settings(&self, settings: Self::Settings);

    /// Adds a project, which no token sees yet.
    fn add_project(&self, name: &str);

    /// Admits a token to a project, and to no other.
    fn grant(&self, token: &str, project: &str, permission: Permission);

    /// Makes a token worthless.
    fn revoke(&self, token: &str);
}
