//! Changes objects without a client: what was asked is done when the call returns.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::access::Identity;
use crate::api::{Answer, EmbeddedApi};
use crate::refusal::Refusal;
use crate::request::{Accepted, Incoming, Place, Query};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

impl EmbeddedApi {
    /// An administrator who needs neither a client nor a runtime, under the same rules as every client. An
    /// [`Interposer`](crate::Interposer) has use for one: it can change something right before a request arrives.
    pub fn direct_client(&self, name: &str) -> DirectClient {
        DirectClient {
            api: self.clone(),
            who: Identity::admin(name),
        }
    }
}

/// See [`EmbeddedApi::direct_client`]. Paths are those of the API, such as `/api/v1/nodes/n`.
#[derive(Clone)]
pub struct DirectClient {
    api: EmbeddedApi,
    who: Identity,
}

impl DirectClient {
    /// What is there.
    pub fn get(&self, path: &str) -> Result<Value, Refusal> {
        self.ask(Method::GET, path, JSON, &Value::Null)
    }

    /// A new object under the path of its kind.
    pub fn create(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        self.ask(Method::POST, path, JSON, object)
    }

    /// A JSON merge patch.
    pub fn merge(&self, path: &str, patch: &Value) -> Result<Value, Refusal> {
        self.ask(Method::PATCH, path, MERGE, patch)
    }

    /// Removes an object, or all that are under the path of their kind.
    pub fn delete(&self, path: &str) -> Result<Value, Refusal> {
        self.ask(Method::DELETE, path, JSON, &Value::Null)
    }

    fn ask(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Value, Refusal> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let body = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let request = Incoming {
            method,
            path: path.to_owned(),
            query: Query::parse(query),
            content_type: content_type.to_owned(),
            accepted: Accepted::default(),
            body,
            sent_at: self.api.now(),
        };
        let place = Place::find(&request.path);
        match self.api.try_answer(&self.who, &request, &place)? {
            Answer::Json { body, .. } => Ok(body),
            Answer::Text(_, text) => Ok(Value::from(text)),
            Answer::Watch(_) => Err(Refusal::bad_request("a watch needs a client")),
        }
    }
}

impl std::fmt::Debug for DirectClient {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DirectClient")
            .field("who", &self.who)
            .finish_non_exhaustive()
    }
}
