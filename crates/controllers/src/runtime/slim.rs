//! Answers of the API server of which only a little is read: a Node weighs twenty times what is used of
//! it, and the rest need not be sent, or at least not be kept.

use http::header::{ACCEPT, CONTENT_TYPE};
use kube::Client;
use serde::{Deserialize, Serialize};

use super::protobuf::{PROTOBUF, client_in_protobuf};

/// Asks for the metadata of an object alone, which in JSON the API server has more work to write. A server
/// that cannot do that sends the whole.
const METADATA_ONLY: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                             application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                             application/json";

/// The API server has far less work with it than with a merge patch, for which it writes the whole object
/// as text and reads it again.
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";

/// What is read of the answer to a write.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Answer {
    metadata: AnsweredMetadata,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnsweredMetadata {
    resource_version: String,
}

/// Writes objects and reads nothing of the answers but the version.
///
/// What is sent is made from types, so the API server need not look for unknown fields in it.
#[derive(Clone)]
pub(super) struct SlimClient(Client);

impl SlimClient {
    pub(super) fn new(client: Client) -> Self {
        Self(client_in_protobuf(client))
    }

    /// Patches the object at this path and returns its resource version afterwards.
    pub(super) async fn patch(&self, path: &str, patch: &impl Serialize) -> kube::Result<String> {
        let request = http::Request::patch(format!("{path}?fieldValidation=Ignore"))
            .header(CONTENT_TYPE, STRATEGIC_MERGE_PATCH);
        self.send(request, patch).await
    }

    /// Makes an object in the collection at this path.
    pub(super) async fn create(&self, path: &str, object: &impl Serialize) -> kube::Result<()> {
        let request = http::Request::post(format!("{path}?fieldValidation=Ignore"))
            .header(CONTENT_TYPE, "application/json");
        self.send(request, object).await.map(drop)
    }

    /// Replaces the object at this path by one in protobuf and returns its resource version afterwards.
    pub(super) async fn replace(&self, path: &str, object: Vec<u8>) -> kube::Result<String> {
        let request = http::Request::put(format!("{path}?fieldValidation=Ignore"))
            .header(CONTENT_TYPE, PROTOBUF);
        self.send_bytes(request, object).await
    }

    async fn send(
        &self,
        request: http::request::Builder,
        body: &impl Serialize,
    ) -> kube::Result<String> {
        let body = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
        self.send_bytes(request, body).await
    }

    async fn send_bytes(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> kube::Result<String> {
        let request = request.header(ACCEPT, METADATA_ONLY).body(body);
        let request = request.map_err(kube::Error::HttpError)?;
        let answer: Answer = self.0.request(request).await?;
        Ok(answer.metadata.resource_version)
    }
}
