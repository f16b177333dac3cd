//! What the API does not give: to those who may not, from the future, and from a forgotten past.

use std::sync::Arc;

use cloudkeel_embedded::{Attributes, Authorizer, EmbeddedApi, Identity};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::objects::{add_node, api, nodes};

/// All may read; only the user of this name may write.
struct OneWriter(&'static str);

impl Authorizer for OneWriter {
    fn allows(&self, who: &Identity, what: &Attributes) -> bool {
        who.name == self.0 || matches!(what.verb.as_str(), "get" | "list" | "watch")
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_may_not_write_is_refused() {
    let api = EmbeddedApi::builder()
        .authorizer(Arc::new(OneWriter("writer")))
        .build();
    add_node(&api.client("writer"), "n").await;
    let reader = api.client_as(Identity::new("reader", &[]), None);
    nodes(&reader).get("n").await.expect("reading is free");
    let refused = nodes(&reader).delete("n", &DeleteParams::default()).await;
    let refused = refused.expect_err("writing is not").to_string();
    let why = "nodes \"n\" is forbidden: User \"reader\" cannot delete resource \"nodes\" in API group \"\" at the cluster scope";
    assert!(refused.contains(why), "{refused}");
    nodes(&reader).get("n").await.expect("it is still there");
}

async fn ask(client: &Client, path: &str) -> (u16, Value) {
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let response = client.send(request).await.expect("an answer");
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.expect("a body");
    (code, serde_json::from_slice(&bytes).expect("JSON"))
}

#[tokio::test(start_paused = true)]
async fn a_list_from_the_future_is_not_made_up() {
    let api = api(1);
    let (code, status) = ask(&api.client("me"), "/api/v1/nodes?resourceVersion=1000000").await;
    assert_eq!((code, status["reason"].as_str()), (504, Some("Timeout")));
    let (code, _) = ask(&api.client("me"), "/api/v1/nodes?resourceVersion=nonsense").await;
    assert_eq!(code, 400);
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_forgotten_moment_are_gone_but_may_go_on() {
    let api = api(1);
    let client = api.client("me");
    for name in ["a", "b", "c"] {
        add_node(&client, name).await;
    }
    let first = nodes(&client)
        .list(&ListParams::default().limit(1))
        .await
        .expect("a page");
    assert_eq!(first.metadata.remaining_item_count, Some(2));
    let token = first.metadata.continue_.expect("a token");
    let deleted = nodes(&client).delete("b", &DeleteParams::default()).await;
    deleted.expect("a deletion");
    let path = format!("/api/v1/nodes?limit=9&continue={token}");
    let (code, page) = ask(&client, &path).await;
    let names = |page: &Value| {
        let items = page["items"].as_array().expect("items").clone();
        items
            .iter()
            .map(|item| item["metadata"]["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (code, names(&page)),
        (200, vec![json!("b"), json!("c")]),
        "as it was then"
    );

    api.compact();
    add_node(&client, "d").await;
    let (code, status) = ask(&client, &path).await;
    assert_eq!((code, status["reason"].as_str()), (410, Some("Expired")));
    let token = status["metadata"]["continue"].as_str().expect("a token");
    let (code, page) = ask(&client, &format!("/api/v1/nodes?limit=9&continue={token}")).await;
    assert_eq!(
        (code, names(&page)),
        (200, vec![json!("c"), json!("d")]),
        "as it is now"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_waits_for_what_is_in_it_and_takes_nothing_new() {
    let api = api(1);
    let client = api.client("me");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
    let namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}}));
    let created = namespaces
        .create(&PostParams::default(), &namespace.expect("a namespace"))
        .await;
    created.expect("a namespace");
    let held = json!({"metadata": {"name": "held", "finalizers": ["x.io/f"]}});
    let mut held: ConfigMap = serde_json::from_value(held).expect("a map");
    maps.create(&PostParams::default(), &held)
        .await
        .expect("a map");
    let deleted = namespaces.delete("shop", &DeleteParams::default()).await;
    deleted.expect("a deletion");

    held.metadata.name = Some("late".to_owned());
    let late = maps
        .create(&PostParams::default(), &held)
        .await
        .expect_err("too late");
    assert!(
        late.to_string().contains("because it is being terminated"),
        "{late}"
    );
    let phase = namespaces
        .get("shop")
        .await
        .expect("it waits")
        .status
        .and_then(|status| status.phase);
    assert_eq!(phase.as_deref(), Some("Terminating"));

    let free = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let freed = maps
        .patch("held", &kube::api::PatchParams::default(), &free)
        .await;
    freed.expect("a patch");
    assert!(
        namespaces
            .get_opt("shop")
            .await
            .expect("an answer")
            .is_none()
    );
}

#[tokio::test(start_paused = true)]
async fn only_so_much_is_remembered() {
    let api = EmbeddedApi::builder().history(3).build();
    let client = api.client("me");
    let before = api.version();
    for name in ["a", "b", "c", "d"] {
        add_node(&client, name).await;
    }
    let path =
        |version| format!("/api/v1/nodes?resourceVersionMatch=Exact&resourceVersion={version}");
    assert_eq!(ask(&client, &path(before)).await.0, 410);
    let (code, list) = ask(&client, &path(before + 1)).await;
    assert_eq!(
        (code, list["items"].as_array().map(Vec::len)),
        (200, Some(1))
    );
    let all: Api<Node> = Api::all(client);
    assert_eq!(
        all.list(&ListParams::default())
            .await
            .expect("a list")
            .items
            .len(),
        4
    );
}
