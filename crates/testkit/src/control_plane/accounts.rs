//! Service accounts, as Pods have them.

use std::path::PathBuf;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use super::ControlPlane;
use super::clients::usable;

impl ControlPlane {
    /// Makes a service account that may do everything.
    pub async fn make_administrator(&self, namespace: &str, name: &str) -> Result<(), kube::Error> {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let account = ServiceAccount {
            metadata: metadata.clone(),
            ..ServiceAccount::default()
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        accounts.create(&PostParams::default(), &account).await?;
        let binding = ClusterRoleBinding {
            metadata,
            role_ref: RoleRef {
                api_group: "rbac.authorization.k8s.io".to_owned(),
                kind: "ClusterRole".to_owned(),
                name: "cluster-admin".to_owned(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name: name.to_owned(),
                namespace: Some(namespace.to_owned()),
                ..Subject::default()
            }]),
        };
        let bindings: Api<ClusterRoleBinding> = Api::all(self.client());
        bindings.create(&PostParams::default(), &binding).await?;
        Ok(())
    }

    /// A token of a service account that exists, as a Pod would be given one.
    pub async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<String, kube::Error> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        // No audiences stands for the API server's own.
        let request = TokenRequest::default();
        let answer: TokenRequest = accounts
            .create_subresource("token", name, &PostParams::default(), &request)
            .await?;
        Ok(answer.status.map(|status| status.token).unwrap_or_default())
    }

    /// A client of a service account that exists.
    pub async fn service_account_client(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Client, kube::Error> {
        let token = self.service_account_token(namespace, name).await?;
        Ok(self.client_with_token(&token))
    }

    /// A kubeconfig file with a token of a service account that exists. It is good for as long as the control
    /// plane runs.
    ///
    /// # Panics
    /// If it cannot be written, which fails the test.
    pub async fn service_account_kubeconfig(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf, kube::Error> {
        let token = self.service_account_token(namespace, name).await?;
        Ok(usable(self.clients.kubeconfig_with_token(&token)))
    }
}
