//! Who the contestants are to the API server: a service account with a token, as in a Pod. A token is looked
//! at once in a while; the certificate of a person would be verified anew with every request.

use std::path::{Path, PathBuf};

use anyhow::Result;
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "bench";

/// Makes the account, and writes its kubeconfig into this folder.
pub(crate) async fn kubeconfig(control_plane: &ControlPlane, folder: &Path) -> Result<PathBuf> {
    let client = control_plane.client();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let account = serde_json::from_value(json!({"metadata": {"name": NAME}}))?;
    accounts.create(&PostParams::default(), &account).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(client);
    let binding = serde_json::from_value(json!({
        "metadata": {"name": NAME},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }))?;
    bindings.create(&PostParams::default(), &binding).await?;
    let authority = folder.join("ca.crt");
    std::fs::write(&authority, control_plane.ca_pem())?;
    let token = control_plane.service_account_token(NAMESPACE, NAME).await?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{
            "name": "bench",
            "cluster": {"server": control_plane.url(), "certificate-authority": authority},
        }],
        "users": [{"name": "bench", "user": {"token": token}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    });
    let path = folder.join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string())?;
    Ok(path)
}
