//! Every endpoint, and access control in front of them, without a socket.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use cloudkeel_api::Secret;
use http::header::{ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use http::{Method, Request, StatusCode, Version};
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::*;
use crate::health::Scope;
use crate::options::AuthorizationOptions;
use crate::serving::access_control::AccessControl;
use crate::serving::authentication::{Authenticator, CredentialSources, TokenReviewer};
use crate::serving::authorization::{AccessDecision, AccessRequest, AccessReviewer, Authorizer};
use crate::serving::connection::Peer;
use crate::serving::review_client::ReviewError;
use crate::serving::testing::clock;
use crate::serving::user::User;

#[derive(Default)]
struct Level(Mutex<Option<u32>>);

impl LogLevel for Level {
    fn set_verbosity(&self, verbosity: u32) -> Result<(), String> {
        if verbosity > 10 {
            return Err("10 is the most".to_owned());
        }
        *self.0.lock().unwrap() = Some(verbosity);
        Ok(())
    }
}

fn endpoints(debug: Option<Arc<dyn LogLevel>>) -> Router {
    let build = BuildInfo::of_version("1.2.3");
    let health = Health::new(Timestamp::UNIX_EPOCH);
    health.register("caches", Scope::Readiness, || Err("not synced".to_owned()));
    health.register("leaderElection", Scope::Liveness, || Ok(()));
    Endpoints {
        health: Arc::new(health),
        metrics: Metrics::new(&build, Timestamp::UNIX_EPOCH),
        configz: json!({"kind": "CloudControllerManagerConfiguration"}),
        build,
        debug,
        page: None,
    }
    .router()
}

struct Empty;

#[async_trait]
impl Source for Empty {
    async fn data(&self) -> cloudkeel_page::PageData {
        cloudkeel_page::PageData::default()
    }
}

#[tokio::test]
async fn the_page_is_served_where_it_is_asked_for_and_only_shows() {
    let build = BuildInfo::of_version("1.2.3");
    let shown = Endpoints {
        health: Arc::new(Health::new(Timestamp::UNIX_EPOCH)),
        metrics: Metrics::new(&build, Timestamp::UNIX_EPOCH),
        configz: json!({}),
        build,
        debug: None,
        page: Some(Arc::new(Empty)),
    };
    let (shown, hidden) = (shown.router(), endpoints(None));
    for (router, method, path, status) in [
        (&shown, Method::GET, "/page/", 200),
        (&shown, Method::GET, "/page/page.js", 200),
        (&shown, Method::GET, "/page/picture", 200),
        (&shown, Method::GET, "/page", 308),
        (&shown, Method::POST, "/page/press", 404),
        (&hidden, Method::GET, "/page/", 404),
        (&hidden, Method::GET, "/page/picture", 404),
    ] {
        let (got, ..) = ask(router, request(method.clone(), path)).await;
        assert_eq!(got, status, "{method} {path}");
    }
}

fn request(method: Method, path: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    request.body(Body::empty()).unwrap()
}

async fn ask(router: &Router, request: Request<Body>) -> (StatusCode, http::HeaderMap, String) {
    let response = router.clone().call(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (
        parts.status,
        parts.headers,
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

#[tokio::test]
async fn every_endpoint_answers_its_methods_and_no_others() {
    let open = endpoints(Some(Arc::new(Level::default())));
    let closed = endpoints(None);
    let (get, head, post, delete) = (Method::GET, Method::HEAD, Method::POST, Method::DELETE);
    for (router, method, path, status) in [
        (&open, &get, "/healthz", 200),
        (&open, &head, "/healthz", 200),
        (&open, &post, "/healthz", 405),
        (&open, &get, "/healthz/leaderElection", 200),
        (&open, &get, "/healthz/nothing", 404),
        (&open, &get, "/healthz/caches", 404),
        (&open, &get, "/livez", 200),
        (&open, &get, "/livez/leaderElection", 200),
        (&open, &get, "/readyz", 500),
        (&open, &get, "/readyz?exclude=caches", 200),
        (&open, &get, "/readyz/caches", 500),
        (&open, &get, "/metrics", 200),
        (&open, &post, "/metrics", 405),
        (&open, &get, "/metrics/slis", 200),
        (&open, &delete, "/metrics/slis", 200),
        (&open, &get, "/configz", 200),
        (&open, &post, "/configz", 405),
        (&open, &get, "/version", 200),
        (&open, &get, "/debug/flags/v", 406),
        (&open, &get, "/debug/flags", 200),
        (&open, &get, "/debug/pprof/", 501),
        (&open, &get, "/debug/pprof/profile", 501),
        (&open, &get, "/debug/pprof/heap?seconds=3", 501),
        (&closed, &get, "/debug/flags/v", 404),
        (&closed, &get, "/debug/pprof/profile", 404),
        (&open, &get, "/", 404),
        (&open, &get, "/healthz/", 404),
        (&open, &get, "/healthz/../metrics", 404),
        (&open, &get, "/%6Detrics", 404),
        (&open, &get, "/apis", 404),
    ] {
        let (seen, headers, _) = ask(router, request(method.clone(), path)).await;
        assert_eq!(seen.as_u16(), status, "{method} {path}");
        assert_eq!(
            headers.contains_key(ALLOW),
            status == 405,
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn health_is_shown_briefly_or_check_by_check() {
    let router = endpoints(None);
    for (path, body) in [
        ("/healthz", "ok"),
        (
            "/healthz?verbose",
            "[+]leaderElection ok\nhealthz check passed\n",
        ),
        (
            "/livez?verbose=true&exclude=leaderElection",
            "[+]leaderElection excluded: ok\nlivez check passed\n",
        ),
        (
            "/healthz?exclude=a&verbose&exclude=b",
            "[+]leaderElection ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nhealthz check passed\n",
        ),
        (
            "/readyz",
            "[-]caches failed: reason withheld\nreadyz check failed\n",
        ),
        ("/readyz/caches", "internal server error: not synced\n"),
        ("/livez/leaderElection", "ok"),
    ] {
        let (_, headers, seen) = ask(&router, request(Method::GET, path)).await;
        assert_eq!(seen, body, "{path}");
        assert_eq!(headers[CONTENT_TYPE], "text/plain; charset=utf-8", "{path}");
    }
}

#[tokio::test]
async fn metrics_come_in_the_format_that_is_asked_for() {
    let router = endpoints(None);
    for path in ["/metrics", "/metrics/slis"] {
        let (_, headers, body) = ask(&router, request(Method::GET, path)).await;
        assert_eq!(
            headers[CONTENT_TYPE],
            "text/plain; version=0.0.4; charset=utf-8"
        );
        assert!(
            body.contains("# TYPE process_start_time_seconds gauge\n"),
            "{body}"
        );
        assert!(!body.contains("# EOF"), "{body}");

        let mut open_metrics = request(Method::GET, path);
        let accept = "application/openmetrics-text; version=1.0.0"
            .parse()
            .unwrap();
        open_metrics.headers_mut().insert(ACCEPT, accept);
        let (_, headers, body) = ask(&router, open_metrics).await;
        let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert_eq!(headers[CONTENT_TYPE], content_type);
        assert!(body.ends_with("# EOF\n"), "{body}");
    }
}

#[tokio::test]
async fn slis_follow_the_probes_and_can_be_reset() {
    let router = endpoints(None);
    ask(&router, request(Method::GET, "/readyz")).await;
    let line = r#"kubernetes_healthchecks_total{name="caches",type="readyz",status="error"} 1"#;
    let (_, _, body) = ask(&router, request(Method::GET, "/metrics/slis")).await;
    assert!(body.contains(line), "{body}");
    let (_, _, answer) = ask(&router, request(Method::DELETE, "/metrics/slis")).await;
    assert_eq!(answer, "metrics reset\n");
    let (_, _, body) = ask(&router, request(Method::GET, "/metrics/slis")).await;
    assert!(!body.contains(line), "{body}");
}

#[tokio::test]
async fn configuration_and_version_are_json() {
    let router = endpoints(None);
    let (_, headers, body) = ask(&router, request(Method::GET, "/configz")).await;
    assert_eq!(headers[CONTENT_TYPE], "application/json");
    let expected = r#"{"cloudcontrollermanager.config.k8s.io":{"kind":"CloudControllerManagerConfiguration"}}"#;
    assert_eq!(body, expected);
    let (_, _, body) = ask(&router, request(Method::GET, "/version")).await;
    let version: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(version["gitVersion"], "v1.2.3");
}

#[tokio::test]
async fn verbosity_is_set_by_put_alone() {
    let level = Arc::new(Level::default());
    let router = endpoints(Some(Arc::clone(&level) as _));
    for (method, body, status, answer) in [
        (
            Method::PUT,
            "4",
            200,
            "successfully set klog.logging.verbosity to 4\n",
        ),
        (
            Method::PUT,
            " 7\n",
            200,
            "successfully set klog.logging.verbosity to 7\n",
        ),
        (
            Method::PUT,
            "11",
            400,
            "failed set klog.logging.verbosity \"11\": 10 is the most\n",
        ),
        (
            Method::PUT,
            "lots",
            400,
            "failed set klog.logging.verbosity \"lots\": it must be a whole number\n",
        ),
        (Method::POST, "2", 406, "unsupported http method\n"),
    ] {
        let mut put = request(method, "/debug/flags/v");
        *put.body_mut() = Body::from(body);
        let (seen, _, text) = ask(&router, put).await;
        assert_eq!((seen.as_u16(), text.as_str()), (status, answer), "{body}");
    }
    assert_eq!(*level.0.lock().unwrap(), Some(7));
    let mut huge = request(Method::PUT, "/debug/flags/v");
    *huge.body_mut() = Body::from(vec![b' '; 1000]);
    assert_eq!(ask(&router, huge).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

/// Knows one token, lets its user get `/metrics`, and fails for `/configz`.
struct Cluster;

#[async_trait]
impl TokenReviewer for Cluster {
    async fn review(&self, token: &Secret) -> Result<Option<User>, ReviewError> {
        Ok((token.expose() == "good").then(|| User {
            name: "prometheus".to_owned(),
            ..User::default()
        }))
    }
}

#[async_trait]
impl AccessReviewer for Cluster {
    async fn review(&self, access: &AccessRequest) -> Result<AccessDecision, ReviewError> {
        match access.path.as_str() {
            "/configz" => Err(ReviewError::Failed {
                kind: "SubjectAccessReview",
                reason: "https://10.0.0.1:6443 refused".to_owned(),
            }),
            path => Ok(AccessDecision {
                allowed: path == "/metrics" && access.user.name == "prometheus",
                reason: if path == "/version" {
                    "a <b> policy".to_owned()
                } else {
                    String::new()
                },
            }),
        }
    }
}

async fn guarded() -> Router {
    let identities = CredentialSources {
        tokens: Some(Box::new(Cluster)),
        ..CredentialSources::default()
    };
    let ttl = Duration::from_secs(10);
    let stop = CancellationToken::new();
    let authenticator = Authenticator::new(identities, ttl, clock(), &stop);
    let options = AuthorizationOptions {
        kubeconfig: None,
        always_allow_paths: vec!["/healthz".to_owned()],
        authorized_ttl: ttl,
        unauthorized_ttl: ttl,
    };
    let authorizer = Authorizer::new(&options, Some(Box::new(Cluster))).unwrap();
    AccessControl::new(authenticator.await.unwrap(), authorizer).protect(endpoints(None))
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table, one row per case")]
async fn the_gate_answers_in_the_words_of_kubernetes() {
    let router = guarded().await;
    let status = |code: u16, reason: &str, message: &str| {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": {}, "code": code,
        })
        .to_string()
    };
    let forbidden = |path: &str| {
        status(
            403,
            "Forbidden",
            &format!("forbidden: User \"system:anonymous\" cannot get path \"{path}\""),
        )
    };
    let review_failed = "Internal Server Error: \"/configz\": the access review failed\n";
    for (case, token, path, code, body) in [
        (
            "always allowed",
            None,
            "/healthz",
            200,
            Some("ok".to_owned()),
        ),
        (
            "not allowed anonymously",
            None,
            "/metrics",
            403,
            Some(forbidden("/metrics")),
        ),
        (
            "what is not there is closed too",
            None,
            "/nothing",
            403,
            Some(forbidden("/nothing")),
        ),
        (
            "a decoded path",
            None,
            "/%6detrics",
            403,
            Some(forbidden("/metrics")),
        ),
        (
            "a reason is shown, but never as HTML",
            None,
            "/version",
            403,
            Some(status(
                403,
                "Forbidden",
                "forbidden: User \"system:anonymous\" cannot get path \"/version\": a &lt;b&gt; policy",
            )),
        ),
        (
            "the review fails",
            None,
            "/configz",
            500,
            Some(review_failed.to_owned()),
        ),
        ("a good token", Some("good"), "/metrics", 200, None),
        (
            "a bad token",
            Some("bad"),
            "/healthz",
            401,
            Some(status(401, "Unauthorized", "Unauthorized")),
        ),
    ] {
        let mut request = request(Method::GET, path);
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let (seen, headers, text) = ask(&router, request).await;
        assert_eq!(seen.as_u16(), code, "{case}");
        assert_eq!(headers[CACHE_CONTROL], "no-cache, private", "{case}");
        if let Some(body) = body {
            let parse = |text: &str| serde_json::from_str(text).unwrap_or(json!(text));
            let (text, body): (Value, Value) = (parse(&text), parse(&body));
            assert_eq!(text, body, "{case}");
        }
    }
}

#[tokio::test]
async fn an_anonymous_http2_client_gets_one_request_per_connection() {
    let router = guarded().await;
    for (case, version, token, hangs_up) in [
        ("anonymous on HTTP/1", Version::HTTP_11, None, false),
        ("anonymous on HTTP/2", Version::HTTP_2, None, true),
        ("a refused token", Version::HTTP_2, Some("bad"), true),
        ("a known user", Version::HTTP_2, Some("good"), false),
    ] {
        let peer = Peer::default();
        let mut request = request(Method::GET, "/healthz");
        *request.version_mut() = version;
        request.extensions_mut().insert(peer.clone());
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        ask(&router, request).await;
        assert_eq!(peer.close.is_cancelled(), hangs_up, "{case}");
    }
}
