//! The inner part of every API server client: connections, credentials, headers.

use cloudkeel_http::{ProxyConnector, ProxySettings};
use http::header::PROXY_AUTHORIZATION;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::{Client, Config};
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceBuilder};

/// Sends one request once. Retries, the fence and metrics are layers around it.
pub(crate) type Transport = BoxCloneService<Request<Body>, Response<Incoming>, BoxError>;

/// An API server: its address, our credentials, and the proxy.
#[derive(Clone)]
pub struct ApiServerConfig {
    /// The address, credentials and timeouts. Its `proxy_url` and `default_retry` are not read.
    pub config: Config,
    /// The proxy, if there is one.
    pub proxies: ProxySettings,
}

impl ApiServerConfig {
    /// A client without any layers.
    pub(crate) fn plain_client(&self) -> kube::Result<Client> {
        let namespace = self.config.default_namespace.clone();
        Ok(Client::new(self.transport()?, namespace))
    }

    /// The client library's own stack, but with the connector that all of this program uses, and without its own
    /// retries.
    pub(crate) fn transport(&self) -> kube::Result<Transport> {
        let mut config = self.config.clone();
        let forwarding = self.proxies.forward_authorization(&config.cluster_url);
        config
            .headers
            .extend(forwarding.map(|credential| (PROXY_AUTHORIZATION, credential)));
        let proxied = ProxyConnector::new(self.proxies.clone(), config.rustls_client_config()?);
        let https = config.rustls_https_connector_with_connector(proxied)?;
        let mut connector = TimeoutConnector::new(https);
        connector.set_connect_timeout(config.connect_timeout);
        connector.set_read_timeout(config.read_timeout);
        connector.set_write_timeout(config.write_timeout);
        connector.set_reset_reader_on_write(config.reset_reader_on_write);
        let connections = legacy::Builder::new(TokioExecutor::new()).build(connector);
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .map_err(BoxError::from)
            .service(connections);
        Ok(BoxCloneService::new(service))
    }
}
