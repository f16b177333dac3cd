//! Where the cloud is, if the settings do not say.

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ProviderContext, Secret};

/// Finds the local cloud of this machine, or starts one.
///
/// A seam: the provider speaks to a cloud and does not know how one is run.
#[async_trait]
pub trait Launcher: Send + Sync {
    /// The cloud for this cluster. Called again, it finds the same one.
    async fn launch(&self, context: &ProviderContext) -> Result<Launched, CloudError>;
}

/// A cloud that was found or started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    /// The address of its REST API.
    pub endpoint: String,
    /// The credential.
    pub token: Secret,
}
