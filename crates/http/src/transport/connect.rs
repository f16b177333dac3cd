//! Connects directly or through a proxy.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use cloudkeel_api::Source;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::proxy::{Protocol, Proxy, ProxySettings, port_of};

/// A connection to the destination or to a proxy, before TLS with the destination itself.
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Chooses the route to a host: direct, through a tunnel (HTTP's `CONNECT` for `https`, SOCKS for all), or through a
/// forwarding proxy (for `http`). The connection to an HTTP proxy may use TLS.
///
/// Every client of this program connects through one of these: those of clouds, and those of the API server.
#[derive(Clone)]
pub struct ProxyConnector {
    tcp: HttpConnector,
    to_proxy: HttpsConnector<HttpConnector>,
    proxies: ProxySettings,
}

impl ProxyConnector {
    /// A connector for these proxies; `tls` is for connections to a proxy over TLS.
    pub fn new(proxies: ProxySettings, tls: rustls::ClientConfig) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        Self::over(tcp, tls, proxies)
    }

    pub(super) fn over(
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
        let Some(proxy) = self.proxies.intercept(&host).cloned() else {
            let tcp = self.tcp.call(host).await?;
            return Ok(Routed::straight(MaybeHttpsStream::Http(tcp)));
        };
        if proxy.forwards(&host) {
            let stream = self.to_proxy.call(proxy.address).await?;
            return Ok(Routed {
                stream,
                forwarded: true,
            });
        }
        let stream = match proxy.protocol {
            Protocol::Http => tunnel(self.to_proxy, &proxy).call(host).await?,
            Protocol::Socks5 => {
                let tcp = socks(self.tcp, &proxy).call(with_port(host)?).await?;
                MaybeHttpsStream::Http(tcp)
            }
        };
        Ok(Routed::straight(stream))
    }
}

fn tunnel(
    to_proxy: HttpsConnector<HttpConnector>,
    proxy: &Proxy,
) -> Tunnel<HttpsConnector<HttpConnector>> {
    let tunnel = Tunnel::new(proxy.address.clone(), to_proxy);
    match proxy.basic_auth() {
        Some(credential) => tunnel.with_auth(credential),
        None => tunnel,
    }
}

fn socks(tcp: HttpConnector, proxy: &Proxy) -> SocksV5<HttpConnector> {
    let socks = SocksV5::new(proxy.address.clone(), tcp);
    match proxy.credential() {
        Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
        None => socks,
    }
}

/// The SOCKS client assumes `https` for a destination without a port.
fn with_port(host: Uri) -> Result<Uri, http::Error> {
    let (Some(name), Some(port)) = (host.host(), port_of(&host)) else {
        return Ok(host);
    };
    let authority = format!("{name}:{port}");
    let mut parts = host.into_parts();
    parts.authority = Some(authority.parse()?);
    Ok(Uri::from_parts(parts)?)
}

impl Service<Uri> for ProxyConnector {
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

/// Connects within a time limit: TCP, the proxy's handshake and TLS together.
///
/// The pool finishes in the background what it has started, even if the request took another connection. Without a
/// limit, a server that never completes the handshake would keep a socket each time.
#[derive(Clone)]
pub(super) struct ConnectTimeout {
    connector: HttpsConnector<ProxyConnector>,
    longest: Duration,
}

impl ConnectTimeout {
    pub(super) const fn new(connector: HttpsConnector<ProxyConnector>, longest: Duration) -> Self {
        Self { connector, longest }
    }
}

impl Service<Uri> for ConnectTimeout {
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

/// A stream that knows whether a proxy forwards its requests.
pub struct Routed {
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
