//! The API over TLS, with the client that the manager uses.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use cloudkeel_embedded::{EmbeddedApi, Identity};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

#[tokio::test]
async fn a_client_reads_writes_and_watches_over_tls() {
    let api = EmbeddedApi::builder().keep_journal().build();
    let served = api.serve(0).await.expect("it listens");
    let client = client(&served.kubeconfig(Identity::admin("jane"))).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let watch = nodes
        .watch(&WatchParams::default(), "0")
        .await
        .expect("a watch");
    let mut watch = Box::pin(watch);
    let node = serde_json::from_value(json!({"metadata": {"name": "n"}})).expect("a node");
    nodes
        .create(&PostParams::default(), &node)
        .await
        .expect("a node");
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let patched = nodes.patch("n", &PatchParams::default(), &label).await;
    patched.expect("a patch");
    let first = watch.next().await.expect("an event").expect("no break");
    assert!(matches!(first, WatchEvent::Added(_)), "{first:?}");
    let second = watch.next().await.expect("an event").expect("no break");
    assert!(matches!(second, WatchEvent::Modified(_)), "{second:?}");
    let authors: Vec<_> = api
        .journal()
        .iter()
        .map(|commit| commit.by.to_string())
        .collect();
    assert_eq!(authors, ["jane", "jane"]);
    served.stop().await;
    assert!(nodes.get("n").await.is_err(), "nothing listens any more");
}

#[tokio::test]
async fn a_token_is_a_user_and_no_token_is_anonymous() {
    let api = EmbeddedApi::new();
    let served = api.serve(0).await.expect("it listens");
    let kubeconfig = served.kubeconfig(Identity::admin("jane"));
    let admin = client(&kubeconfig).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin, "default");
    let account = serde_json::from_value(json!({"metadata": {"name": "a"}})).expect("an account");
    accounts
        .create(&PostParams::default(), &account)
        .await
        .expect("an account");
    let request = k8s_openapi::api::authentication::v1::TokenRequest::default();
    let answer: k8s_openapi::api::authentication::v1::TokenRequest = accounts
        .create_subresource("token", "a", &PostParams::default(), &request)
        .await
        .expect("a token");
    let token = answer.status.expect("a status").token;
    let mut parsed = Kubeconfig::from_yaml(&kubeconfig).expect("a kubeconfig");
    let user = |parsed: &mut Kubeconfig, token: &str| {
        let user = parsed
            .auth_infos
            .first_mut()
            .and_then(|user| user.auth_info.as_mut());
        user.expect("a user").token = Some(token.to_owned().into());
    };
    for (token, known) in [(token.as_str(), true), ("nonsense", false)] {
        user(&mut parsed, token);
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(parsed.clone(), &options).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
        let answer = accounts.get("a").await;
        let is_unauthorized =
            matches!(&answer, Err(kube::Error::Api(status)) if status.code == 401);
        assert_eq!(
            (answer.is_ok(), is_unauthorized),
            (known, !known),
            "{token}"
        );
    }
    served.stop().await;
}
