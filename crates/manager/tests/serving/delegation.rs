//! Who may read what, as a real API server says.

use std::path::PathBuf;
use std::time::Duration;

use cloudkeel_manager::options::{AuthenticationOptions, AuthorizationOptions};
use cloudkeel_testkit::cluster::{eventually, unique_name};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::server::{Authority, Running, authentication_options, authorization_options};

const DEADLINE: Duration = Duration::from_mins(1);

async fn create<K>(api: Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + std::fmt::Debug + Serialize,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Binds a role that every cluster has to a user.
async fn delegate_to(admin: &Client, user: &str) {
    let subjects = json!([{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]);
    let role = |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let cluster: Api<ClusterRoleBinding> = Api::all(admin.clone());
    create(
        cluster,
        json!({
            "metadata": {"name": user},
            "roleRef": role("ClusterRole", "system:auth-delegator"),
            "subjects": subjects,
        }),
    )
    .await;
    let namespaced: Api<RoleBinding> = Api::namespaced(admin.clone(), "kube-system");
    create(
        namespaced,
        json!({
            "metadata": {"name": user},
            "roleRef": role("Role", "extension-apiserver-authentication-reader"),
            "subjects": subjects,
        }),
    )
    .await;
}

/// Lets a user get `/metrics`, and waits until the API server knows.
async fn allow_metrics(admin: &Client, subject: Value, known_as: &str) {
    let name = unique_name("metrics-reader");
    create(
        Api::<ClusterRole>::all(admin.clone()),
        json!({
            "metadata": {"name": name},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        }),
    )
    .await;
    create(Api::<ClusterRoleBinding>::all(admin.clone()), json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [subject],
    }))
    .await;
    let question: SubjectAccessReview = serde_json::from_value(json!({
        "spec": {"user": known_as, "nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
    }))
    .unwrap();
    wait_until_allowed(admin, question).await;
}

async fn wait_until_allowed(admin: &Client, question: SubjectAccessReview) {
    let reviews: Api<SubjectAccessReview> = Api::all(admin.clone());
    eventually("the permission is known", DEADLINE, async || {
        let answer = reviews.create(&PostParams::default(), &question).await;
        answer.map(|review| review.status.is_some_and(|status| status.allowed))
    })
    .await;
}

/// The identity of a manager with exactly the rights that upstream's charts give it for delegation.
async fn manager(plane: &ControlPlane) -> Client {
    let admin = plane.client();
    let user = unique_name("manager");
    delegate_to(&admin, &user).await;
    for (group, resource, verb, name) in [
        ("authentication.k8s.io", "tokenreviews", "create", None),
        (
            "authorization.k8s.io",
            "subjectaccessreviews",
            "create",
            None,
        ),
        (
            "",
            "configmaps",
            "get",
            Some("extension-apiserver-authentication"),
        ),
    ] {
        let question = serde_json::from_value(json!({
            "spec": {"user": user, "resourceAttributes": {
                "group": group, "resource": resource, "verb": verb, "namespace": "kube-system", "name": name,
            }},
        }))
        .unwrap();
        wait_until_allowed(&admin, question).await;
    }
    plane.client_for(&user, &[])
}

/// A client of an API server that is not there.
fn broken() -> Client {
    Client::try_from(Config::new("https://127.0.0.1:1".parse().unwrap())).unwrap()
}

async fn delegating(plane: &ControlPlane) -> Running {
    let client = manager(plane).await;
    Running::delegating(
        (&authentication_options(), Some(client.clone())),
        (&authorization_options(), Some(client)),
    )
    .await
    .unwrap()
}

/// The certificate files of a user that the cluster's authority signed.
fn certificate_of(plane: &ControlPlane, user: &str, groups: &[&str]) -> (PathBuf, PathBuf) {
    let kubeconfig = std::fs::read(plane.kubeconfig_for(user, groups)).unwrap();
    let kubeconfig: Value = serde_json::from_slice(&kubeconfig).unwrap();
    let file = |key: &str| PathBuf::from(kubeconfig["users"][0]["user"][key].as_str().unwrap());
    (file("client-certificate"), file("client-key"))
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"})
}

/// A service account and its token.
async fn service_account(plane: &ControlPlane) -> (String, String) {
    let name = unique_name("scraper");
    let accounts: Api<ServiceAccount> = Api::namespaced(plane.client(), "default");
    create(accounts, json!({"metadata": {"name": name}})).await;
    let token = plane.service_account_token("default", &name).await.unwrap();
    (name, token)
}

fn forbidden(user: &str) -> String {
    format!("forbidden: User \"{user}\" cannot get path \"/metrics\"")
}

/// The status of `/metrics`, and the message of a refusal.
async fn metrics(caller: Caller) -> (u16, String) {
    let answer = caller.get("/metrics").await;
    let status = answer.status.as_u16();
    let message = match serde_json::from_str::<Value>(&answer.body) {
        Ok(body) => body["message"].as_str().unwrap_or_default().to_owned(),
        Err(_) => String::new(),
    };
    (status, message)
}

#[tokio::test]
async fn anonymous_users_may_probe_but_not_scrape() {
    let plane = ControlPlane::shared().await;
    let running = delegating(plane).await;
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = running.caller().get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.body.as_str()),
            (200, "ok"),
            "{path}"
        );
    }
    let answer = metrics(running.caller()).await;
    assert_eq!(answer, (403, forbidden("system:anonymous")));
    let over_http2 = running.caller().over_http2().get("/healthz").await;
    assert_eq!(over_http2.body, "ok");
    for path in ["/healthz/ping", "/nothing", "/configz", "/metrics/slis"] {
        assert_eq!(running.caller().get(path).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn a_service_account_reads_what_it_was_given() {
    let plane = ControlPlane::shared().await;
    let running = delegating(plane).await;
    let (_, poor_token) = service_account(plane).await;
    let (rich, rich_token) = service_account(plane).await;
    let subject = json!({"kind": "ServiceAccount", "name": rich, "namespace": "default"});
    allow_metrics(
        &plane.client(),
        subject,
        &format!("system:serviceaccount:default:{rich}"),
    )
    .await;

    let answer = running
        .caller()
        .with_token(&rich_token)
        .get("/metrics")
        .await;
    assert_eq!(answer.status, 200);
    assert!(
        answer.body.contains("kubernetes_build_info{"),
        "{}",
        answer.body
    );
    assert_eq!(
        metrics(running.caller().with_token(&poor_token)).await.0,
        403
    );
    let other_path = running
        .caller()
        .with_token(&rich_token)
        .get("/configz")
        .await;
    assert_eq!(other_path.status, 403);

    for token in [
        "nonsense",
        &format!("{}x", &rich_token[..rich_token.len() - 4]),
    ] {
        let answer = running.caller().with_token(token).get("/healthz").await;
        assert_eq!(
            answer.status, 401,
            "a bad token is refused even where anonymous users may read"
        );
        assert!(answer.body.contains("\"Unauthorized\""), "{}", answer.body);
        assert_eq!(answer.headers["content-type"], "application/json");
    }
}

#[tokio::test]
async fn a_client_certificate_authenticates_its_user() {
    let plane = ControlPlane::shared().await;
    let running = delegating(plane).await;
    let (jane, kim) = (unique_name("jane"), unique_name("kim"));
    allow_metrics(&plane.client(), user(&jane), &jane).await;
    let show = |(certificate, key): (PathBuf, PathBuf)| {
        running.caller().with_identity_files(&certificate, &key)
    };
    let admin = show(certificate_of(plane, "root", &["system:masters"]));
    assert_eq!(metrics(admin.clone()).await.0, 200);
    assert_eq!(admin.get("/configz").await.status, 200);
    assert_eq!(admin.get("/nothing").await.status, 404);
    assert_eq!(admin.over_http2().get("/version").await.status, 200);
    assert_eq!(
        metrics(show(certificate_of(plane, &jane, &[]))).await.0,
        200
    );
    assert_eq!(
        metrics(show(certificate_of(plane, &kim, &[]))).await,
        (403, forbidden(&kim))
    );

    let untrusted = Authority::new("untrusted").client(&jane);
    let untrusted = running
        .caller()
        .with_identity(&untrusted.pem, &untrusted.key);
    assert_eq!(untrusted.get("/healthz").await.status, 401);
}

#[tokio::test]
async fn a_front_proxy_is_trusted_by_its_certificate() {
    let plane = ControlPlane::shared().await;
    let running = delegating(plane).await;
    let (jane, kim) = (unique_name("jane"), unique_name("kim"));
    allow_metrics(&plane.client(), user(&jane), &jane).await;
    let keys = plane.run_dir().join("kube-apiserver");
    let proxy = running
        .caller()
        .with_identity_files(&keys.join("front-proxy.crt"), &keys.join("front-proxy.key"));
    let as_proxied_user = |name: &str| proxy.clone().with_header("x-remote-user", name);
    assert_eq!(metrics(as_proxied_user(&jane)).await.0, 200);
    assert_eq!(metrics(as_proxied_user(&kim)).await, (403, forbidden(&kim)));
    let masters = as_proxied_user(&kim).with_header("x-remote-group", "system:masters");
    assert_eq!(metrics(masters).await.0, 200);
    assert_eq!(metrics(proxy.clone()).await.0, 401, "a proxy is no user");

    let (certificate, key) = certificate_of(plane, &kim, &[]);
    let pretender = running.caller().with_identity_files(&certificate, &key);
    let pretender = pretender.with_header("x-remote-user", &jane);
    assert_eq!(metrics(pretender).await, (403, forbidden(&kim)));
    let anonymous = running.caller().with_header("x-remote-user", &jane);
    assert_eq!(
        metrics(anonymous).await,
        (403, forbidden("system:anonymous"))
    );
    let untrusted = Authority::new("untrusted").client("front-proxy-client");
    let untrusted = running
        .caller()
        .with_identity(&untrusted.pem, &untrusted.key);
    assert_eq!(
        metrics(untrusted.with_header("x-remote-user", &jane))
            .await
            .0,
        401
    );
}

#[tokio::test]
async fn a_broken_authorizer_leaves_the_probes_and_breaks_the_rest() {
    let plane = ControlPlane::shared().await;
    let client = manager(plane).await;
    let running = Running::delegating(
        (&authentication_options(), Some(client)),
        (&authorization_options(), Some(broken())),
    )
    .await
    .unwrap();
    assert_eq!(running.caller().get("/healthz").await.status, 200);
    let answer = running.caller().get("/metrics").await;
    assert_eq!(answer.status, 500);
    assert!(
        answer
            .body
            .starts_with("Internal Server Error: \"/metrics\": "),
        "{}",
        answer.body
    );
    assert!(!answer.body.contains("127.0.0.1"), "{}", answer.body);
}

#[tokio::test]
async fn open_paths_can_be_added_and_emptied() {
    let plane = ControlPlane::shared().await;
    let client = manager(plane).await;
    for (case, open, asked, healthz, metrics) in [
        ("nothing allowed, no reviewer", vec![], None, 403, 403),
        (
            "nothing allowed, reviews fail",
            vec![],
            Some(broken()),
            500,
            500,
        ),
        // A role of every cluster shows the probes of all components to every user.
        (
            "nothing open, but asked",
            vec![],
            Some(client.clone()),
            200,
            403,
        ),
        ("metrics open", vec!["/metrics"], Some(broken()), 500, 200),
        (
            "by beginning",
            vec!["/healthz", "/met*"],
            Some(broken()),
            200,
            200,
        ),
    ] {
        let options = AuthorizationOptions {
            always_allow_paths: open.iter().map(ToString::to_string).collect(),
            ..authorization_options()
        };
        let authentication = authentication_options();
        let running =
            Running::delegating((&authentication, Some(client.clone())), (&options, asked)).await;
        let caller = running.as_ref().unwrap().caller();
        assert_eq!(caller.get("/healthz").await.status, healthz, "{case}");
        assert_eq!(caller.get("/metrics").await.status, metrics, "{case}");
    }
}

#[tokio::test]
async fn without_a_cluster_every_user_is_anonymous() {
    let running = Running::delegating(
        (&authentication_options(), None),
        (&authorization_options(), None),
    )
    .await
    .unwrap();
    let caller = running.caller().with_token("whatever");
    assert_eq!(caller.get("/healthz").await.status, 200);
    assert_eq!(metrics(caller).await, (403, forbidden("system:anonymous")));
}

#[tokio::test]
async fn a_manager_that_may_not_read_the_configmap_does_not_start_unless_tolerated() {
    let plane = ControlPlane::shared().await;
    let anonymous = plane.client_for(&unique_name("no-rights"), &[]);
    let start = async |authentication: AuthenticationOptions| {
        let client = Some(anonymous.clone());
        Running::delegating((&authentication, client), (&authorization_options(), None)).await
    };
    let error = start(authentication_options())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("kube-system/extension-apiserver-authentication"),
        "{error}"
    );
    assert!(
        error.contains("--authentication-tolerate-lookup-failure"),
        "{error}"
    );

    for (skip_lookup, tolerate_lookup_failure) in [(true, false), (false, true)] {
        let options = AuthenticationOptions {
            skip_lookup,
            tolerate_lookup_failure,
            ..authentication_options()
        };
        let running = start(options).await.unwrap();
        assert_eq!(running.caller().get("/healthz").await.status, 200);
    }
}

#[tokio::test]
async fn authorities_in_files_need_no_cluster() {
    let plane = ControlPlane::shared().await;
    let directory = tempfile::tempdir().unwrap();
    let ca_file = directory.path().join("ca.crt");
    let authority = Authority::new("files");
    std::fs::write(&ca_file, authority.pem()).unwrap();
    let options = AuthenticationOptions {
        client_ca_file: Some(ca_file.clone()),
        proxy_ca_file: Some(ca_file),
        proxy_allowed_names: vec!["proxy".to_owned()],
        ..authentication_options()
    };
    let running = Running::delegating(
        (&options, None),
        (&authorization_options(), Some(manager(plane).await)),
    )
    .await
    .unwrap();
    let (jane, proxy) = (authority.client("jane"), authority.client("proxy"));
    let jane = running.caller().with_identity(&jane.pem, &jane.key);
    assert_eq!(metrics(jane).await, (403, forbidden("jane")));
    let proxy = running.caller().with_identity(&proxy.pem, &proxy.key);
    let kim = proxy.with_header("x-remote-user", "kim");
    assert_eq!(metrics(kim).await, (403, forbidden("kim")));
}

#[tokio::test]
async fn a_new_ca_in_the_configmap_is_trusted_without_a_restart() {
    let plane = ControlPlane::shared().await;
    let running = delegating(plane).await;
    let authority = Authority::new("the next authority");
    let jane = authority.client("jane");
    let jane = running.caller().with_identity(&jane.pem, &jane.key);
    assert_eq!(jane.get("/healthz").await.status, 401);

    let maps: Api<ConfigMap> = Api::namespaced(plane.client(), "kube-system");
    let name = "extension-apiserver-authentication";
    let present = maps.get(name).await.unwrap().data.unwrap()["client-ca-file"].clone();
    let bundle = json!({"data": {"client-ca-file": format!("{present}{}", authority.pem())}});
    maps.patch(name, &PatchParams::default(), &Patch::Merge(bundle))
        .await
        .unwrap();
    eventually("the new CA is trusted", DEADLINE, async || {
        metrics(jane.clone()).await == (403, forbidden("jane"))
    })
    .await;
}
