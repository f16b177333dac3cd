//! Clients of the Kubernetes API: one per purpose, each measured, and those that write fenced.

mod fence;
mod limit;
mod service_account;
mod settings;
mod tokens;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::client::ClientBuilder;
use kube::{Client, Config};
use tokio::sync::watch;

pub use fence::{FenceClosed, FenceWrites};
pub use limit::{LimitRequests, RequestLimit};
pub use service_account::{AccountError, AccountToken, account_token};
pub use settings::{ConnectError, connect_settings};
pub use tokens::{BearerToken, keep_token_fresh};

use crate::election::Fence;
use crate::metrics::Metrics;
use crate::options::ApiServerOptions;
use cloudkeel_api::Secret;

/// Makes clients that differ only in who is asking and whether they may write.
#[derive(Clone)]
pub struct ClientFactory {
    config: Config,
    metrics: Metrics,
    limit: Option<RequestLimit>,
}

impl ClientFactory {
    /// Connects as the options say. Nothing is sent yet.
    pub async fn new(options: &ApiServerOptions, metrics: Metrics) -> Result<Self, ConnectError> {
        Ok(Self {
            config: connect_settings(options).await?,
            limit: options.qps.map(|qps| RequestLimit::new(qps, options.burst)),
            metrics,
        })
    }

    /// The settings all clients share.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// A client that is never fenced: for reading, for the election itself, for reviews of access.
    pub fn unfenced(&self, purpose: &str) -> Result<Client, ConnectError> {
        self.build(self.config.clone(), purpose, Fence::always_open(), None)
    }

    /// A client whose writes stop with the lease.
    pub fn fenced(&self, purpose: &str, fence: Fence) -> Result<Client, ConnectError> {
        self.build(self.config.clone(), purpose, fence, None)
    }

    /// A client that asks as somebody else, by a token that is kept fresh, and whose writes stop
    /// with the lease.
    pub fn with_token(
        &self,
        purpose: &str,
        fence: Fence,
        token: watch::Receiver<Secret>,
    ) -> Result<Client, ConnectError> {
        let mut anonymous = self.config.clone();
        anonymous.auth_info = kube::config::AuthInfo::default();
        self.build(anonymous, purpose, fence, Some(token))
    }

    fn build(
        &self,
        mut config: Config,
        purpose: &str,
        fence: Fence,
        token: Option<watch::Receiver<Secret>>,
    ) -> Result<Client, ConnectError> {
        let agent = format!("cloudkeel/{} {purpose}", env!("CARGO_PKG_VERSION"));
        if let Ok(agent) = HeaderValue::from_str(&agent) {
            config.headers.push((USER_AGENT, agent));
        }
        let measure = self.metrics.rest_client.of(&config.cluster_url);
        let builder = ClientBuilder::try_from(config).map_err(ConnectError::Client)?;
        Ok(builder
            .with_layer(&measure)
            .with_layer(&BearerToken::new(token))
            .with_layer(&FenceWrites::new(fence))
            .with_layer(&LimitRequests::new(self.limit.clone()))
            .build())
    }
}
