//! The API on the loopback interface, with TLS and bearer tokens, for programs that are not in process.

mod certificate;
mod kubeconfig;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming as RequestBody;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Identity;
use crate::api::{Answer, AnswerBody, EmbeddedApi, respond};
use crate::refusal::Refusal;
use crate::request::{Accepted, Incoming};
use certificate::Certificates;

/// Connections at the same time; others wait until one ends.
const MOST_CONNECTIONS: usize = 512;

/// A client that has not finished its TLS handshake by then never will.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// From the start of a connection, or the end of an answer, to the end of the next request's headers.
const HEADERS: Duration = Duration::from_secs(30);

/// From the headers of a request to the end of its body.
const BODY: Duration = Duration::from_mins(1);

/// How large the headers of a request may be.
const MOST_HEADER_BYTES: u32 = 64 * 1024;

/// More than the largest object, as of the real API server.
const MOST_BODY_BYTES: usize = 3 << 20;

/// A pause after the system refused a connection, for lack of files or memory.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Why the API could not be opened to the outside.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// What the machine says.
        source: io::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a certificate for the API: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificate cannot be used.
    #[error("cannot use the certificate of the API: {0}")]
    Tls(#[from] rustls::Error),
}

/// An API that listens. It stops when this is dropped.
pub struct Served {
    api: EmbeddedApi,
    address: SocketAddr,
    ca_pem: String,
    stop: CancellationToken,
    connections: TaskTracker,
}

impl EmbeddedApi {
    /// Listens on a port of 127.0.0.1; 0 is any that is free.
    pub async fn serve(&self, port: u16) -> Result<Served, ServeError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listen = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let certificates = Certificates::new()?;
        let acceptor = TlsAcceptor::from(Arc::new(certificates.server()?));
        let (stop, connections) = (CancellationToken::new(), TaskTracker::new());
        let server = TlsServer {
            api: self.clone(),
            acceptor,
            stop: stop.clone(),
            connections: connections.clone(),
        };
        connections.spawn(server.accept(listener));
        Ok(Served {
            api: self.clone(),
            address,
            ca_pem: certificates.ca_pem,
            stop,
            connections,
        })
    }
}

impl Served {
    /// Such as `https://127.0.0.1:40123`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The authority that signed the certificate, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// A kubeconfig for this identity, with a token of its own.
    pub fn kubeconfig(&self, identity: Identity) -> String {
        let user = identity.name.clone();
        let token = self.api.issue_token(identity);
        kubeconfig::kubeconfig(&self.url(), &self.ca_pem, &user, &token)
    }

    /// Closes every connection and waits until all are closed.
    pub async fn stop(self) {
        self.stop.cancel();
        self.connections.close();
        self.connections.wait().await;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct TlsServer {
    api: EmbeddedApi,
    acceptor: TlsAcceptor,
    stop: CancellationToken,
    connections: TaskTracker,
}

impl TlsServer {
    async fn accept(self, listener: TcpListener) {
        let stop = self.stop.clone();
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let all = async {
            loop {
                let seat = Arc::clone(&room).acquire_owned().await;
                match listener.accept().await {
                    Ok((stream, _)) => self.open(stream, seat.ok()),
                    Err(error) => {
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(ACCEPT_RETRY).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(all).await;
    }

    fn open(&self, stream: TcpStream, seat: Option<OwnedSemaphorePermit>) {
        let (api, acceptor, stop) = (self.api.clone(), self.acceptor.clone(), self.stop.clone());
        self.connections.spawn(async move {
            let connection = async {
                let stream = timeout(HANDSHAKE, acceptor.accept(stream)).await??;
                let service = service_fn(|request| serve_one(api.clone(), request));
                let served = builder()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
                served.map_err(io::Error::other)
            };
            if let Some(Err(error)) = stop.run_until_cancelled(connection).await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(seat);
        });
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .max_buf_size(MOST_HEADER_BYTES as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MOST_HEADER_BYTES);
    builder
}

async fn serve_one(
    api: EmbeddedApi,
    request: Request<RequestBody>,
) -> Result<Response<AnswerBody>, Infallible> {
    let sent_at = api.now();
    let (parts, body) = request.into_parts();
    let refuse = |refusal: &Refusal| Ok(respond(Answer::refusal(refusal), Accepted::default()));
    let token = parts.headers.get(header::AUTHORIZATION);
    let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let Some(who) = token.and_then(|token| api.identify(token)) else {
        return refuse(&Refusal::unauthorized());
    };
    let body = match timeout(BODY, Limited::new(body, MOST_BODY_BYTES).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return refuse(&Refusal::too_large(MOST_BODY_BYTES));
        }
        Ok(Err(error)) => return refuse(&Refusal::bad_request(error.to_string())),
        Err(_) => return refuse(&Refusal::request_timeout("the body took too long")),
    };
    let request = Incoming::new(&parts, body, sent_at);
    match api.ask(&who, request, None).await {
        Ok(response) => Ok(response),
        Err(error) => refuse(&Refusal::internal_error(error.to_string())),
    }
}
