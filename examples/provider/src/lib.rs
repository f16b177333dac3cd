//! A whole provider, small enough to read in one sitting. `docs/write-a-provider.md` tells its story.
#![allow(clippy::wildcard_imports, reason = "short beats exact in an example")]
mod instances;
mod load_balancer;
mod routes;

use std::{collections::BTreeSet, fmt, sync::Arc};

use async_trait::async_trait;
use cloudkeel_api::*;
use cloudkeel_example_sdk::{self as sdk, Balancer, Cloud, Hop, Machine, MachineState, NewRoute};
use cloudkeel_http::Transport;
use instances::number;

const ENDPOINT: ConfigKey<String> = ConfigKey::new("endpoint", "Where the API is.").required();
const TOKEN: ConfigKey<Secret> = ConfigKey::new("token", "The credential.").required();

/// Builds the provider. Tests may bring a transport that leads straight into an emulator.
pub struct ExampleFactory(pub Option<Arc<dyn Transport>>);

#[async_trait]
impl ProviderFactory for ExampleFactory {
    fn descriptor(&self) -> Descriptor {
        use Capability::{Instances, LoadBalancers, Routes};
        Descriptor {
            name: "example",
            summary: "The cloud of the guide for provider authors.",
            replaces: &[],
            capabilities: vec![Instances, LoadBalancers, Routes],
            keys: vec![ENDPOINT.doc(), TOKEN.doc()],
        }
    }
    async fn build(
        &self,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let ConfigSource::Own(config) = &input.config else {
            return Err(Problems::from(Problem::new("config", "is missing")).into());
        };
        let mut reader = ConfigReader::new(config);
        let (endpoint, token) = (reader.get(&ENDPOINT), reader.get(&TOKEN));
        let (endpoint, token) = reader.finish(|| Some((endpoint?, token?)))?;
        let api = Cloud::new(endpoint, token, &context, self.0.clone())?;
        Ok(Arc::new(Example(Driven::new(Account {
            scope: api.scope().await?,
            clock: context.clock,
            api,
        }))))
    }
}

/// One account of the cloud.
struct Account {
    api: Cloud,
    scope: ScopeFingerprint,
    clock: Arc<dyn Clock>,
}
struct Example(Driven<Account>);
#[async_trait]
impl CloudProvider for Example {
    fn name(&self) -> &'static str {
        "example"
    }
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.0.driver().api.scope().await
    }
    fn instances(&self) -> Option<&dyn Instances> {
        Some(self.0.driver())
    }
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        Some(&self.0)
    }
    fn routes(&self) -> Option<&dyn Routes> {
        Some(self.0.driver())
    }
}
