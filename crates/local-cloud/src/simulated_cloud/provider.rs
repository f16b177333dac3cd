//! The provider that speaks this cloud's API, ready to use.

use std::sync::Arc;

use cloudkeel_api::{CloudError, ProviderContext};
use cloudkeel_provider_local::{Config, LocalProvider, Wiring};

use super::{InProcess, SimulatedCloud};

impl SimulatedCloud {
    /// The provider, reaching this cloud without sockets: with one thread and a paused clock,
    /// everything it does is repeatable.
    pub async fn provider(&self, context: &ProviderContext) -> Result<LocalProvider, CloudError> {
        self.provider_for(Self::TOKEN, context).await
    }

    /// The same with another token, for another project.
    pub async fn provider_for(
        &self,
        token: &str,
        context: &ProviderContext,
    ) -> Result<LocalProvider, CloudError> {
        let config = Config::new(InProcess::URL, token);
        LocalProvider::connect(&config, context, self.wiring()).await
    }

    /// What leads a provider straight into this cloud.
    pub fn wiring(&self) -> Wiring {
        Wiring {
            transport: Some(Arc::new(self.transport())),
            seed: Some(self.settings().seed),
            ..Wiring::default()
        }
    }
}
