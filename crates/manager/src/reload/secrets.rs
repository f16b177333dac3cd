//! Reads Kubernetes Secrets for providers, and remembers which ones they requested.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, Secret, SecretStore};
use k8s_openapi::api::core::v1::Secret as KubeSecret;
use kube::{Api, Client};

/// The Secrets of the cluster, and which of them a provider has read.
pub(crate) struct ClusterSecrets {
    client: Client,
    asked_for: Mutex<BTreeSet<SecretName>>,
}

/// Namespace and name of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SecretName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ClusterSecrets {
    pub(crate) const fn new(client: Client) -> Self {
        Self {
            client,
            asked_for: Mutex::new(BTreeSet::new()),
        }
    }

    /// Every Secret that was requested so far.
    pub(crate) fn asked_for(&self) -> BTreeSet<SecretName> {
        let asked_for = self.asked_for.lock();
        asked_for.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn get(
        &self,
        secret: &SecretName,
    ) -> Result<BTreeMap<String, Secret>, CloudError> {
        let secrets: Api<KubeSecret> = Api::namespaced(self.client.clone(), &secret.namespace);
        let got = secrets.get(&secret.name).await.map_err(|error| {
            let kind = match &error {
                kube::Error::Api(status) if status.code == 404 => ErrorKind::NotFound,
                kube::Error::Api(status) if status.code == 403 => ErrorKind::Denied,
                _ => ErrorKind::Unavailable,
            };
            let source = format!("{}/{}", secret.namespace, secret.name);
            CloudError::new("read secret", kind, source).with_source(error)
        })?;
        let data = got.data.unwrap_or_default();
        Ok(data
            .into_iter()
            .map(|(key, value)| (key, Secret::new(String::from_utf8_lossy(&value.0))))
            .collect())
    }
}

#[async_trait]
impl SecretStore for ClusterSecrets {
    async fn read(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BTreeMap<String, Secret>, CloudError> {
        let secret = SecretName {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        // Also if it cannot be read: it may be created later.
        let asked_for = self.asked_for.lock();
        asked_for
            .unwrap_or_else(PoisonError::into_inner)
            .insert(secret.clone());
        self.get(&secret).await
    }
}
