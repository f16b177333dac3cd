//! An interposer on loopback, in front of a server.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use cloudkeel_http::{HttpSettings, HyperTransport, TlsSettings, Transport};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, LOCATION, TRANSFER_ENCODING};
use http::{HeaderValue, StatusCode, Uri};

use super::Interposer;
use crate::Served;
use crate::gateway::broken;

/// More than any honest request carries.
const BIGGEST_BODY: usize = 16 * 1024 * 1024;

/// A server as clients reach it through an interposer. It stops listening when this is dropped.
///
/// Answers that name the server's own address, such as a catalogue of services or a link to the next page, name the
/// proxy in its place, so that clients stay behind it.
#[derive(Debug)]
pub struct Proxy {
    served: Served,
    base_path: String,
}

/// One server behind the interposer.
struct Upstream {
    interposer: Interposer,
    transport: Arc<dyn Transport>,
    /// Its address without a path.
    origin: String,
}

impl Proxy {
    /// Stands in front of a server at this URL, plain or with a TLS certificate of a known authority.
    pub async fn start(interposer: &Interposer, upstream: &str) -> Result<Self, String> {
        Self::start_with(interposer, upstream, TlsSettings::default()).await
    }

    /// The same with these TLS settings towards the server.
    pub async fn start_with(
        interposer: &Interposer,
        upstream: &str,
        tls: TlsSettings,
    ) -> Result<Self, String> {
        let uri: Uri = upstream
            .parse()
            .map_err(|error| format!("{upstream:?} is no URL: {error}"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(format!(
                "{upstream:?}: expected a URL such as http://127.0.0.1:5000"
            ));
        };
        let settings = HttpSettings {
            tls,
            ..HttpSettings::default()
        };
        let transport = HyperTransport::new(settings).map_err(|error| error.to_string())?;
        let upstream = Arc::new(Upstream {
            interposer: interposer.clone(),
            transport: Arc::new(transport),
            origin: format!("{scheme}://{authority}"),
        });
        let router = Router::new().fallback(move |request: Request| {
            let upstream = Arc::clone(&upstream);
            async move { upstream.pass(request).await }
        });
        let served = Served::on_loopback(router).await;
        Ok(Self {
            served: served.map_err(|error| format!("the proxy cannot be served: {error}"))?,
            base_path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// The URL that clients use in place of the server's.
    pub fn url(&self) -> String {
        format!("{}{}", self.served.url(), self.base_path)
    }
}

impl Upstream {
    async fn pass(&self, request: Request) -> Response {
        let (mut head, body) = request.into_parts();
        let host = head.headers.remove(HOST);
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = format!("{}{path}", self.origin).parse() else {
            return plain(StatusCode::BAD_REQUEST, "the path is no part of a URL");
        };
        head.uri = uri;
        for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            head.headers.remove(name);
        }
        let Ok(body) = axum::body::to_bytes(body, BIGGEST_BODY).await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "the body cannot be read");
        };
        let request = http::Request::from_parts(head, body);
        match self.interposer.exchange(request, &*self.transport).await {
            Ok(answer) => self.with_own_address(answer, host.as_ref()),
            // The client must not take this for an answer of the cloud.
            Err(_) => broken(),
        }
    }

    /// The answer with the proxy's address in place of the server's.
    fn with_own_address(
        &self,
        answer: http::Response<Bytes>,
        host: Option<&HeaderValue>,
    ) -> Response {
        let (mut head, body) = answer.into_parts();
        for name in [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING] {
            head.headers.remove(name);
        }
        let Some(host) = host.and_then(|host| host.to_str().ok()) else {
            return Response::from_parts(head, Body::from(body));
        };
        let own = format!("http://{host}");
        if let Some(location) = head.headers.get(LOCATION)
            && let Ok(text) = location.to_str()
            && let Ok(text) = text.replace(&self.origin, &own).parse()
        {
            head.headers.insert(LOCATION, text);
        }
        let body = match std::str::from_utf8(&body) {
            Ok(text) if text.contains(&self.origin) => Body::from(text.replace(&self.origin, &own)),
            _ => Body::from(body),
        };
        Response::from_parts(head, body)
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}
