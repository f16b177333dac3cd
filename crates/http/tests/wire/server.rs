//! Small servers on loopback: one that speaks HTTP, one that speaks bytes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

type Answer = dyn Fn(&http::Request<Bytes>) -> http::Response<Bytes> + Send + Sync;

/// A server that writes down what it saw.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicU32>,
    seen: Arc<Mutex<Vec<http::Request<Bytes>>>>,
    answer: Arc<Answer>,
}

impl Server {
    /// Answers every request with the same JSON.
    pub(crate) async fn plain() -> Self {
        Self::answering(same_json).await
    }

    /// The same under TLS.
    pub(crate) async fn tls(acceptor: TlsAcceptor) -> Self {
        Self::start(Some(acceptor), Arc::new(same_json)).await
    }

    /// Answers as this function says.
    pub(crate) async fn answering(
        answer: impl Fn(&http::Request<Bytes>) -> http::Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        Self::start(None, Arc::new(answer)).await
    }

    async fn start(acceptor: Option<TlsAcceptor>, answer: Arc<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            seen: Arc::default(),
            answer,
        };
        let running = server.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                running.connections.fetch_add(1, Ordering::Relaxed);
                let (server, acceptor) = (running.clone(), acceptor.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => server.converse(stream).await,
                        Some(acceptor) => match acceptor.accept(stream).into_fallible().await {
                            Ok(stream) => server.converse(stream).await,
                            Err((_, stream)) => let_it_read(stream).await,
                        },
                    }
                });
            }
        });
        server
    }

    async fn converse(&self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let answer = service_fn(|request| self.answer(request));
        // The client may hang up at any time.
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), answer)
            .await;
    }

    async fn answer(
        &self,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let request = http::Request::from_parts(head, body);
        let answer = (self.answer)(&request);
        self.seen.lock().unwrap().push(request);
        Ok(answer.map(Full::new))
    }

    pub(crate) fn seen(&self) -> Vec<http::Request<Bytes>> {
        self.seen.lock().unwrap().clone()
    }
}

fn same_json(_: &http::Request<Bytes>) -> http::Response<Bytes> {
    http::Response::new(Bytes::from_static(br#"{"ok":true}"#))
}

/// An answer with this status and body.
pub(crate) fn answer(status: u16, body: impl Into<String>) -> http::Response<Bytes> {
    let mut answer = http::Response::new(Bytes::from(body.into()));
    *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
    answer
}

/// A listener that hands each connection, after the head of its first request, to `converse`.
pub(crate) async fn raw<F, Fut>(converse: F) -> SocketAddr
where
    F: Fn(u32, TcpStream, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = read_head(&mut stream).await;
            tokio::spawn(converse(number, stream, head));
        }
    });
    address
}

pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// A client that was turned away may still be writing; hanging up now could cost it our last words.
async fn let_it_read(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}
