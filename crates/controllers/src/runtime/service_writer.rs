//! The only code that changes Services.

use cloudkeel_api::ServiceRef;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;

use super::WriteError;
use crate::view::{ServiceView, View as _};

/// Writes Services. Everything goes through the status, metadata included: that is all that the roles
/// of the Go CCMs allow, and all that it takes.
#[derive(Clone)]
pub struct ServiceWriter {
    client: Client,
}

impl ServiceWriter {
    /// A writer with this client.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// Applies a strategic merge patch. It should name the UID, so that a Service recreated under the
    /// same name never gets what was meant for its predecessor. Returns the Service as it is
    /// afterwards.
    pub async fn patch(
        &self,
        service: &ServiceRef,
        patch: &Value,
    ) -> Result<ServiceView, WriteError> {
        let written = self
            .services(service)
            .patch_status(
                &service.name,
                &PatchParams::default(),
                &Patch::Strategic(patch),
            )
            .await?;
        Ok(ServiceView::of(&written))
    }

    /// The UID of the Service that has this name now. A list of one, because the roles of the Go CCMs
    /// allow lists only.
    pub async fn uid_of(&self, service: &ServiceRef) -> Result<Option<String>, WriteError> {
        let name = format!("metadata.name={}", service.name);
        let found = self
            .services(service)
            .list_metadata(&ListParams::default().fields(&name))
            .await?;
        let found = found.items.into_iter().next();
        Ok(found.and_then(|object| object.metadata.uid))
    }

    fn services(&self, service: &ServiceRef) -> Api<Service> {
        Api::namespaced(self.client.clone(), &service.namespace)
    }
}
