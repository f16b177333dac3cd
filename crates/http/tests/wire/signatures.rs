//! A signature as AWS and OCI want them: over everything that is sent, fresh for every attempt.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::{Clock, CloudError, ErrorKind, Secret, SystemClock};
use cloudkeel_http::{
    Auth, CodeTable, HttpSettings, Request, Token, TokenCache, TokenSource, set_secret_header,
};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use ring::hmac;

use crate::client;
use crate::server::{Server, answer};

/// The headers that the signature covers, as far as they are there.
const SIGNED: [&str; 4] = ["content-type", "host", "x-date", "x-session-token"];

/// A clock that is a second later whenever it is read.
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_second(seconds).unwrap()
    }
}

#[derive(Clone)]
struct Keys {
    session: Secret,
    key: Secret,
}

impl Keys {
    /// The session and the key that belongs to it.
    fn numbered(number: u32) -> Self {
        Self {
            session: Secret::new(format!("session-{number}")),
            key: Secret::new(format!("key-{number}")),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// What is signed: method, path, query, headers and a digest of the body.
fn canonical(request: &http::Request<Bytes>) -> String {
    let target = request.uri().path_and_query().unwrap();
    let header = |name: &str| {
        let value = request.headers().get(name)?.to_str().unwrap();
        Some(format!("{name}:{value}"))
    };
    let lines = [request.method().to_string(), target.to_string()]
        .into_iter()
        .chain(SIGNED.into_iter().filter_map(header))
        .chain([hex(digest(&SHA256, request.body()).as_ref())]);
    lines.collect::<Vec<_>>().join("\n")
}

fn signature(request: &http::Request<Bytes>, key: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let tag = hmac::sign(&key, canonical(request).as_bytes());
    format!("HMAC-SHA256 Signature={}", hex(tag.as_ref()))
}

/// Signs with the clock's time.
fn sign(
    keys: &Keys,
    request: &mut http::Request<Bytes>,
    clock: &dyn Clock,
) -> Result<(), CloudError> {
    let host = request.uri().authority().unwrap().as_str().to_owned();
    for (name, value) in [("host", host), ("x-date", clock.now().to_string())] {
        let value = HeaderValue::from_str(&value).unwrap();
        request.headers_mut().insert(name, value);
    }
    let session = http::HeaderName::from_static("x-session-token");
    set_secret_header(request, &session, keys.session.expose())?;
    let signature = signature(request, keys.key.expose());
    set_secret_header(request, &AUTHORIZATION, &signature)
}

fn ticking() -> Arc<dyn Clock> {
    Arc::new(Ticking(AtomicI64::new(1_800_000_000)))
}

/// Whether the request is signed by the session that it names.
fn is_signed(request: &http::Request<Bytes>) -> bool {
    let Some(session) = request.headers().get("x-session-token") else {
        return false;
    };
    let number = session.to_str().unwrap().strip_prefix("session-").unwrap();
    let key = Keys::numbered(number.parse().unwrap()).key;
    request.headers()[AUTHORIZATION] == signature(request, key.expose())
}

fn describe() -> Request {
    Request::post("/ec2/{zone}")
        .param("zone", "eu/1")
        .query("q", "x y")
        .form([("Action", "DescribeInstances"), ("NextToken", "a&b")])
        .read_only()
}

#[tokio::test]
async fn every_attempt_is_signed_anew() {
    let attempts = AtomicU32::new(0);
    let server = Server::answering(move |request| {
        match (is_signed(request), attempts.fetch_add(1, Ordering::Relaxed)) {
            (false, _) => answer(403, "wrong signature"),
            (true, 0 | 1) => answer(503, "later"),
            (true, _) => answer(200, "{}"),
        }
    })
    .await;
    let clock = ticking();
    let auth = Auth::fixed(Keys::numbered(1), move |keys: &Keys, request| {
        sign(keys, request, &*clock)
    });
    let base = format!("http://{}/api", server.address);
    let client = client(base, HttpSettings::default())
        .authorizer(auth)
        .build()
        .unwrap();
    client.send(describe()).await.unwrap();

    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0].uri(), "/api/ec2/eu%2F1?q=x%20y");
    for (at, request) in seen.iter().enumerate() {
        assert!(is_signed(request), "attempt {at}");
        let hosts = request.headers().get_all("host").iter().count();
        assert_eq!(hosts, 1, "the one that is signed");
    }
    for name in ["x-date", "authorization"] {
        let mut values: Vec<_> = seen
            .iter()
            .map(|request| &request.headers()[name])
            .collect();
        values.dedup();
        assert_eq!(values.len(), 3, "{name}");
    }
}

type Change = fn(&mut http::Request<Bytes>);

#[tokio::test]
async fn what_was_changed_on_the_way_is_noticed_by_the_signature() {
    let clock = ticking();
    let mut request = describe()
        .to_http(&cloudkeel_http::BaseUrl::parse("http://api.example.com").unwrap())
        .unwrap();
    sign(&Keys::numbered(1), &mut request, &*clock).unwrap();
    assert!(is_signed(&request));
    let method: Change = |request| *request.method_mut() = http::Method::PUT;
    let query: Change = |request| *request.uri_mut() = "/ec2/eu%2F1".parse().unwrap();
    let body: Change = |request| *request.body_mut() = Bytes::from("Action=TerminateInstances");
    let date: Change = |request| {
        let date = HeaderValue::from_static("2014");
        request.headers_mut().insert("x-date", date);
    };
    for (case, change) in [
        ("method", method),
        ("query", query),
        ("body", body),
        ("date", date),
    ] {
        let mut changed = request.clone();
        change(&mut changed);
        assert!(!is_signed(&changed), "{case}");
    }
}

/// Hands out keys, each time new ones.
#[derive(Default)]
struct Vault(AtomicU32);

#[async_trait]
impl TokenSource<Keys> for Vault {
    async fn fetch(&self) -> Result<Token<Keys>, CloudError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Token {
            value: Keys::numbered(number),
            expires_at: None,
        })
    }
}

