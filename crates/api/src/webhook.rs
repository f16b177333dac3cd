//! Admission webhooks that a provider brings.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::CloudError;

/// The request of the API server. JSON, so that the contract has no Kubernetes types.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionRequest {
    /// The request's own ID.
    pub uid: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// Namespace of the object, if it has one.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Name of the object; empty if the API server has yet to generate one.
    #[serde(default)]
    pub name: String,
    /// The object after the change.
    #[serde(default)]
    pub object: Value,
    /// The object before the change.
    #[serde(default)]
    pub old_object: Value,
}

/// One operation of a JSON patch (RFC 6902).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Sets a value.
    Add {
        /// JSON pointer.
        path: String,
        /// The value.
        value: Value,
    },
    /// Replaces a value.
    Replace {
        /// JSON pointer.
        path: String,
        /// The value.
        value: Value,
    },
    /// Removes a value.
    Remove {
        /// JSON pointer.
        path: String,
    },
}

/// The response to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Allow it, changed by these operations, with warnings for the user.
    Allow {
        /// Changes; may be empty.
        patch: Vec<PatchOperation>,
        /// Warnings; may be empty.
        warnings: Vec<String>,
    },
    /// Deny it.
    Deny {
        /// Why, and what would be right.
        why: String,
    },
}

/// What is known of a webhook before its provider is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvidedWebhook {
    /// See [`Webhook::name`].
    pub name: &'static str,
    /// See [`Webhook::path`].
    pub path: &'static str,
}

/// A webhook. Served and enabled by the manager.
#[async_trait]
pub trait Webhook: Send + Sync {
    /// Its name, as in `--webhooks`.
    fn name(&self) -> &'static str;

    /// The path it is served at, starting with `/`.
    fn path(&self) -> &'static str;

    /// Decides. May be called twice for one request, so it must have no side effects. An error is a
    /// 500 to the API server, whose failure policy then applies.
    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError>;
}
