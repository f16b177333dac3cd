//! HTTP on loopback, as little of it as these tests need.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// The first start of a browser reads hundreds of megabytes.
const TIMEOUT: Duration = Duration::from_mins(4);

/// A request with a JSON body, or without one; the answer, which is JSON too.
pub(crate) fn ask(host: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    try_ask(host, method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// The same, of a server that may be gone.
pub(crate) fn try_ask(
    host: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nX-Cloudkeel-Pressed: yes\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    read(BufReader::new(stream))
}

/// Not all servers close the connection when they are asked to, so the length is what counts.
fn read(mut answer: BufReader<TcpStream>) -> io::Result<(u16, Value)> {
    let mut line = || {
        let mut line = String::new();
        answer.read_line(&mut line)?;
        io::Result::Ok(line.trim_end().to_ascii_lowercase())
    };
    let status = line()?;
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let mut length = 0;
    loop {
        let header = line()?;
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body)?;
    let code = code.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((code, serde_json::from_slice(&body)?))
}
