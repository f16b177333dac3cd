//! Who may read what, without an API server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Allows jane to get `/metrics`, fails for `/broken`, and counts.
#[derive(Default)]
struct Rules {
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl AccessReviewer for Rules {
    async fn review(&self, access: &AccessRequest) -> Result<AccessDecision, ReviewError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let AccessRequest { user, verb, path } = access;
        match (user.name.as_str(), verb.as_str(), path.as_str()) {
            (_, _, "/broken") => Err(ReviewError::Late {
                kind: "SubjectAccessReview",
            }),
            ("jane", "get", path) => Ok(AccessDecision {
                allowed: path.starts_with("/metrics"),
                reason: "RBAC".to_owned(),
            }),
            _ => Ok(AccessDecision {
                allowed: false,
                reason: String::new(),
            }),
        }
    }
}

fn options(always_allow_paths: &[&str]) -> AuthorizationOptions {
    AuthorizationOptions {
        kubeconfig: None,
        always_allow_paths: always_allow_paths.iter().map(ToString::to_string).collect(),
        authorized_ttl: Duration::from_secs(10),
        unauthorized_ttl: Duration::from_secs(5),
    }
}

fn access(name: &str, group: &str, verb: &str, path: &str) -> AccessRequest {
    AccessRequest {
        user: User {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            ..User::default()
        },
        verb: verb.to_owned(),
        path: path.to_owned(),
    }
}

async fn decision(authorizer: &Authorizer, access: AccessRequest) -> &'static str {
    match authorizer.decide(access).await {
        Ok(answer) if answer.allowed => "yes",
        Ok(_) => "no",
        Err(_) => "review failed",
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table, one row per case")]
async fn administrators_open_paths_and_the_reviewer_decide_in_this_order() {
    const OPEN: &[&str] = &["/healthz", "/livez", "/readyz"];
    for (case, open, with_reviewer, access, expected) in [
        (
            "an open path",
            OPEN,
            true,
            access("eve", "", "get", "/healthz"),
            "yes",
        ),
        (
            "open with any verb",
            OPEN,
            true,
            access("eve", "", "post", "/healthz"),
            "yes",
        ),
        (
            "below an open path",
            OPEN,
            true,
            access("eve", "", "get", "/healthz/x"),
            "no",
        ),
        (
            "nothing is open",
            &[],
            true,
            access("eve", "", "get", "/healthz"),
            "no",
        ),
        (
            "a permission",
            OPEN,
            true,
            access("jane", "", "get", "/metrics"),
            "yes",
        ),
        (
            "for another verb",
            OPEN,
            true,
            access("jane", "", "put", "/metrics"),
            "no",
        ),
        (
            "for another user",
            OPEN,
            true,
            access("eve", "", "get", "/metrics"),
            "no",
        ),
        (
            "the reviewer fails",
            OPEN,
            true,
            access("jane", "", "get", "/broken"),
            "review failed",
        ),
        (
            "for an administrator it is not asked",
            OPEN,
            true,
            access("root", MASTERS, "put", "/broken"),
            "yes",
        ),
        (
            "no reviewer",
            OPEN,
            false,
            access("jane", "", "get", "/metrics"),
            "no",
        ),
        (
            "an always-allowed path without a reviewer",
            OPEN,
            false,
            access("jane", "", "get", "/livez"),
            "yes",
        ),
        (
            "an administrator without a reviewer",
            OPEN,
            false,
            access("root", MASTERS, "get", "/metrics"),
            "yes",
        ),
        (
            "an opened path of the reviewer's",
            &["/metrics"],
            true,
            access("eve", "", "get", "/metrics"),
            "yes",
        ),
    ] {
        let reviewer = with_reviewer.then(|| Box::new(Rules::default()) as Box<_>);
        let authorizer = Authorizer::new(&options(open), reviewer).unwrap();
        assert_eq!(decision(&authorizer, access).await, expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_and_a_no_are_kept_for_their_own_time_and_failures_never() {
    let rules = Rules::default();
    let asked = Arc::clone(&rules.asked);
    let authorizer = Authorizer::new(&options(&[]), Some(Box::new(rules))).unwrap();
    let ask_to = async |name: &str, verb: &str, path: &str| {
        decision(&authorizer, access(name, "", verb, path)).await;
        asked.load(Ordering::Relaxed)
    };
    let ask = async |name: &str, path: &str| ask_to(name, "get", path).await;
    assert_eq!(ask("jane", "/metrics").await, 1);
    assert_eq!(ask("eve", "/metrics").await, 2);
    assert_eq!(ask("jane", "/metrics").await, 2, "a yes is kept");
    assert_eq!(ask("eve", "/metrics").await, 2, "a no is kept");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(ask("jane", "/metrics").await, 2, "a yes is kept for longer");
    assert_eq!(ask("eve", "/metrics").await, 3);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(ask("jane", "/metrics").await, 4);
    assert_eq!(ask("jane", "/broken").await, 5);
    assert_eq!(ask("jane", "/broken").await, 6, "a failure is not kept");
    let long = format!("/{}", "x".repeat(MAX_CACHED_REQUEST_BYTES));
    assert_eq!(ask("jane", &long).await, 7);
    assert_eq!(ask("jane", &long).await, 8, "a long question is not kept");
    assert_eq!(ask_to("eve", &long, "/").await, 9);
    assert_eq!(ask_to("eve", &long, "/").await, 10, "nor is a long method");
}
