//! Builds a client from settings and context, with observer, clock, dumps and metrics.

mod dump;
mod metrics;

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{CloudError, ProviderContext, Secret};
use cloudkeel_http::{
    Backoff, Client, ClientBuilder, CodeTable, HeaderAuth, HttpSettings, HyperTransport, Jitter,
    Limiter, LimiterSettings, Refill, Request, RequestRate, RetryPolicy, Transport,
};

use self::dump::RequestDump;
use self::metrics::CountingTransport;
pub use self::metrics::{
    ApiCall, ApiMetrics, MetricLabels, MetricNames, MetricsServer, Pages, endpoint_without_ids,
};

/// How a cloud is reached, where it is not by real connections and real chance.
#[derive(Clone, Default)]
pub struct Wiring {
    /// Another way of sending, such as straight into an emulator.
    pub transport: Option<Arc<dyn Transport>>,
    /// The same for the metadata service of the machine that this runs on.
    pub metadata: Option<Arc<dyn Transport>>,
    /// Makes the pauses between retries repeatable.
    pub seed: Option<u64>,
}

/// What a client does with every request, besides sending it.
#[derive(Clone, Copy, Default)]
pub struct Instruments<'a> {
    /// Logs requests and answers, without credentials.
    pub dump: bool,
    /// Counts requests.
    pub metrics: Option<&'a ApiMetrics>,
}

/// An API that takes a bearer token and allows so many requests in an hour, of which some are left to other clients.
pub struct TokenApi<'a> {
    /// Where it is.
    pub endpoint: &'a str,
    /// The token.
    pub token: &'a Secret,
    /// What its refusals mean.
    pub refusals: CodeTable,
    /// The header in which an answer has its ID.
    pub request_id_header: &'static str,
    /// How often a call is tried.
    pub attempts: u32,
    /// A limit of our own.
    pub rate: Option<RequestRate>,
    /// The percentage of the allowed requests that is left to other clients.
    pub reserve_percent: u8,
    /// What happens to every request, besides sending it.
    pub instruments: Instruments<'a>,
}

/// How long the metadata service of a machine may take.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer of such an API may take.
const ATTEMPT: Duration = Duration::from_secs(15);

impl Wiring {
    /// A client of an API that takes a bearer token.
    pub fn token_client(
        &self,
        context: &ProviderContext,
        api: TokenApi<'_>,
    ) -> Result<Client, CloudError> {
        let limiter = Limiter::new(LimiterSettings {
            rate: api.rate,
            refill: Refill::Gradual,
            reserve_percent: api.reserve_percent,
        });
        let retry = RetryPolicy {
            attempts: api.attempts,
            backoff: Backoff {
                first: Duration::from_secs(1),
                longest: Duration::from_secs(20),
            },
            attempt: ATTEMPT,
            ..RetryPolicy::default()
        };
        let http = HttpSettings::from_env()?;
        self.client(
            api.endpoint.trim_end_matches('/'),
            context,
            http,
            api.instruments,
        )?
        .authorizer(HeaderAuth::bearer(api.token.clone()))
        .error_map(api.refusals)
        .request_id_header(api.request_id_header)
        .limiter(limiter)
        .retry(retry)
        .build()
    }

    /// For tests: everything goes this way, with pauses that are the same every time.
    pub fn over(transport: impl Transport + 'static) -> Self {
        Self {
            transport: Some(Arc::new(transport)),
            metadata: None,
            seed: Some(1),
        }
    }

    /// A builder of clients for the API at this address, reporting to the observer of the context.
    pub fn client(
        &self,
        url: &str,
        context: &ProviderContext,
        http: HttpSettings,
        instruments: Instruments<'_>,
    ) -> Result<ClientBuilder, CloudError> {
        let mut transport: Arc<dyn Transport> = match &self.transport {
            Some(transport) => Arc::clone(transport),
            None => Arc::new(HyperTransport::new(http)?),
        };
        if instruments.dump {
            transport = Arc::new(RequestDump(transport));
        }
        if let Some(metrics) = instruments.metrics {
            let path = url.parse::<http::Uri>().map(|uri| uri.path().to_owned());
            transport = Arc::new(CountingTransport {
                inner: transport,
                metrics: metrics.clone(),
                prefix: path.unwrap_or_default().trim_end_matches('/').to_owned(),
            });
        }
        let builder = Client::builder(url)
            .transport(transport)
            .observer(Arc::clone(&context.observer))
            .clock(Arc::clone(&context.clock));
        Ok(match self.seed {
            Some(seed) => builder.jitter(Jitter::seeded(seed)),
            None => builder,
        })
    }

    /// What the metadata service of the machine that this runs on says at a path. An error begins with `what` it does not say,
    /// and ends with `hint`.
    pub async fn ask_machine(
        &self,
        url: &str,
        path: &'static str,
        what: &str,
        hint: &str,
    ) -> Result<String, CloudError> {
        let client = self.metadata(url, METADATA_TIMEOUT)?;
        let answer = client.send(Request::get(path)).await.map_err(|error| {
            let message = format!("{what}: {error}; {hint}");
            CloudError::new("ask metadata service", error.kind(), message).with_source(error)
        })?;
        Ok(String::from_utf8_lossy(answer.body()).into_owned())
    }

    /// A client of the metadata service of the machine that this runs on: one attempt, soon over.
    pub fn metadata(&self, url: &str, timeout: Duration) -> Result<Client, CloudError> {
        let retry = RetryPolicy {
            attempt: timeout,
            total: timeout,
            ..RetryPolicy::never()
        };
        let builder = Client::builder(url).retry(retry);
        match &self.metadata {
            Some(transport) => builder.transport(Arc::clone(transport)),
            None => builder,
        }
        .build()
    }
}
