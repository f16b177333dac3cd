//! One HTTP request, like `curl`.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The equivalent `curl` command.
pub(crate) fn curl(at: SocketAddr) -> String {
    format!("curl http://{at}/")
}

/// The body of the response, or the error.
pub(crate) async fn get(at: SocketAddr) -> Result<String, String> {
    match timeout(TIMEOUT, ask(at)).await {
        Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(answer)) => body(&answer),
    }
}

async fn ask(at: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(at).await?;
    let request = format!("GET / HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn body(answer: &str) -> Result<String, String> {
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .ok_or_else(|| format!("the answer ended after {} bytes", answer.len()))?;
    let status = head.lines().next().unwrap_or_default();
    if status.starts_with("HTTP/1.1 200 ") {
        Ok(body.trim_end().to_owned())
    } else {
        Err(status.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_with_success_counts() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello\n", Ok("hello")),
            ("HTTP/1.1 503 Bad\r\n\r\n", Err("HTTP/1.1 503 Bad")),
            (
                "HTTP/1.1 200 OK\r\nA",
                Err("the answer ended after 18 bytes"),
            ),
            ("", Err("the answer ended after 0 bytes")),
        ] {
            let got = body(answer);
            assert_eq!(
                got.as_deref().map_err(String::as_str),
                expected,
                "{answer:?}"
            );
        }
    }
}
