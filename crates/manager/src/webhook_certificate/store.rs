//! Reads and writes the Secret of the webhook certificate, and what the API server trusts.

use cloudkeel_controllers::runtime::ErrorText;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::options::WebhookService;

pub(super) struct Store {
    secrets: Api<Secret>,
    configurations: Api<MutatingWebhookConfiguration>,
    name: String,
}

impl Store {
    pub(super) fn new(client: Client, service: &WebhookService) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), &service.namespace),
            configurations: Api::all(client),
            name: service.name.clone(),
        }
    }

    /// The Secret. It is never created: a role that may create one Secret may create any.
    pub(super) async fn read(&self) -> Result<Secret, String> {
        self.secrets
            .get(&self.name)
            .await
            .map_err(|error| failed("read the Secret", &error))
    }

    /// Writes the Secret, unless another replica has changed it meanwhile.
    pub(super) async fn replace(&self, secret: &Secret) -> Result<(), String> {
        self.secrets
            .replace(&self.name, &PostParams::default(), secret)
            .await
            .map(drop)
            .map_err(|error| failed("write the Secret", &error))
    }

    /// Makes the API server trust these certificates, if it does not do so already.
    pub(super) async fn trust(&self, bundle: &[u8]) -> Result<(), String> {
        let what = "the MutatingWebhookConfiguration";
        let found = self.configurations.get(&self.name).await;
        let mut found = found.map_err(|error| failed(&format!("read {what}"), &error))?;
        let trusted = Some(ByteString(bundle.to_vec()));
        let webhooks = found.webhooks.as_deref_mut().unwrap_or_default();
        if webhooks
            .iter()
            .all(|it| it.client_config.ca_bundle == trusted)
        {
            return Ok(());
        }
        for webhook in webhooks {
            webhook.client_config.ca_bundle.clone_from(&trusted);
        }
        let patch = json!({
            "metadata": {"resourceVersion": found.metadata.resource_version},
            "webhooks": found.webhooks,
        });
        self.configurations
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(drop)
            .map_err(|error| failed(&format!("patch {what}"), &error))
    }
}

fn failed(what: &str, error: &kube::Error) -> String {
    format!("failed to {what}: {}", ErrorText(error))
}
