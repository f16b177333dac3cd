//! What the API server sends: objects, lists, watches, leases, reviews; and who comes to our port.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cloudkeel_api::Secret;
use cloudkeel_controllers::node::addresses::choose;
use cloudkeel_controllers::runtime::watch_nodes;
use cloudkeel_controllers::view::{NodeView, SlimNode, View as _};
use cloudkeel_manager::election::{ElectionConfig, KubeLease, LeaseStore as _};
use cloudkeel_manager::serving::{
    AccessRequest, AccessReviewer, FrontProxy, ReviewClient, TokenReviewer, User,
    read_untrusted_identity,
};
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::client::Body;
use kube::runtime::watcher;
use serde_json::Value;
use tower_service::Service;

use super::message::Message;
use super::{bytes, owned, paused};
use crate::target::{Check, Reader, Target};

const NODE: &str = r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u",
"resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"},
"annotations": {"alpha.kubernetes.io/provided-node-ip": "10.0.0.1,fd00::1"}, "managedFields": [{"manager": "k"}]},
"spec": {"providerID": "hcloud://1", "podCIDRs": ["10.244.0.0/24"],
"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}]},
"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n"}],
"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
{"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}],
"nodeInfo": {"architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
"kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "",
"systemUUID": "4c4c4544"}, "images": [{"names": ["x"]}]}}"#;

const LEASE: &str = r#"200

{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "kube-system",
"resourceVersion": "3"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15,
"acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 2}}"#;

const REVIEWS: &[&str] = &[
    "201\n\n{\"apiVersion\": \"authentication.k8s.io/v1\", \"kind\": \"TokenReview\", \"status\": \
     {\"authenticated\": true, \"user\": {\"username\": \"jane\", \"uid\": \"1\", \"groups\": [\"a\"], \
     \"extra\": {\"k\": [\"v\"]}}, \"audiences\": [\"x\"]}}",
    "201\n\n{\"apiVersion\": \"authentication.k8s.io/v1\", \"kind\": \"TokenReview\", \"spec\": {}, \"status\": \
     {\"authenticated\": false, \"error\": \"no\"}}",
    "201\n\n{\"apiVersion\": \"authorization.k8s.io/v1\", \"kind\": \"SubjectAccessReview\", \"spec\": {}, \
     \"status\": {\"allowed\": true, \"denied\": false, \"reason\": \"RBAC\"}}",
    "500\n\n{\"kind\": \"Status\", \"status\": \"Failure\", \"message\": \"no\", \"code\": 500}",
];

pub(super) const TARGETS: &[Target] = &[
    Target::new(
        "node",
        "Nodes as kubelets and others leave them, decoded whole and in part",
        || bytes(&[NODE]),
        node_words,
        || Box::new(read_node),
    ),
    Target::new(
        "watch",
        "lists and watch events of Nodes",
        watches,
        node_words,
        watch,
    )
    .share(20),
    Target::new(
        "lease",
        "the Lease of the election",
        || {
            bytes(&[
                LEASE,
                "404\n\n{\"kind\": \"Status\", \"code\": 404, \"reason\": \"NotFound\"}",
            ])
        },
        || owned(&["holderIdentity", "renewTime", "2026-01-01T00:00:00Z"]),
        lease,
    )
    .share(40),
    Target::new(
        "reviews",
        "TokenReview and SubjectAccessReview",
        || bytes(REVIEWS),
        || {
            owned(&[
                "authenticated",
                "allowed",
                "denied",
                "user",
                "groups",
                "true",
            ])
        },
        reviews,
    )
    .share(40),
    Target::new(
        "strangers",
        "certificates and request headers of clients",
        certificates,
        || {
            owned(&[
                "X-Remote-User: ",
                "X-Remote-Group: ",
                "X-Remote-Extra-a%2Fb: ",
                "%zz",
            ])
        },
        || Box::new(read_stranger),
    ),
];

fn node_words() -> Vec<String> {
    owned(&[
        "InternalIP",
        "ExternalIP",
        "Hostname",
        "providerID",
        "podCIDRs",
        "10.0.0.0/33",
        "fd00::1,10.0.0.1",
        "alpha.kubernetes.io/provided-node-ip",
        "NetworkUnavailable",
        "BOOKMARK",
        "ERROR",
        "DELETED",
    ])
}

/// Decoded in part, a Node says the same as decoded whole.
fn read_node(input: &[u8]) -> Check {
    let slim = serde_json::from_slice::<SlimNode>(input);
    let whole = serde_json::from_slice::<Node>(input);
    let slim = slim.ok().map(|slim| NodeView {
        original: None,
        ..NodeView::of(&slim)
    });
    let whole = whole.ok().map(|whole| NodeView::from(&whole));
    for view in slim.iter().chain(&whole) {
        let _ = choose(&view.facts.addresses, &view.facts);
        let _ = view.version();
    }
    match (slim, whole) {
        (Some(slim), Some(whole)) if slim != whole => {
            Err(format!("in part and whole differ: {slim:?} {whole:?}"))
        }
        _ => Ok(()),
    }
}

/// An API server that gives every request the same answer.
#[derive(Clone)]
struct FixedAnswer(Response<Bytes>);

impl Service<Request<Body>> for FixedAnswer {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<Body>) -> Self::Future {
        ready(Ok(self.0.clone().map(Full::new)))
    }
}

