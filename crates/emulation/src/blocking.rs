//! Real software under a paused clock: requests are sent by blocking sockets, so that tokio's time stands still until
//! the answer is there. Retries, pauses and time-outs then cost nothing, as with an emulated cloud.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_http::{Transport, TransportError, TransportErrorKind};
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};

/// Plain HTTP/1.1 to a server on this machine. It never waits on tokio's clock.
#[derive(Debug, Default)]
pub struct BlockingTransport {
    idle: Mutex<Vec<BufReader<TcpStream>>>,
    headers: HeaderMap,
}

impl BlockingTransport {
    /// With this header on every request, such as the one that chooses an account.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// Sends a request and reads its answer, on a connection that is kept if there is one.
    pub fn exchange(&self, request: &Request<Bytes>) -> io::Result<Response<Bytes>> {
        let kept = self.idle().pop();
        let answer = match kept {
            // The server may have closed it meanwhile.
            Some(kept) => self.exchange_on(kept, request).or_else(|_| self.exchange_anew(request)),
            None => self.exchange_anew(request),
        };
        let (answer, connection) = answer?;
        self.idle().push(connection);
        Ok(answer)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<BufReader<TcpStream>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exchange_anew(&self, request: &Request<Bytes>) -> io::Result<Answered> {
        let authority = request.uri().authority().map_or("", |authority| authority.as_str());
        let connection = TcpStream::connect(authority)?;
        connection.set_nodelay(true)?;
        self.exchange_on(BufReader::new(connection), request)
    }

    fn exchange_on(
        &self,
        mut connection: BufReader<TcpStream>,
        request: &Request<Bytes>,
    ) -> io::Result<Answered> {
        connection.get_mut().write_all(&self.written(request))?;
        let answer = read_answer(&mut connection)?;
        Ok((answer, connection))
    }

    fn written(&self, request: &Request<Bytes>) -> Vec<u8> {
        let (uri, body) = (request.uri(), request.body());
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let mut head = format!("{} {target} HTTP/1.1\r\nhost: {host}\r\n", request.method()).into_bytes();
        for (name, value) in request.headers().iter().chain(&self.headers) {
            if name != "host" && name != CONTENT_LENGTH {
                head.extend(name.as_str().bytes().chain(*b": "));
                head.extend(value.as_bytes().iter().chain(b"\r\n"));
            }
        }
        head.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        head.extend(body);
        head
    }
}

type Answered = (Response<Bytes>, BufReader<TcpStream>);

fn malformed(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn line(connection: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn read_answer(connection: &mut BufReader<TcpStream>) -> io::Result<Response<Bytes>> {
    let status = line(connection)?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status: StatusCode = status.ok_or_else(|| malformed("no status"))?;
    let mut headers = HeaderMap::new();
    loop {
        let header = line(connection)?;
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        let name: Result<HeaderName, _> = name.parse();
        let value = HeaderValue::from_str(value.trim());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    let is_chunked = headers.get(TRANSFER_ENCODING).is_some();
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let body = if is_chunked { read_chunks(connection)? } else { read_exactly(connection, length)? };
    headers.remove(TRANSFER_ENCODING);
    let mut answer = Response::new(Bytes::from(body));
    (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
    Ok(answer)
}

fn read_exactly(connection: &mut BufReader<TcpStream>, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunks(connection: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(connection)?;
        let size = usize::from_str_radix(&size, 16).map_err(|_| malformed("no size of a chunk"))?;
        body.extend(read_exactly(connection, size)?);
        line(connection)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

#[async_trait]
impl Transport for BlockingTransport {
    /// With an await before and after, so that a caller that is dropped there is one whose request was not sent, or
    /// whose answer is lost.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        tokio::task::yield_now().await;
        let answer = self.exchange(&request);
        tokio::task::yield_now().await;
        answer.map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::ConnectionRefused => TransportErrorKind::Unsent,
                _ => TransportErrorKind::Broken,
            };
            TransportError::new(kind, error.to_string()).with_source(error)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    /// A server that answers each connection once more with what it is given here.
    fn serve(answers: Vec<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            for answer in answers {
                let mut length = 0;
                loop {
                    let header = line(&mut stream).unwrap();
                    if let Some(text) = header.strip_prefix("content-length: ") {
                        length = text.parse().unwrap();
                    }
                    if header.is_empty() {
                        break;
                    }
                }
                read_exactly(&mut stream, length).unwrap();
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        url
    }

    #[tokio::test(start_paused = true)]
    async fn time_stands_still_until_the_answer_is_there() {
        let url = serve(vec![
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-a: b\r\n\r\nhi",
            "HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ]);
        let transport = BlockingTransport::default().with_header("x-account", "7");
        for (status, body) in [(200, "hi"), (404, "abc")] {
            let mut request = Request::new(Bytes::from("x"));
            *request.uri_mut() = format!("{url}/a?b").parse().unwrap();
            let answer = tokio::time::timeout(Duration::from_nanos(1), transport.send(request));
            let answer = answer.await.unwrap().unwrap();
            assert_eq!((answer.status().as_u16(), &answer.body()[..]), (status, body.as_bytes()));
        }
        assert_eq!(transport.idle().len(), 1, "the connection is kept");
    }
}
