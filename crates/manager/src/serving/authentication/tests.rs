//! Which credentials are accepted, without an API server.

mod ca_sources;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cloudkeel_api::{Secret, TokioClock};
use http::HeaderName;
use jiff::Timestamp;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose};
use tokio::sync::Notify;

use super::*;
use crate::serving::review_client::ReviewError;
use crate::serving::testing::{Authority, clock};

const TTL: Duration = Duration::from_secs(10);

/// A source whose content is set by hand.
#[derive(Default)]
struct Scripted {
    content: Mutex<Option<Result<CaContent, String>>>,
    changed: Notify,
    read: Notify,
}

impl Scripted {
    fn holding(content: CaContent) -> Arc<Self> {
        let source = Self::default();
        *source.content.lock().unwrap() = Some(Ok(content));
        Arc::new(source)
    }

    /// Changes the content and waits until it was read.
    async fn set(&self, content: Option<Result<CaContent, String>>) {
        *self.content.lock().unwrap() = content;
        let read = self.read.notified();
        self.changed.notify_one();
        read.await;
        // The reader publishes before it waits for the next change.
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl CaSource for Scripted {
    fn name(&self) -> String {
        "the script".to_owned()
    }

    async fn read(&self) -> Result<Option<CaContent>, String> {
        let content = self.content.lock().unwrap().clone();
        self.read.notify_waiters();
        assert_ne!(content, Some(Err("panic".to_owned())), "planted");
        content.transpose()
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

fn clients(authority: &Authority) -> CaContent {
    CaContent {
        bundle: authority.pem(),
        front_proxy: FrontProxy::default(),
    }
}

fn proxies(authority: &Authority) -> CaContent {
    let list = |name: &str| vec![name.to_owned()];
    CaContent {
        bundle: authority.pem(),
        front_proxy: FrontProxy {
            allowed_names: list("front-proxy-client"),
            username_headers: vec!["X-Remote-User".to_owned(), "X-Other-User".to_owned()],
            uid_headers: list("X-Remote-Uid"),
            group_headers: list("X-Remote-Group"),
            extra_prefixes: list("X-Remote-Extra-"),
        },
    }
}

/// Knows `good`, fails for `broken`, and counts.
#[derive(Default)]
struct CountingReviewer {
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl TokenReviewer for CountingReviewer {
    async fn review(&self, token: &Secret) -> Result<Option<User>, ReviewError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match token.expose() {
            "good" => Ok(Some(user("sa", &["system:serviceaccounts"]))),
            "broken" => Err(ReviewError::Late {
                kind: "TokenReview",
            }),
            _ => Ok(None),
        }
    }
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.to_owned(),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..User::default()
    }
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, value.parse().unwrap());
    }
    headers
}

/// A user's name and groups, or `refused`.
fn reported(outcome: Result<User, String>) -> String {
    match outcome {
        Ok(user) => format!("{} in {}", user.name, user.groups.join(",")),
        Err(_) => "refused".to_owned(),
    }
}

async fn everything(
    client_ca: &Authority,
    proxy_ca: &Authority,
    stop: &CancellationToken,
) -> Authenticator {
    let identities = CredentialSources {
        front_proxies: Some(Scripted::holding(proxies(proxy_ca))),
        clients: Some(Scripted::holding(clients(client_ca))),
        tokens: Some(Box::new(CountingReviewer::default())),
    };
    Authenticator::new(identities, TTL, clock(), stop)
        .await
        .unwrap()
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table, one row per case")]
async fn everyone_is_known_by_the_best_proof_they_show() {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let [client_ca, proxy_ca, untrusted_ca] =
        ["clients", "proxies", "untrusted"].map(Authority::new);
    let authenticator = everything(&client_ca, &proxy_ca, &stop).await;
    let admin = client_ca.client("admin", Some("system:masters"));
    let jane = client_ca.client("jane", None);
    let nameless = client_ca.client("", Some("system:masters"));
    let untrusted = untrusted_ca.client("admin", Some("system:masters"));
    let proxy = proxy_ca.client("front-proxy-client", None);
    let wrong_proxy = proxy_ca.client("unlisted-proxy", None);
    let remote = [("x-remote-user", "eve"), ("x-remote-group", "ops")];
    let bearer = |token| [("authorization", token)];

    let anonymous = "system:anonymous in system:unauthenticated";
    for (case, certificate, headers, expected) in [
        ("nothing", None, headers(&[]), anonymous),
        (
            "a good token",
            None,
            headers(&bearer("Bearer good")),
            "sa in system:serviceaccounts,system:authenticated",
        ),
        (
            "a scheme in capitals",
            None,
            headers(&bearer("BEARER good")),
            "sa in system:serviceaccounts,system:authenticated",
        ),
        (
            "a bad token",
            None,
            headers(&bearer("Bearer bad")),
            "refused",
        ),
        (
            "a token whose review fails",
            None,
            headers(&bearer("Bearer broken")),
            "refused",
        ),
        (
            "an empty token",
            None,
            headers(&bearer("Bearer ")),
            anonymous,
        ),
        (
            "another scheme",
            None,
            headers(&bearer("Basic Z29vZA==")),
            anonymous,
        ),
        (
            "an administrator's certificate",
            Some(&admin),
            headers(&[]),
            "admin in system:masters,system:authenticated",
        ),
        (
            "a user's certificate",
            Some(&jane),
            headers(&[]),
            "jane in system:authenticated",
        ),
        (
            "a certificate without a name",
            Some(&nameless),
            headers(&[]),
            "refused",
        ),
        (
            "a certificate of an untrusted CA",
            Some(&untrusted),
            headers(&[]),
            "refused",
        ),
        (
            "an untrusted certificate with a good token",
            Some(&untrusted),
            headers(&bearer("Bearer good")),
            "sa in system:serviceaccounts,system:authenticated",
        ),
        (
            "a certificate before a bad token",
            Some(&jane),
            headers(&bearer("Bearer bad")),
            "jane in system:authenticated",
        ),
        (
            "a proxy's word",
            Some(&proxy),
            headers(&remote),
            "eve in ops,system:authenticated",
        ),
        (
            "a proxy without a word",
            Some(&proxy),
            headers(&[]),
            "refused",
        ),
        (
            "a proxy of another name",
            Some(&wrong_proxy),
            headers(&remote),
            "refused",
        ),
        (
            "headers of a client that is no proxy",
            Some(&jane),
            headers(&remote),
            "jane in system:authenticated",
        ),
        (
            "headers without a certificate",
            None,
            headers(&remote),
            anonymous,
        ),
        (
            "headers with an untrusted certificate",
            Some(&untrusted),
            headers(&remote),
            "refused",
        ),
        (
            "a proxy that sends no user",
            Some(&proxy),
            headers(&[
                ("x-remote-user", "system:anonymous"),
                ("x-remote-group", "system:unauthenticated"),
            ]),
            anonymous,
        ),
    ] {
        let chain: Vec<_> = certificate
            .map(|issued| issued.der.clone())
            .into_iter()
            .collect();
        let outcome = authenticator.authenticate(&chain, &headers).await;
        assert_eq!(reported(outcome), expected, "{case}");
    }
}

#[tokio::test]
async fn a_certificate_without_a_common_name_is_anonymous_but_valid() {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let client_ca = Authority::new("clients");
    let identities = CredentialSources {
        clients: Some(Scripted::holding(clients(&client_ca))),
        ..CredentialSources::default()
    };
    let authenticator = Authenticator::new(identities, TTL, clock(), &stop)
        .await
        .unwrap();
    let nameless = client_ca.client("", Some("system:masters"));
    let outcome = authenticator
        .authenticate(&[nameless.der], &HeaderMap::new())
        .await;
    assert_eq!(outcome, Ok(User::anonymous()));
}

#[tokio::test]
async fn without_sources_every_client_is_anonymous_whatever_it_sends() {
    let stop = CancellationToken::new();
    let authenticator = Authenticator::new(CredentialSources::default(), TTL, clock(), &stop)
        .await
        .unwrap();
    let admin = Authority::new("clients").client("admin", Some("system:masters"));
    let shown = headers(&[("authorization", "Bearer good"), ("x-remote-user", "eve")]);
    let outcome = authenticator.authenticate(&[admin.der], &shown).await;
    assert_eq!(outcome, Ok(User::anonymous()));
}

#[tokio::test]
async fn a_proxy_tells_uid_groups_and_extras() {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let proxy_ca = Authority::new("proxies");
    let authenticator = everything(&Authority::new("clients"), &proxy_ca, &stop).await;
    let proxy = proxy_ca.client("front-proxy-client", None);
    let shown = headers(&[
        ("x-other-user", "ignored, the first header wins"),
        ("x-remote-user", "eve"),
        ("x-remote-uid", "42"),
        ("x-remote-group", "ops"),
        ("x-remote-group", ""),
        ("x-remote-group", "system:authenticated"),
        ("x-remote-extra-scopes", "a"),
        ("x-remote-extra-scopes", "b"),
        ("x-remote-extra-example.com%2fpath", "c"),
        ("x-remote-extra-%ff", "d"),
    ]);
    let user = authenticator
        .authenticate(&[proxy.der], &shown)
        .await
        .unwrap();
    assert_eq!(user.name, "eve");
    assert_eq!(user.uid, "42");
    assert_eq!(user.groups, ["ops", "system:authenticated"]);
    let extra = |key: &str| user.extra.get(key).cloned().unwrap_or_default();
    assert_eq!(extra("scopes"), ["a", "b"]);
    assert_eq!(extra("example.com/path"), ["c"]);
    assert_eq!(extra("%ff"), ["d"]);
}

#[tokio::test]
async fn a_certificate_gives_the_uid_and_its_fingerprint() {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let client_ca = Authority::new("clients");
    let authenticator = everything(&client_ca, &Authority::new("proxies"), &stop).await;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "jane");
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    params.distinguished_name.push(uid, "42");
    let jane = client_ca.sign(params);
    let user = authenticator
        .authenticate(std::slice::from_ref(&jane.der), &HeaderMap::new())
        .await
        .unwrap();
    assert_eq!((&*user.name, &*user.uid), ("jane", "42"));
    let fingerprint = &user.extra["authentication.kubernetes.io/credential-id"][0];
    let hex = fingerprint.strip_prefix("X509SHA256=").unwrap();
    assert_eq!(hex.len(), 64);
    assert!(hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hex}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_about_a_token_is_kept_for_a_while_but_a_failure_is_not() {
    let stop = CancellationToken::new();
    let book = CountingReviewer::default();
    let asked = Arc::clone(&book.asked);
    let identities = CredentialSources {
        tokens: Some(Box::new(book)),
        ..CredentialSources::default()
    };
    let authenticator = Authenticator::new(identities, TTL, clock(), &stop)
        .await
        .unwrap();
    let show = async |token: &str| {
        let shown = headers(&[("authorization", &format!("Bearer {token}"))]);
        let outcome = authenticator.authenticate(&[], &shown).await;
        (outcome.is_ok(), asked.load(Ordering::Relaxed))
    };
    assert_eq!(show("good").await, (true, 1));
    assert_eq!(show("good").await, (true, 1), "kept");
    assert_eq!(show("bad").await, (false, 2));
    assert_eq!(show("bad").await, (false, 2), "kept too");
    assert_eq!(show("broken").await, (false, 3));
    assert_eq!(show("broken").await, (false, 4), "asked again");
    tokio::time::advance(TTL).await;
    assert_eq!(show("good").await, (true, 5), "asked again");
    assert_eq!(
        show(&"x".repeat(100_000)).await,
        (false, 5),
        "not worth a question"
    );
}