/// Within a runtime: a client of an API server that says this.
fn client(input: &[u8]) -> Client {
    Client::new(FixedAnswer(Message::read(input).answer()), "default")
}

fn watches() -> Vec<Vec<u8>> {
    let node = NODE.replace('\n', " ");
    let list = format!(
        "200\n\n{{\"apiVersion\": \"v1\", \"kind\": \"NodeList\", \"metadata\": {{\"resourceVersion\": \"9\", \
         \"continue\": \"\"}}, \"items\": [{node}]}}"
    );
    let event = |kind: &str| format!("{{\"type\": \"{kind}\", \"object\": {node}}}\n");
    let events = format!(
        "200\n\n{}{}{}",
        event("ADDED"),
        event("MODIFIED"),
        event("DELETED")
    );
    let error = "200\n\n{\"type\": \"ERROR\", \"object\": {\"kind\": \"Status\", \"code\": 410}}\n"
        .to_owned();
    [list, events, error].map(String::into_bytes).to_vec()
}

pub(super) fn watch() -> Reader {
    const MOST_EVENTS: usize = 30;
    let runtime = paused();
    Box::new(move |input| {
        runtime.block_on(async {
            let events =
                watch_nodes(client(input), watcher::Config::default(), 0).take(MOST_EVENTS);
            let events = events.for_each(|event| {
                drop(event);
                ready(())
            });
            // A stream may be silent, as a watch without news is.
            let _ = tokio::time::timeout(Duration::from_hours(1), events).await;
        });
        Ok(())
    })
}

fn lease() -> Reader {
    let runtime = paused();
    Box::new(move |input| {
        runtime.block_on(async {
            let config = ElectionConfig::new("kube-system", "l", "me");
            let store = KubeLease::new(client(input), &config);
            match store.get().await {
                Ok(Some(lease)) => drop(format!("{lease:?}")),
                Ok(None) => {}
                Err(error) => drop(error.to_string()),
            }
        });
        Ok(())
    })
}

/// Only a plain yes is a yes.
fn reviews() -> Reader {
    let runtime = paused();
    Box::new(move |input| {
        let (user, allowed) = runtime.block_on(async {
            let reviews = ReviewClient::new(client(input));
            let user = TokenReviewer::review(&reviews, &Secret::new("t")).await;
            let question = AccessRequest {
                user: User::default(),
                verb: "get".to_owned(),
                path: "/metrics".to_owned(),
            };
            let answer = AccessReviewer::review(&reviews, &question).await;
            (
                user.ok().flatten(),
                answer.is_ok_and(|answer| answer.allowed),
            )
        });
        let answer = Message::read(input).answer();
        let said = serde_json::from_slice(answer.body()).unwrap_or(Value::Null);
        let yes = |field: &str| {
            let field = said.pointer(&format!("/status/{field}"));
            // The Kubernetes client takes whatever is no error for an answer; so does this.
            let status = answer.status();
            let refused = status.is_client_error() || status.is_server_error();
            !refused && field == Some(&Value::Bool(true))
        };
        if user.is_some() && !yes("authenticated") {
            return Err(format!("accepted: {user:?}"));
        }
        if allowed && !yes("allowed") {
            return Err("admitted without a permission".to_owned());
        }
        Ok(())
    })
}

fn certificates() -> Vec<Vec<u8>> {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    let name = &mut params.distinguished_name;
    name.push(rcgen::DnType::CommonName, "jane");
    name.push(rcgen::DnType::OrganizationName, "system:masters");
    let certificate = params.self_signed(&key).expect("a certificate");
    let headers = b"x\nX-Remote-User: jane\nX-Remote-Group: a\nX-Remote-Extra-a%2Fb: c\n\n";
    vec![[headers, certificate.der().as_ref()].concat()]
}

fn read_stranger(input: &[u8]) -> Check {
    let proxy = FrontProxy {
        allowed_names: Vec::new(),
        username_headers: owned(&["X-Remote-User"]),
        uid_headers: owned(&["X-Remote-Uid"]),
        group_headers: owned(&["X-Remote-Group"]),
        extra_prefixes: owned(&["X-Remote-Extra-"]),
    };
    let message = Message::read(input);
    let (shown, reported) = read_untrusted_identity(&message.body, &proxy, &message.headers);
    match [shown, reported]
        .into_iter()
        .flatten()
        .find(|user| user.name.is_empty())
    {
        Some(nameless) => Err(format!("an identity without a name: {nameless:?}")),
        None => Ok(()),
    }
}
