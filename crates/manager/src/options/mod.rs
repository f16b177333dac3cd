//! The command line as typed and checked options; all problems are reported at once.

mod auth;
mod controllers;
mod election;
mod gates;
mod generic;
mod listener;
mod logging;
mod reader;

use cloudkeel_api::{Descriptor, FlagValues, KeyPlace, Problems};
use serde::Serialize;

pub use auth::{AuthenticationOptions, AuthorizationOptions};
pub use controllers::{DeletionOptions, IpamOptions, NodeOptions, RouteOptions, ServiceOptions};
pub use election::ElectionOptions;
pub use gates::{FeatureGates, Gate};
pub use generic::{ApiServerOptions, GenericOptions, WebhookService};
pub use listener::{ListenerOptions, SniPair};
pub use logging::{LogFormat, LoggingOptions, ModuleLevel};

use crate::flags::{CommandLine, SECURE, WEBHOOK};
use reader::OptionReader;

/// All options of the manager.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// The cloud, the cluster, the controllers.
    pub generic: GenericOptions,
    /// How to reach the API server.
    pub api_server: ApiServerOptions,
    /// Leader election.
    pub election: ElectionOptions,
    /// Feature gates.
    pub gates: FeatureGates,
    /// The node controllers.
    pub node: NodeOptions,
    /// The service controller.
    pub service: ServiceOptions,
    /// The route controller.
    pub route: RouteOptions,
    /// The node IPAM controller.
    pub ipam: IpamOptions,
    /// The secure port.
    pub serving: ListenerOptions,
    /// The webhook port.
    pub webhook_serving: ListenerOptions,
    /// Which webhooks are served.
    pub webhooks: Vec<String>,
    /// Delegated authentication.
    pub authentication: AuthenticationOptions,
    /// Delegated authorization.
    pub authorization: AuthorizationOptions,
    /// Logging.
    pub logging: LoggingOptions,
    /// The flags that providers declared, as given.
    #[serde(skip)]
    pub provider_flags: FlagValues,
    /// Warnings about the command line.
    #[serde(skip)]
    pub notes: Vec<String>,
}

impl Options {
    /// Reads a command line. `providers` are those compiled in, whose own flags are passed on.
    pub fn read(line: &CommandLine, providers: &[Descriptor]) -> Result<Self, Problems> {
        let mut reader = OptionReader::new(&line.values);
        let read = Self::read_all(&mut reader, line, providers);
        reader.finish(read)
    }

    /// `None` only if a problem was noted.
    fn read_all(
        reader: &mut OptionReader<'_>,
        line: &CommandLine,
        providers: &[Descriptor],
    ) -> Option<Self> {
        let generic = GenericOptions::read(reader);
        let api_server = ApiServerOptions::read(reader);
        let election = ElectionOptions::read(reader);
        let gates = FeatureGates::read(reader);
        let node = NodeOptions::read(reader);
        let service = ServiceOptions::read(reader);
        let route = RouteOptions::read(reader);
        let ipam = IpamOptions::read(reader);
        let serving = ListenerOptions::read(reader, &SECURE);
        let webhook_serving = ListenerOptions::read(reader, &WEBHOOK);
        let webhooks = reader.list(&crate::flags::WEBHOOKS);
        let authentication = AuthenticationOptions::read(reader);
        let authorization = AuthorizationOptions::read(reader);
        let logging = LoggingOptions::read(reader);
        let options = Self {
            generic: generic?,
            api_server: api_server?,
            election: election?,
            gates: gates?,
            node: node?,
            service: service?,
            route: route?,
            ipam: ipam?,
            serving: serving?,
            webhook_serving: webhook_serving?,
            webhooks: webhooks?,
            authentication: authentication?,
            authorization: authorization?,
            logging: logging?,
            provider_flags: provider_flags(line, providers),
            notes: reader.take_notes(),
        };
        options.check_ports(reader);
        Some(options)
    }

    fn check_ports(&self, reader: &mut OptionReader<'_>) {
        let (secure, webhook) = (self.serving.port, self.webhook_serving.port);
        if !self.webhooks.is_empty() && secure == webhook && secure != 0 {
            reader.refuse(
                "--webhook-secure-port",
                webhook.to_string(),
                "a port other than --secure-port",
            );
        }
    }
}

/// The flags of providers that were given.
pub(crate) fn provider_flags(line: &CommandLine, providers: &[Descriptor]) -> FlagValues {
    let declared = |name: &str| {
        providers
            .iter()
            .flat_map(|provider| &provider.keys)
            .any(|key| key.place == KeyPlace::Flag && key.name == name)
    };
    line.values
        .iter()
        .filter(|(name, _)| declared(name))
        .map(|(name, texts)| (name.clone(), texts.clone()))
        .collect()
}

#[cfg(test)]
mod tests;
