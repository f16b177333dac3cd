//! Nodes in protobuf, which is cheaper than JSON for the API server to write and for us to read.
//!
//! The client of this module requests protobuf, decodes the few fields of a Node that controllers use, and passes them
//! as JSON to kube's own watcher. It passes on an answer in JSON, from an API server without protobuf, as it is.

mod replace;
mod transcode;
mod wire;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};
use tokio_util::io::StreamReader;
use tower::service_fn;

pub(super) use replace::replacement;

pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PROTOBUF_OR_JSON: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// etcd keeps no object that is larger than a few megabytes.
const LARGEST_EVENT: usize = 16 << 20;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// A client that reads Nodes, lists and watches of them in protobuf.
pub(super) fn client_in_protobuf(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let in_protobuf = service_fn(move |mut request: Request<Body>| {
        request.headers_mut().insert(ACCEPT, PROTOBUF_OR_JSON);
        let client = client.clone();
        async move { as_json(client.send(request).await?).await }
    });
    Client::new(in_protobuf, namespace)
}

async fn as_json(answer: Response<Body>) -> Result<Response<AnyBody>, BoxError> {
    let (mut head, body) = answer.into_parts();
    let body = match Form::of(&head.headers) {
        Form::Json => {
            return Ok(Response::from_parts(
                head,
                body.map_err(Into::into).boxed_unsync(),
            ));
        }
        Form::Object => {
            let json = transcode::object(&body.collect().await?.to_bytes())?;
            Full::from(json)
                .map_err(|never| match never {})
                .boxed_unsync()
        }
        Form::Events => events(body),
    };
    head.headers.insert(CONTENT_TYPE, JSON);
    head.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(head, body))
}

/// Each event comes behind its length, and goes on as a line.
fn events(body: Body) -> AnyBody {
    let bytes = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
    let frames = LengthDelimitedCodec::builder()
        .max_frame_length(LARGEST_EVENT)
        .new_codec();
    let lines = FramedRead::new(bytes, frames)
        .map(|frame| transcode::event(frame?.freeze()))
        .map_ok(http_body::Frame::data);
    StreamBody::new(lines).boxed_unsync()
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Object,
    Events,
}

impl Form {
    fn of(headers: &HeaderMap) -> Self {
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        match kind.and_then(|kind| kind.strip_prefix(PROTOBUF)) {
            None => Self::Json,
            Some(parameters) if parameters.contains("stream=watch") => Self::Events,
            Some(_) => Self::Object,
        }
    }
}

#[cfg(test)]
mod tests;
