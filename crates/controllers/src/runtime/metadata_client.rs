//! A client that requests only metadata in the answers to writes, because a whole Node is twenty times as large.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use kube::Client;
use serde::{Deserialize, Serialize};

use super::protobuf::PROTOBUF;

/// An API server that cannot send metadata alone sends the whole object.
const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// The API server has far less work with it than with a merge patch, for which it writes the whole object
/// as text and reads it again.
const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";

/// What is read of the answer to a write.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    metadata: AnsweredMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnsweredMetadata {
    resource_version: String,
}

/// Writes objects and reads nothing of the answers but the version.
///
/// What is sent is made from types, so the API server need not validate its fields.
#[derive(Clone)]
pub(super) struct MetadataClient(Client);

impl MetadataClient {
    pub(super) const fn new(client: Client) -> Self {
        Self(client)
    }

    /// Patches the object at this path and returns its resource version afterwards.
    pub(super) async fn patch(&self, path: &str, patch: &impl Serialize) -> kube::Result<String> {
        let patch = serde_json::to_vec(patch).map_err(kube::Error::SerdeError)?;
        let form = STRATEGIC_MERGE_PATCH;
        self.send(Method::PATCH, path, form, patch).await
    }

    /// Makes an object in the collection at this path.
    pub(super) async fn create(&self, path: &str, object: &impl Serialize) -> kube::Result<()> {
        let object = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let sending = self.send(Method::POST, path, "application/json", object);
        sending.await.map(drop)
    }

    /// Replaces the object at this path by one in protobuf and returns its resource version afterwards.
    pub(super) async fn replace(&self, path: &str, object: Vec<u8>) -> kube::Result<String> {
        self.send(Method::PUT, path, PROTOBUF, object).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        form: &str,
        body: Vec<u8>,
    ) -> kube::Result<String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?fieldValidation=Ignore"))
            .header(CONTENT_TYPE, form)
            .header(ACCEPT, METADATA_ONLY);
        let request = request.body(body).map_err(kube::Error::HttpError)?;
        let answer: Answer = self.0.request(request).await?;
        Ok(answer.metadata.resource_version)
    }
}
