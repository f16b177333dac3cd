//! A whole provider, small enough to read in one sitting. `docs/write-a-provider.md` explains it.
#![allow(clippy::wildcard_imports, reason = "short beats exact in an example")]
mod instances;
mod load_balancer;
mod routes;

use std::{collections::BTreeSet, fmt, sync::Arc};

use async_trait::async_trait;
use cloudkeel_api::*;
use cloudkeel_example_sdk::{AddressScope, Balancer, Cloud as Api, Hop, Machine, MachineState};
use cloudkeel_example_sdk::{NewRoute, Route};
use cloudkeel_toolkit::*;
use instances::number;
use ipnet::IpNet;

settings! {
    /// The settings.
    pub struct Config {
        /// Where the API is.
        pub endpoint: String = Setting::key("endpoint").required(),
        /// The credential.
        pub token: Secret = Setting::key("token").required(),
    }
}

/// The cloud of the guide.
pub struct Example;

#[async_trait]
impl Cloud for Example {
    type Config = Config;
    fn descriptor() -> Descriptor {
        use Capability::{Instances, LoadBalancers, Routes};
        Descriptor {
            name: "example",
            summary: "The cloud of the guide for provider authors.",
            replaces: &[],
            capabilities: vec![Instances, LoadBalancers, Routes],
            keys: Config::keys(),
        }
    }
    fn read(input: &ProviderInput) -> Result<Config, Problems> {
        Config::from_input(input)
    }
    async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<Provider<Self>, CloudError> {
        let (endpoint, token) = (config.endpoint.clone(), config.token.clone());
        let api = Api::new(endpoint, token, context, wiring.transport)?;
        let scope = api.scope().await?;
        let account = Account { api, scope };
        let instances = ProvenInstances::new(account.clone(), Arc::clone(&context.clock));
        Ok(Provider::new("example", account.clone())
            .with_instances(instances)
            .with_routes(Some(TableRoutes(account.clone())))
            .with_load_balancers(Some(account)))
    }
}

/// One account of the cloud.
#[derive(Clone)]
struct Account {
    api: Api,
    scope: ScopeFingerprint,
}
#[async_trait]
impl Session for Account {
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.api.scope().await
    }
}
