//! A client that can do what careful clients do not: trust any server, and choose version and protocol.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, ProtocolVersion, SignatureScheme,
    SupportedProtocolVersion,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Who calls, and how.
#[derive(Clone)]
pub(crate) struct Caller {
    server: SocketAddr,
    server_name: String,
    identity: Option<(String, String)>,
    versions: Vec<&'static SupportedProtocolVersion>,
    http2: bool,
    headers: Vec<(&'static str, String)>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) certificate: Vec<u8>,
    pub(crate) tls: ProtocolVersion,
}

impl Caller {
    /// An anonymous client.
    pub(crate) fn new(server: SocketAddr) -> Self {
        Self {
            server,
            server_name: "localhost".to_owned(),
            identity: None,
            versions: rustls::ALL_VERSIONS.to_vec(),
            http2: false,
            headers: Vec::new(),
        }
    }

    /// Shows a certificate.
    pub(crate) fn with_identity(mut self, certificate: &str, key: &str) -> Self {
        self.identity = Some((certificate.to_owned(), key.to_owned()));
        self
    }

    /// Shows the certificate in these files.
    pub(crate) fn with_identity_files(self, certificate: &Path, key: &Path) -> Self {
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        self.with_identity(&read(certificate), &read(key))
    }

    pub(crate) fn with_token(self, token: &str) -> Self {
        self.with_header("authorization", format!("Bearer {token}"))
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn with_versions(mut self, versions: &[&'static SupportedProtocolVersion]) -> Self {
        self.versions = versions.to_vec();
        self
    }

    pub(crate) fn asking_for(mut self, server_name: &str) -> Self {
        server_name.clone_into(&mut self.server_name);
        self
    }

    pub(crate) fn over_http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// A connection, or why there is none.
    pub(crate) async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.server).await?;
        let name = ServerName::try_from(self.server_name.clone()).unwrap();
        TlsConnector::from(Arc::new(self.config()))
            .connect(name, stream)
            .await
    }

    fn config(&self) -> ClientConfig {
        let builder = ClientConfig::builder_with_provider(default_provider().into())
            .with_protocol_versions(&self.versions)
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer));
        let mut config = match &self.identity {
            Some((certificate, key)) => {
                let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
                let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        if self.http2 {
            config.alpn_protocols = vec![b"h2".to_vec()];
        }
        config
    }

    /// Gets a path, whatever happens on the way.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        // Boxed: it holds a whole TLS connection.
        Box::pin(self.call(Method::GET, path, "")).await.unwrap()
    }

    /// Sends a request on a connection of its own.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let stream = self.connect().await?;
        let (_, tls) = stream.get_ref();
        let certificate = tls.peer_certificates().unwrap()[0].to_vec();
        let tls = tls.protocol_version().unwrap();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.server))
            .header("host", "localhost");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body.into()))?;
        let response = if self.http2 {
            let executor = TokioExecutor::new();
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(executor, TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            sender.send_request(request).await?
        } else {
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            sender.send_request(request).await?
        };
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.to_vec())?,
            certificate,
            tls,
        })
    }
}

/// Trusts every server.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
