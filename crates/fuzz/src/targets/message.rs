//! HTTP messages as text, so that an input is one: a line, headers, an empty line, a body.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};

/// An input, taken apart.
pub(super) struct Message<'a> {
    pub(super) first: &'a [u8],
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl<'a> Message<'a> {
    /// Whatever the input is, it is a message.
    pub(super) fn read(input: &'a [u8]) -> Self {
        let (first, mut rest) = line(input);
        let mut headers = HeaderMap::new();
        while !rest.is_empty() {
            let (next, after) = line(rest);
            rest = after;
            if next.is_empty() {
                break;
            }
            let mut parts = next.splitn(2, |byte| *byte == b':');
            let name = parts.next().map(HeaderName::from_bytes);
            let value = parts.next().unwrap_or_default().trim_ascii();
            if let (Some(Ok(name)), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
                headers.append(name, value);
            }
        }
        Self {
            first,
            headers,
            body: Bytes::copy_from_slice(rest),
        }
    }

    /// As a request: the first line is `METHOD path`. Not every path can be sent.
    pub(super) fn request(self) -> Option<Request<Bytes>> {
        let mut words = self.first.splitn(2, |byte| *byte == b' ');
        let method = Method::from_bytes(words.next()?).ok()?;
        let uri = Uri::try_from(words.next()?).ok()?;
        let mut request = Request::new(self.body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers;
        Some(request)
    }

    /// As an answer: the first line ends with the status.
    pub(super) fn answer(self) -> Response<Bytes> {
        let status = self.first.rsplit(|byte| *byte == b' ').next();
        let status = StatusCode::from_bytes(status.unwrap_or_default());
        let mut answer = Response::new(self.body);
        *answer.status_mut() = status.unwrap_or(StatusCode::OK);
        *answer.headers_mut() = self.headers;
        answer
    }
}

/// An answer as an input, with this before its status.
pub(super) fn write_answer(before: &str, answer: &Response<Bytes>) -> Vec<u8> {
    let mut input = format!("{before} {}\n", answer.status().as_u16()).into_bytes();
    for (name, value) in answer.headers() {
        input.extend(name.as_str().as_bytes());
        input.extend(b": ");
        input.extend(value.as_bytes());
        input.push(b'\n');
    }
    input.push(b'\n');
    input.extend(answer.body());
    input
}

fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (
            bytes.get(..end).unwrap_or_default(),
            bytes.get(end + 1..).unwrap_or_default(),
        ),
        None => (bytes, &[]),
    }
}
