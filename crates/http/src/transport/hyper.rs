//! The real transport: HTTP/1.1 with keep-alive connections over TCP or TLS.

use std::error::Error as StdError;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::CloudError;
use http::header::PROXY_AUTHORIZATION;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::Transport;
use super::connect::{ConnectTimeout, ProxyConnector};
use crate::error::{TransportError, TransportErrorKind};
use crate::proxy::ProxySettings;
use crate::tls::TlsSettings;

/// How to reach the cloud.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Trusted CAs and the client certificate.
    pub tls: TlsSettings,
    /// Which proxies to use.
    pub proxy: ProxySettings,
    /// The timeout of connecting, with TLS.
    pub connect_timeout: Duration,
    /// How long an idle connection is kept for the next request.
    pub idle_timeout: Duration,
    /// The largest response that is read.
    pub max_body_bytes: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            tls: TlsSettings::default(),
            proxy: ProxySettings::default(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(1),
            max_body_bytes: 64 * 1024 * 1024,
        }
    }
}

impl HttpSettings {
    /// The default with the proxies that the environment names.
    pub fn from_env() -> Result<Self, CloudError> {
        Ok(Self {
            proxy: ProxySettings::from_env()?,
            ..Self::default()
        })
    }
}

/// A pool of connections, shared by all clients that are built on it.
pub struct HyperTransport {
    client: Client<ConnectTimeout, Full<Bytes>>,
    proxies: ProxySettings,
    max_body_bytes: usize,
}

impl HyperTransport {
    /// Prepares connections; none is opened yet. A certificate or key that cannot be read is an
    /// [`Invalid`](cloudkeel_api::ErrorKind::Invalid) error.
    pub fn new(settings: HttpSettings) -> Result<Self, CloudError> {
        let tls = settings.tls.client_config()?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(settings.idle_timeout));
        tcp.set_connect_timeout(Some(settings.connect_timeout));
        let router = ProxyConnector::over(tcp, tls.clone(), settings.proxy.clone());
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(settings.idle_timeout)
            .pool_timer(TokioTimer::new())
            .build(ConnectTimeout::new(
                HttpsConnector::from((router, tls)),
                settings.connect_timeout,
            ));
        Ok(Self {
            client,
            proxies: settings.proxy,
            max_body_bytes: settings.max_body_bytes,
        })
    }

    /// A tunnel carries the proxy's credential itself; a forwarding proxy reads it per request.
    fn authenticate_to_proxy(&self, request: &mut http::Request<Bytes>) {
        if let Some(credential) = self.proxies.forward_authorization(request.uri()) {
            request
                .headers_mut()
                .insert(PROXY_AUTHORIZATION, credential);
        }
    }
}

#[async_trait]
impl Transport for HyperTransport {
    async fn send(
        &self,
        mut request: http::Request<Bytes>,
    ) -> Result<http::Response<Bytes>, TransportError> {
        self.authenticate_to_proxy(&mut request);
        let answer = self
            .client
            .request(request.map(Full::new))
            .await
            .map_err(unanswered)?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, self.max_body_bytes)
            .collect()
            .await
            .map_err(|error| self.cut_off(error))?;
        Ok(http::Response::from_parts(head, body.to_bytes()))
    }
}

impl HyperTransport {
    fn cut_off(&self, error: cloudkeel_api::Source) -> TransportError {
        if error.is::<LengthLimitError>() {
            let limit = self.max_body_bytes;
            return TransportError::new(
                TransportErrorKind::TooLarge,
                format!("the answer is bigger than {limit} bytes"),
            );
        }
        TransportError::new(
            TransportErrorKind::Broken,
            format!("the connection broke within the answer: {}", root(&*error)),
        )
        .with_source(error)
    }
}

fn unanswered(error: hyper_util::client::legacy::Error) -> TransportError {
    let cause = root(&error);
    let (kind, message) = if is_about_certificates(&error) {
        let message = format!("no TLS connection: {cause}");
        (TransportErrorKind::Untrusted, message)
    } else if error.is_connect() {
        (
            TransportErrorKind::Unsent,
            format!("cannot connect: {cause}"),
        )
    } else {
        let message = format!("the connection broke before an answer: {cause}");
        (TransportErrorKind::Broken, message)
    };
    TransportError::new(kind, message).with_source(error)
}

/// The innermost cause, which names the actual problem.
fn root(error: &(dyn StdError + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn is_about_certificates(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref().is_some_and(is_certificate_error) {
            return true;
        }
        // An I/O error shows the source of what it wraps, not what it wraps.
        if let Some(wrapped) = error.downcast_ref().and_then(std::io::Error::get_ref)
            && is_about_certificates(wrapped)
        {
            return true;
        }
        next = error.source();
    }
    false
}

fn is_certificate_error(error: &rustls::Error) -> bool {
    use rustls::AlertDescription as Alert;
    matches!(
        error,
        rustls::Error::InvalidCertificate(_)
            | rustls::Error::NoCertificatesPresented
            | rustls::Error::AlertReceived(
                Alert::BadCertificate
                    | Alert::CertificateExpired
                    | Alert::CertificateRequired
                    | Alert::CertificateRevoked
                    | Alert::CertificateUnknown
                    | Alert::UnknownCA
            )
    )
}
