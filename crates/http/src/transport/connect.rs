//! Connects to the cloud directly or through a proxy.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use cloudkeel_api::Source;
use http::Uri;
use http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::proxy::{Intercept, ProxySettings};

/// A connection to the cloud or to a proxy, before TLS with the cloud itself.
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Chooses the way to a host: straight, through a tunnel (for `https`), or by asking the proxy to
/// forward (for `http`). The proxy itself may be spoken to over TLS.
#[derive(Clone)]
pub(super) struct Router {
    tcp: HttpConnector,
    to_proxy: HttpsConnector<HttpConnector>,
    proxies: ProxySettings,
}

impl Router {
    pub(super) fn new(
        tcp: HttpConnector,
        tls: rustls::ClientConfig,
        proxies: ProxySettings,
    ) -> Self {
        let to_proxy = HttpsConnector::from((tcp.clone(), tls));
        Self {
            tcp,
            to_proxy,
            proxies,
        }
    }

    async fn connect(mut self, host: Uri) -> Result<Routed, Source> {
        match self.proxies.intercept(&host) {
            None => {
                let tcp = self.tcp.call(host).await?;
                Ok(Routed::straight(MaybeHttpsStream::Http(tcp)))
            }
            Some(proxy) if host.scheme() == Some(&Scheme::HTTPS) => {
                let tunnel = tunnel(self.to_proxy, &proxy).call(host).await?;
                Ok(Routed::straight(tunnel))
            }
            Some(proxy) => {
                let stream = self.to_proxy.call(proxy.uri().clone()).await?;
                Ok(Routed {
                    stream,
                    forwarded: true,
                })
            }
        }
    }
}

fn tunnel(
    to_proxy: HttpsConnector<HttpConnector>,
    proxy: &Intercept,
) -> Tunnel<HttpsConnector<HttpConnector>> {
    let tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
    match proxy.basic_auth() {
        Some(credential) => tunnel.with_auth(credential.clone()),
        None => tunnel,
    }
}

impl Service<Uri> for Router {
    type Response = Routed;
    type Error = Source;
    type Future = Pin<Box<dyn Future<Output = Result<Routed, Source>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Source>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, host: Uri) -> Self::Future {
        Box::pin(self.clone().connect(host))
    }
}

/// Connects within a time: TCP, a proxy's consent and TLS together.
///
/// The pool finishes in the background what it has begun, even if the request went another way. Without an
/// end, a server that never shakes hands would keep a socket each time.
#[derive(Clone)]
pub(super) struct Timely {
    connector: HttpsConnector<Router>,
    longest: Duration,
}

impl Timely {
    pub(super) const fn new(connector: HttpsConnector<Router>, longest: Duration) -> Self {
        Self { connector, longest }
    }
}

impl Service<Uri> for Timely {
    type Response = MaybeHttpsStream<Routed>;
    type Error = Source;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Source>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Source>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, host: Uri) -> Self::Future {
        let (connecting, longest) = (self.connector.call(host), self.longest);
        Box::pin(async move {
            let late = |_| Err(format!("no connection within {longest:?}").into());
            timeout(longest, connecting).await.unwrap_or_else(late)
        })
    }
}

/// A stream that remembers whether a proxy forwards what is sent on it.
pub(super) struct Routed {
    stream: Stream,
    forwarded: bool,
}

impl Routed {
    const fn straight(stream: Stream) -> Self {
        Self {
            stream,
            forwarded: false,
        }
    }
}

impl Connection for Routed {
    fn connected(&self) -> Connected {
        // A forwarding proxy wants the whole URL in the request line.
        self.stream.connected().proxy(self.forwarded)
    }
}

impl Read for Routed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Routed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }
}