#[tokio::test]
async fn keys_that_have_expired_are_fetched_anew_once_for_all_calls() {
    for (status, code) in [(400, "ExpiredToken"), (403, "RequestExpired")] {
        let expired = Arc::new(Mutex::new(Vec::<String>::new()));
        let refused = Arc::clone(&expired);
        let server = Server::answering(move |request| {
            assert!(is_signed(request));
            let session = request.headers()["x-session-token"].to_str().unwrap();
            if refused.lock().unwrap().iter().any(|old| old == session) {
                return answer(status, format!(r#"{{"code":"{code}"}}"#));
            }
            answer(200, "{}")
        })
        .await;
        let vault = Arc::new(Vault::default());
        let tokens = TokenCache::new(Arc::clone(&vault) as _, Arc::new(SystemClock));
        let clock = ticking();
        let auth = Auth::renewed(Arc::new(tokens), move |keys: &Keys, request| {
            sign(keys, request, &*clock)
        });
        let table = CodeTable::new("/code", "/message").on(code, ErrorKind::Unauthenticated);
        let client = client(
            format!("http://{}", server.address),
            HttpSettings::default(),
        )
        .authorizer(auth)
        .error_map(table)
        .build()
        .unwrap();
        client.send(describe()).await.unwrap();
        expired.lock().unwrap().push("session-1".to_owned());
        let calls = (0..8).map(|_| client.send(describe()));
        for call in futures::future::join_all(calls).await {
            call.unwrap();
        }
        assert_eq!(vault.0.load(Ordering::Relaxed), 2, "{code}");

        expired.lock().unwrap().push("session-2".to_owned());
        let error = client.send(describe()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{code}");
        assert_eq!(vault.0.load(Ordering::Relaxed), 2, "no login storm");
    }
}
