//! A namespace for one test.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};

use super::unique_name;

/// A namespace that belongs to one test.
///
/// It goes away with the control plane: no controller runs there that could empty a deleted namespace, so
/// a test that wants to see one deleted calls [`TestNamespace::delete`] and finds it terminating.
pub struct TestNamespace {
    name: String,
    client: Client,
}

impl TestNamespace {
    /// Creates a namespace whose name starts with `prefix`.
    pub async fn create(client: &Client, prefix: &str) -> Result<Self, kube::Error> {
        let name = unique_name(prefix);
        create(client, &name).await?;
        Ok(Self {
            name,
            client: client.clone(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks for its deletion; creations in it are refused from then on.
    pub async fn delete(&self) -> Result<(), kube::Error> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces
            .delete(&self.name, &DeleteParams::default())
            .await?;
        Ok(())
    }
}

/// Creates the namespace unless it exists.
pub(super) async fn ensure(client: &Client, name: &str) -> Result<(), kube::Error> {
    match create(client, name).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        outcome => outcome,
    }
}

async fn create(client: &Client, name: &str) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    namespaces
        .create(&PostParams::default(), &namespace)
        .await?;
    Ok(())
}
