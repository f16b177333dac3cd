//! How contestants authenticate to the API server: a service account with a token, as in a Pod. A token is looked
//! at once in a while; a user's certificate would be verified again with every request.

use std::path::PathBuf;

use anyhow::Result;
use cloudkeel_testkit::control_plane::ControlPlane;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "bench";

/// Makes the account, and a kubeconfig for it.
pub(crate) async fn kubeconfig(control_plane: &ControlPlane) -> Result<PathBuf> {
    control_plane.make_administrator(NAMESPACE, NAME).await?;
    let written = control_plane.service_account_kubeconfig(NAMESPACE, NAME);
    Ok(written.await?)
}
