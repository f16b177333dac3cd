//! Clients of the Kubernetes API: one per purpose, each measured, and those that write fenced.

mod fence;
mod limit;
mod service_account;
mod settings;
mod tokens;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tokio::sync::watch;
use tower_layer::Layer as _;

pub use fence::{FenceClosed, FenceWrites};
pub use limit::{LimitRequests, RequestLimit};
pub use service_account::{AccountError, AccountToken, account_token};
pub use settings::{ConnectError, connect_settings};
pub use tokens::{BearerToken, keep_token_fresh};

use cloudkeel_controllers::runtime::GivenClient;

use crate::election::{ElectionConfig, Fence, election_client};
use crate::metrics::Metrics;
use crate::options::ApiServerOptions;
use cloudkeel_api::Secret;

/// Makes clients that differ only in who is asking and whether they may write.
#[derive(Clone)]
pub struct ClientFactory {
    way: Way,
    metrics: Metrics,
    limit: Option<RequestLimit>,
}

/// How the API is reached.
#[derive(Clone)]
enum Way {
    /// Over the network, as the options say.
    Network(Box<Config>),
    /// Through a client that somebody else made, such as one of an API in this process.
    Given(Client),
}

impl ClientFactory {
    /// Connects as the options say. Nothing is sent yet.
    pub async fn new(options: &ApiServerOptions, metrics: Metrics) -> Result<Self, ConnectError> {
        Ok(Self {
            way: Way::Network(Box::new(connect_settings(options).await?)),
            limit: options.qps.map(|qps| RequestLimit::new(qps, options.burst)),
            metrics,
        })
    }

    /// Puts all clients around this one.
    pub const fn around(client: Client, metrics: Metrics) -> Self {
        Self {
            way: Way::Given(client),
            limit: None,
            metrics,
        }
    }

    /// A client that is never fenced: for reading, for the election itself, for reviews of access.
    pub fn unfenced(&self, purpose: &str) -> Result<Client, ConnectError> {
        self.build(&self.way, purpose, Fence::always_open(), None)
    }

    /// A client whose writes stop with the lease.
    pub fn fenced(&self, purpose: &str, fence: Fence) -> Result<Client, ConnectError> {
        self.build(&self.way, purpose, fence, None)
    }

    /// A client that asks as somebody else, by a token that is kept fresh, and whose writes stop
    /// with the lease.
    pub fn with_token(
        &self,
        purpose: &str,
        fence: Fence,
        token: watch::Receiver<Secret>,
    ) -> Result<Client, ConnectError> {
        let mut way = self.way.clone();
        if let Way::Network(config) = &mut way {
            config.auth_info = kube::config::AuthInfo::default();
        }
        self.build(&way, purpose, fence, Some(token))
    }

    /// A client for an election, which waits behind nobody's requests.
    pub fn for_election(&self, election: &ElectionConfig) -> Result<Client, ConnectError> {
        match &self.way {
            Way::Network(config) => election_client(config, election).map_err(ConnectError::Client),
            Way::Given(client) => Ok(client.clone()),
        }
    }

    fn build(
        &self,
        way: &Way,
        purpose: &str,
        fence: Fence,
        token: Option<watch::Receiver<Secret>>,
    ) -> Result<Client, ConnectError> {
        let token = BearerToken::new(token);
        let fence = FenceWrites::new(fence);
        match way {
            Way::Network(config) => {
                let mut config = Config::clone(config);
                let agent = format!("cloudkeel/{} {purpose}", env!("CARGO_PKG_VERSION"));
                if let Ok(agent) = HeaderValue::from_str(&agent) {
                    config.headers.push((USER_AGENT, agent));
                }
                let measure = self.metrics.rest_client.of(&config.cluster_url);
                let builder = ClientBuilder::try_from(config).map_err(ConnectError::Client)?;
                Ok(builder
                    .with_layer(&measure)
                    .with_layer(&token)
                    .with_layer(&fence)
                    .with_layer(&LimitRequests::new(self.limit.clone()))
                    .build())
            }
            Way::Given(client) => {
                let given = GivenClient::new(client.clone());
                let service = fence.layer(token.layer(given));
                let namespace = client.default_namespace().to_owned();
                Ok(Client::new::<_, Body, _>(service, namespace))
            }
        }
    }
}
