//! Builds a client.

use std::sync::Arc;

use cloudkeel_api::{Clock, CloudError, NoObserver, SharedObserver, SystemClock};
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::authorize::Authorizer;
use crate::backoff::Jitter;
use crate::client::{Client, Inner};
use crate::error::{ErrorMap, StatusMap};
use crate::limit::Limiter;
use crate::redact::Redactor;
use crate::retry::RetryPolicy;
use crate::transport::{HttpSettings, HyperTransport, Transport};
use crate::url::{BaseUrl, LinkPolicy, parse_origin};

/// Headers in which clouds return the ID of a request.
const REQUEST_ID_HEADERS: [&str; 8] = [
    "x-request-id",
    "x-correlation-id",
    "x-openstack-request-id",
    "x-compute-request-id",
    "x-ms-request-id",
    "x-amzn-requestid",
    "x-amz-request-id",
    "opc-request-id",
];

/// Collects the settings of a [`Client`]; problems are reported by [`build`](Self::build).
#[derive(Clone)]
pub struct ClientBuilder {
    base_url: String,
    trusted: Vec<String>,
    rebase_links: bool,
    http: Option<HttpSettings>,
    transport: Option<Arc<dyn Transport>>,
    authorizer: Option<Arc<dyn Authorizer>>,
    errors: Arc<dyn ErrorMap>,
    reads: Option<Limiter>,
    writes: Option<Limiter>,
    observer: SharedObserver,
    clock: Arc<dyn Clock>,
    retry: RetryPolicy,
    jitter: Arc<Jitter>,
    headers: Vec<(String, String)>,
    request_ids: Vec<String>,
    redactor: Redactor,
}

impl ClientBuilder {
    pub(crate) fn new(base_url: String) -> Self {
        Self {
            base_url,
            trusted: Vec::new(),
            rebase_links: false,
            http: None,
            transport: None,
            authorizer: None,
            errors: Arc::new(StatusMap),
            reads: None,
            writes: None,
            observer: Arc::new(NoObserver),
            clock: Arc::new(SystemClock),
            retry: RetryPolicy::default(),
            jitter: Arc::new(Jitter::default()),
            headers: vec![(
                USER_AGENT.to_string(),
                concat!("cloudkeel/", env!("CARGO_PKG_VERSION")).to_owned(),
            )],
            request_ids: REQUEST_ID_HEADERS.map(str::to_owned).to_vec(),
            redactor: Redactor::default(),
        }
    }

    /// Another address; everything else stays.
    #[must_use]
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// How to reach the cloud. By default with the system's roots and the environment's proxies.
    #[must_use]
    pub fn http(mut self, settings: HttpSettings) -> Self {
        self.http = Some(settings);
        self.transport = None;
        self
    }

    /// Another transport in place of real connections.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The credential. Without it, requests are unauthenticated.
    #[must_use]
    pub fn authorizer(mut self, authorizer: impl Authorizer + 'static) -> Self {
        self.authorizer = Some(Arc::new(authorizer));
        self
    }

    /// What the cloud's errors mean. By default the status decides.
    #[must_use]
    pub fn error_map(mut self, errors: impl ErrorMap + 'static) -> Self {
        self.errors = Arc::new(errors);
        self
    }

    /// The rate limiter of the credential. By default one of this client's own.
    #[must_use]
    pub fn limiter(mut self, limiter: Limiter) -> Self {
        self.reads = Some(limiter);
        self
    }

    /// A separate rate limiter for requests that change something, where the cloud counts them separately.
    #[must_use]
    pub fn write_limiter(mut self, limiter: Limiter) -> Self {
        self.writes = Some(limiter);
        self
    }

    /// The observer of every attempt.
    #[must_use]
    pub fn observer(mut self, observer: SharedObserver) -> Self {
        self.observer = observer;
        self
    }

    /// The wall clock, for dates in headers.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The retry limits.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The random source of the backoff.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = Arc::new(jitter);
        self
    }

    /// A header for every request; a request's own header of that name wins.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.headers
            .retain(|(present, _)| !present.eq_ignore_ascii_case(&name));
        self.headers.push((name, value.into()));
        self
    }

    /// The user agent.
    #[must_use]
    pub fn user_agent(self, name: impl Into<String>) -> Self {
        self.header(USER_AGENT.as_str(), name)
    }

    /// A response header that holds the cloud's ID of the request, looked for before the usual ones.
    #[must_use]
    pub fn request_id_header(mut self, name: impl Into<String>) -> Self {
        self.request_ids.insert(0, name.into());
        self
    }

    /// Which fields and parameters to keep out of logs and errors, beyond the usual ones.
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// Another host that links may lead to and that may see the credential.
    #[must_use]
    pub fn trust_origin(mut self, origin: impl Into<String>) -> Self {
        self.trusted.push(origin.into());
        self
    }

    /// Follows links to another host on the base URL's own host. For clouds behind a proxy that return their
    /// internal address.
    #[must_use]
    pub const fn rebase_links(mut self, rebase: bool) -> Self {
        self.rebase_links = rebase;
        self
    }

    /// The client, or what is wrong with its settings.
    pub fn build(self) -> Result<Client, CloudError> {
        let base = BaseUrl::parse(&self.base_url)?;
        let links = LinkPolicy {
            trusted: self
                .trusted
                .iter()
                .map(|origin| parse_origin(origin))
                .collect::<Result<_, _>>()?,
            rebase: self.rebase_links,
        };
        let headers = common_headers(&self.headers)?;
        let request_ids = self
            .request_ids
            .iter()
            .map(|name| header_name(name))
            .collect::<Result<_, _>>()?;
        let transport = match (&self.transport, &self.http) {
            (Some(transport), _) => Arc::clone(transport),
            (None, Some(http)) => Arc::new(HyperTransport::new(http.clone())?),
            (None, None) => Arc::new(HyperTransport::new(HttpSettings::from_env()?)?),
        };
        let reads = self.reads.clone().unwrap_or_default();
        let inner = Inner {
            base,
            links,
            headers,
            request_ids,
            writes: self.writes.clone().unwrap_or_else(|| reads.clone()),
            authorizer: self.authorizer.clone(),
            errors: Arc::clone(&self.errors),
            observer: Arc::clone(&self.observer),
            clock: Arc::clone(&self.clock),
            retry: self.retry.clone(),
            jitter: Arc::clone(&self.jitter),
            redactor: self.redactor.clone(),
            transport: Arc::clone(&transport),
            reads: reads.clone(),
            parts: Self {
                transport: Some(transport),
                reads: Some(reads),
                ..self
            },
        };
        Ok(Client {
            inner: Arc::new(inner),
        })
    }
}

fn common_headers(pairs: &[(String, String)]) -> Result<HeaderMap, CloudError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    for (name, value) in pairs {
        let value = HeaderValue::from_str(value).map_err(|_| {
            let message = format!("the value of header {name} is not text");
            CloudError::invalid("configure HTTP client", message)
        })?;
        headers.insert(header_name(name)?, value);
    }
    Ok(headers)
}

fn header_name(name: &str) -> Result<HeaderName, CloudError> {
    name.parse().map_err(|_| {
        let message = format!("{name:?} is not a header name");
        CloudError::invalid("configure HTTP client", message)
    })
}
