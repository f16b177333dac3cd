//! `apply`, `delete`, `label`, `annotate`, `patch`, and who may ask at all.

use serde_json::Value;

use crate::fixture::Fixture;

const SERVICE: &str = r"
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {a: x}}
spec:
  type: LoadBalancer
  ports: [{name: http, port: 80}, {name: https, port: 443}]
";

const SHOP: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: shop}
data: {a: b}
";

async fn service(stand: &Fixture) -> Value {
    let text = stand.kubectl(&["get", "svc", "web", "-o", "json"]).await;
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn a_manifest_is_applied_again_and_again() {
    let stand = Fixture::new().await;
    assert_eq!(stand.apply(SERVICE).await, "service/web created\n");
    assert_eq!(stand.apply(SERVICE).await, "service/web unchanged\n");
    let before = service(&stand).await;
    let changed = SERVICE
        .replace(", {name: https, port: 443}", "")
        .replace("{a: x}", "{b: z}");
    assert_eq!(stand.apply(&changed).await, "service/web configured\n");
    let after = service(&stand).await;
    let ports = after["spec"]["ports"].as_array().expect("ports");
    assert_eq!(
        ports.len(),
        1,
        "the port that is left out is gone: {ports:?}"
    );
    assert_eq!(ports[0]["nodePort"], before["spec"]["ports"][0]["nodePort"]);
    let annotations = &after["metadata"]["annotations"];
    assert!(
        annotations["a"].is_null() && annotations["b"] == "z",
        "{annotations}"
    );
    stand.close().await;
}

#[tokio::test]
async fn a_field_that_does_not_exist_is_refused_by_name() {
    let stand = Fixture::new().await;
    let wrong = SERVICE.replace("type:", "typ:");
    let run = stand.run_with(&["apply", "-f", "-"], &wrong).await;
    assert!(!run.success, "{run:?}");
    assert!(run.stderr.contains("unknown field \"spec.typ\""), "{run:?}");
    stand.close().await;
}

#[tokio::test]
async fn labels_annotations_and_patches_arrive() {
    let stand = Fixture::new().await;
    stand.apply(SERVICE).await;
    stand.kubectl(&["label", "svc", "web", "tier=front"]).await;
    stand
        .kubectl(&["annotate", "svc", "web", "a-", "note=hello"])
        .await;
    let strategic = r#"{"spec": {"ports": [{"port": 443, "targetPort": 8443}]}}"#;
    stand
        .kubectl(&["patch", "svc", "web", "-p", strategic])
        .await;
    let merge = r#"{"metadata": {"finalizers": ["example.com/hold"]}}"#;
    stand
        .kubectl(&["patch", "svc", "web", "--type=merge", "-p", merge])
        .await;
    let json = r#"[{"op": "replace", "path": "/spec/externalTrafficPolicy", "value": "Local"}]"#;
    stand
        .kubectl(&["patch", "svc", "web", "--type=json", "-p", json])
        .await;
    let service = service(&stand).await;
    assert_eq!(service["metadata"]["labels"]["tier"], "front");
    assert!(service["metadata"]["annotations"]["a"].is_null());
    assert_eq!(service["metadata"]["annotations"]["note"], "hello");
    assert_eq!(service["metadata"]["finalizers"][0], "example.com/hold");
    assert_eq!(service["spec"]["externalTrafficPolicy"], "Local");
    assert!(service["spec"]["healthCheckNodePort"].is_u64(), "{service}");
    let ports = service["spec"]["ports"].as_array().expect("ports");
    let targets: Vec<_> = ports
        .iter()
        .map(|port| port["targetPort"].as_u64())
        .collect();
    assert!(
        targets.contains(&Some(8443)) && targets.contains(&Some(80)),
        "{targets:?}"
    );
    stand.close().await;
}

#[tokio::test]
async fn a_deletion_waits_for_the_last_finalizer() {
    let stand = Fixture::new().await;
    let held = SERVICE.replace("name: web,", "name: web, finalizers: [example.com/hold],");
    stand.apply(&held).await;
    stand
        .kubectl(&["delete", "svc", "web", "--wait=false"])
        .await;
    let waiting = service(&stand).await;
    assert!(
        waiting["metadata"]["deletionTimestamp"].is_string(),
        "{waiting}"
    );
    let free = r#"{"metadata": {"finalizers": null}}"#;
    stand
        .kubectl(&["patch", "svc", "web", "--type=merge", "-p", free])
        .await;
    let gone = stand.run_with(&["get", "svc", "web"], "").await;
    assert!(
        gone.stderr.contains("services \"web\" not found"),
        "{gone:?}"
    );
    stand.apply(SERVICE).await;
    let deleted = stand.kubectl(&["delete", "svc", "web"]).await;
    assert!(deleted.contains("service \"web\" deleted"), "{deleted}");
    stand.close().await;
}

#[tokio::test]
async fn a_namespace_goes_with_what_is_in_it() {
    let stand = Fixture::new().await;
    stand.apply(SHOP).await;
    stand.kubectl(&["delete", "namespace", "shop"]).await;
    let gone = stand
        .run_with(&["-n", "shop", "get", "configmap", "c"], "")
        .await;
    assert!(!gone.success);
    let namespaces = stand.kubectl(&["get", "namespaces", "-o", "name"]).await;
    assert!(!namespaces.contains("shop"), "{namespaces}");
    stand.close().await;
}

#[tokio::test]
async fn a_token_is_needed() {
    let stand = Fixture::new().await;
    let run = stand
        .run_with(&["--token=nonsense", "get", "nodes"], "")
        .await;
    assert!(
        !run.success && run.stderr.contains("logged in to the server"),
        "{run:?}"
    );
    stand.close().await;
}
