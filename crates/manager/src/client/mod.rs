//! Clients of the Kubernetes API: one per purpose, all measured, and those that write fenced.

mod dry_run;
mod fence;
mod kubeconfig;
mod limit;
mod retry;
mod service_account;
mod settings;
mod tokens;
mod transport;

use std::ffi::OsStr;
use std::sync::Arc;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;
use tower::retry::Retry;
use tower::service_fn;
use tower_layer::Layer as _;

pub(crate) use dry_run::forget_finished;
pub use fence::{FenceClosed, FenceWrites};
pub use limit::{LimitRequests, RequestLimit};
pub use service_account::{AccountError, AccountToken, account_token};
pub use settings::{ConnectError, connect_settings};
pub use tokens::{BearerToken, keep_token_fresh};
pub use transport::ApiServerConfig;

use crate::dry_run::Recorder;
use crate::election::{ElectionConfig, Fence, election_client};
use crate::metrics::{MeasureRequests, Measured, Metrics};
use crate::options::ApiServerOptions;
use cloudkeel_api::Secret;
use dry_run::recording_client;
use fence::Fenced;
use limit::Limited;
use retry::RetryThrottled;
use tokens::Authorized;

/// Creates clients that differ only in their credentials and whether they may write.
#[derive(Clone)]
pub struct ClientFactory {
    access: ApiAccess,
    metrics: Metrics,
    limit: Option<RequestLimit>,
    /// In a dry run: where writes are recorded instead of sent.
    recorder: Option<Arc<Recorder>>,
}

/// How the API is reached.
#[derive(Clone)]
enum ApiAccess {
    /// Over the network, as the options say.
    Network(Box<ApiServerConfig>),
    /// Through an existing client, such as one of an API in this process.
    Given(Client),
}

impl ClientFactory {
    /// Connects as the options say, or as `$KUBECONFIG` says if its value is given. Nothing is sent yet.
    pub async fn new(
        options: &ApiServerOptions,
        variable: Option<&OsStr>,
        metrics: Metrics,
    ) -> Result<Self, ConnectError> {
        let server = connect_settings(options, variable).await?;
        Ok(Self {
            access: ApiAccess::Network(Box::new(server)),
            limit: options.qps.map(|qps| RequestLimit::new(qps, options.burst)),
            metrics,
            recorder: None,
        })
    }

    /// Wraps all clients around this one.
    pub const fn around(client: Client, metrics: Metrics) -> Self {
        Self {
            access: ApiAccess::Given(client),
            limit: None,
            metrics,
            recorder: None,
        }
    }

    /// The same in a dry run: no client writes, and what they would write is recorded.
    #[must_use]
    pub(crate) fn recording(mut self, recorder: Option<Arc<Recorder>>) -> Self {
        self.recorder = recorder;
        self
    }

    /// A client that is never fenced: for reads, for the election itself, for access reviews.
    pub fn unfenced(&self, purpose: &str) -> Result<Client, ConnectError> {
        self.build(&self.access, purpose, Fence::always_open(), None)
    }

    /// A client whose writes stop with the lease.
    pub fn fenced(&self, purpose: &str, fence: Fence) -> Result<Client, ConnectError> {
        self.build(&self.access, purpose, fence, None)
    }

    /// A client with the token of another account, which is kept fresh, and whose writes stop with the lease.
    pub fn with_token(
        &self,
        purpose: &str,
        fence: Fence,
        token: watch::Receiver<Secret>,
    ) -> Result<Client, ConnectError> {
        let mut access = self.access.clone();
        if let ApiAccess::Network(server) = &mut access {
            server.config.auth_info = kube::config::AuthInfo::default();
        }
        self.build(&access, purpose, fence, Some(token))
    }

    /// Whether clients have their own connections, rather than those of an existing client.
    pub(crate) const fn connects_itself(&self) -> bool {
        matches!(self.access, ApiAccess::Network(_))
    }

    /// A client for an election, whose requests do not wait for those of other clients.
    pub fn for_election(&self, election: &ElectionConfig) -> Result<Client, ConnectError> {
        if self.recorder.is_some() {
            return self.unfenced("leader-election");
        }
        match &self.access {
            ApiAccess::Network(server) => {
                election_client(server, election).map_err(ConnectError::Client)
            }
            ApiAccess::Given(client) => Ok(client.clone()),
        }
    }

    fn build(
        &self,
        access: &ApiAccess,
        purpose: &str,
        fence: Fence,
        token: Option<watch::Receiver<Secret>>,
    ) -> Result<Client, ConnectError> {
        let token = BearerToken::new(token);
        let fence = FenceWrites::new(fence);
        let client = match access {
            ApiAccess::Network(server) => {
                let mut server = ApiServerConfig::clone(server);
                let agent = format!("cloudkeel/{} {purpose}", env!("CARGO_PKG_VERSION"));
                if let Ok(agent) = HeaderValue::from_str(&agent) {
                    server.config.headers.push((USER_AGENT, agent));
                }
                let layers = Layers {
                    limit: LimitRequests::new(self.limit.clone()),
                    fence,
                    token,
                    measure: self.metrics.rest_client.of(&server.config.cluster_url),
                };
                let transport = server.transport().map_err(ConnectError::Client)?;
                let namespace = server.config.default_namespace;
                Client::new(layers.around(transport), namespace)
            }
            ApiAccess::Given(client) => {
                let given = client.clone();
                let send = service_fn(move |request| {
                    let client = given.clone();
                    async move { client.send(request).await }
                });
                let service = fence.layer(token.layer(send));
                let namespace = client.default_namespace().to_owned();
                Client::new::<_, Body, _>(service, namespace)
            }
        };
        Ok(match &self.recorder {
            Some(recorder) => recording_client(client, Arc::clone(recorder), purpose),
            None => client,
        })
    }
}

/// The layers around the transport of a client.
struct Layers {
    limit: LimitRequests,
    fence: FenceWrites,
    token: BearerToken,
    measure: MeasureRequests,
}

/// The outermost comes first, so a retry passes through all the others.
type Layered<S> = Retry<RetryThrottled, Limited<Fenced<Authorized<Measured<S>>>>>;

impl Layers {
    fn around<S>(self, transport: S) -> Layered<S> {
        let retry = RetryThrottled::new(self.measure.clone());
        let measured = self.measure.layer(transport);
        let fenced = self.fence.layer(self.token.layer(measured));
        Retry::new(retry, self.limit.layer(fenced))
    }
}
