//! HTTP on loopback, as little of it as these tests need.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_mins(1);

/// A request with a JSON body, or without one; the answer, which is JSON too.
pub(crate) fn ask(host: &str, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let mut stream = TcpStream::connect(host).expect("the server listens");
    let patience = Some(PATIENCE);
    stream.set_read_timeout(patience).expect("a time limit");
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nX-Cloudkeel-Pressed: yes\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it is sent");
    read(BufReader::new(stream))
}

/// Not all servers close the connection when they are asked to, so the length is what counts.
fn read(mut answer: BufReader<TcpStream>) -> (u16, Value) {
    let mut line = || {
        let mut line = String::new();
        answer.read_line(&mut line).expect("an answer");
        line.trim_end().to_ascii_lowercase()
    };
    let status = line();
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let mut length = 0;
    loop {
        let header = line();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    answer.read_exact(&mut body).expect("the whole answer");
    let body = serde_json::from_slice(&body);
    (code.expect("a status"), body.expect("an answer in JSON"))
}
