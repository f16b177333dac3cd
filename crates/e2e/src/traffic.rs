//! Requests to a load balancer, as any client sends them.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends one request to a host; an answer is anything that HTTP begins with.
pub(crate) async fn request(host: &str, port: u16) -> Result<()> {
    let answer = timeout(REQUEST_TIMEOUT, exchange(host, port)).await;
    let answer = answer.with_context(|| format!("{host}:{port} did not answer in time"))??;
    if answer.is_empty() {
        bail!("{host}:{port} closed the connection without an answer");
    }
    Ok(())
}

async fn exchange(host: &str, port: u16) -> Result<Vec<u8>> {
    let connected = TcpStream::connect((host, port)).await;
    let mut stream = connected.with_context(|| format!("cannot connect to {host}:{port}"))?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = vec![0; 64];
    let length = stream.read(&mut answer).await?;
    answer.truncate(length);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A server that takes one connection, reads the request, and answers with this.
    async fn serve(answer: &'static [u8]) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(answer).await.unwrap();
        });
        port
    }

    #[tokio::test]
    async fn only_an_answer_counts() {
        let port = serve(b"HTTP/1.1 404 Not Found\r\n\r\n").await;
        request("127.0.0.1", port).await.unwrap();

        let port = serve(b"").await;
        let error = request("127.0.0.1", port).await.unwrap_err().to_string();
        assert!(error.contains("without an answer"), "{error}");

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let error = request("127.0.0.1", port).await.unwrap_err().to_string();
        assert!(error.contains("cannot connect"), "{error}");
    }
}
