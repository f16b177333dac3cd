//! Nodes in protobuf: the API server has far less work to write it than JSON, and we to read it.
//!
//! The client of this module asks for protobuf and hands on as JSON the little that is read of a Node, so that
//! whoever watches with it need not know. What comes as JSON after all, as from an API server that
//! knows nothing else, is handed on as it came.

mod replace;
mod transcode;
mod wire;

use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};
use tokio_util::io::StreamReader;
use tower_service::Service;

use super::given::GivenClient;
pub(super) use replace::replacement;

pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PROTOBUF_OR_JSON: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// etcd keeps no object that is larger than a few megabytes.
const LARGEST_EVENT: usize = 16 << 20;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// A client that asks for protobuf: Nodes, lists and watches of them, and the metadata of anything.
pub(super) fn client_in_protobuf(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(InProtobuf(GivenClient::new(client)), namespace)
}

#[derive(Clone)]
struct InProtobuf(GivenClient);

impl Service<Request<Body>> for InProtobuf {
    type Response = Response<AnyBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<AnyBody>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if !asks_for_protobuf(request.headers()) {
            request.headers_mut().insert(ACCEPT, PROTOBUF_OR_JSON);
        }
        let answer = self.0.call(request);
        async move { as_json(answer.await?).await }.boxed()
    }
}

fn asks_for_protobuf(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|kinds| kinds.to_str().ok());
    accepted.is_some_and(|kinds| kinds.starts_with(PROTOBUF))
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
