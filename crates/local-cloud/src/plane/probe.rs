//! One check of one target.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_http::any_certificate;
use cloudkeel_provider_local::wire::Probe;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::proxy_header::own_header;
use super::rules::Rules;
use super::udp::connected;

/// The status line and a little more; the rest of an answer does not matter.
const MOST_READ: usize = 1024;

/// How long a refusal of a datagram may take; silence is a good answer.
const REFUSAL: Duration = Duration::from_millis(500);

/// Makes checks.
#[derive(Debug)]
pub(super) struct Prober {
    tls: Arc<ClientConfig>,
}

/// Why a target did not pass.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("answered {0:?}, expected status 200")]
    Status(String),
    #[error("the path {0:?} cannot be asked for: it has spaces or control characters")]
    Path(String),
    #[error("this cloud has no check of this kind")]
    Unsupported,
}

impl Prober {
    pub(super) fn new() -> Result<Self, rustls::Error> {
        let tls = Arc::new(any_certificate()?);
        Ok(Self { tls })
    }

    /// Asks a target once.
    pub(super) async fn probe(&self, rules: &Rules, target: SocketAddr) -> Result<(), ProbeError> {
        let check = &rules.health_check;
        let patience = Duration::from_secs(check.timeout_seconds.into());
        let address = SocketAddr::new(target.ip(), check.port.unwrap_or(target.port()));
        // A target that expects the protocol expects it of checks too, but only on the port of clients.
        let preface = match (rules.proxy_protocol, check.port) {
            (Some(version), None) => own_header(version),
            (Some(version), Some(port)) if port == target.port() => own_header(version),
            _ => Vec::new(),
        };
        let asked = self.ask(&check.probe, address, &preface);
        match timeout(patience, asked).await {
            Ok(result) => result,
            Err(_) => Err(ProbeError::Timeout(patience)),
        }
    }

    async fn ask(
        &self,
        probe: &Probe,
        address: SocketAddr,
        preface: &[u8],
    ) -> Result<(), ProbeError> {
        match probe {
            Probe::Tcp => {
                let mut stream = connect(address).await?;
                stream.write_all(preface).await?;
                Ok(())
            }
            Probe::Http { path } => {
                let mut stream = connect(address).await?;
                stream.write_all(preface).await?;
                get(stream, path, address).await
            }
            Probe::Https { path } => {
                let mut stream = connect(address).await?;
                stream.write_all(preface).await?;
                let name = ServerName::IpAddress(address.ip().into());
                let tls = TlsConnector::from(Arc::clone(&self.tls));
                get(tls.connect(name, stream).await?, path, address).await
            }
            Probe::Udp => datagram(address).await,
            Probe::Sctp => Err(ProbeError::Unsupported),
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // On loopback a port without a listener can be connected to itself.
    if stream.local_addr()? == address {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

async fn get<S>(mut stream: S, path: &str, address: SocketAddr) -> Result<(), ProbeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if !path.chars().all(|character| character.is_ascii_graphic()) {
        return Err(ProbeError::Path(path.to_owned()));
    }
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: cloudkeel-local-cloud\r\n\
         Accept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    let mut part = [0; 256];
    while !answer.contains(&b'\n') && answer.len() < MOST_READ {
        let read = stream.read(&mut part).await?;
        match part.get(..read) {
            Some(bytes) if !bytes.is_empty() => answer.extend_from_slice(bytes),
            _ => break,
        }
    }
    let line = answer
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let line = String::from_utf8_lossy(line).trim_end().to_owned();
    let mut words = line.split(' ');
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    if is_http && words.next() == Some("200") {
        return Ok(());
    }
    Err(ProbeError::Status(line))
}

/// An empty datagram that is not refused.
async fn datagram(address: SocketAddr) -> Result<(), ProbeError> {
    let socket = connected(address).await?;
    socket.send(&[]).await?;
    let mut nothing = [0; 1];
    match timeout(REFUSAL, socket.recv(&mut nothing)).await {
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}
