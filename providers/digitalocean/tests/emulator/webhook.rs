//! The admission webhook.

use std::sync::Arc;

use cloudkeel_api::{Admission, AdmissionRequest, CloudProvider as _, Webhook};
use cloudkeel_emulator_digitalocean::{Fault, Operation};
use serde_json::{Value, json};

use crate::lab::{ID, Lab, PREFIX, settle, spec};

async fn webhook(lab: &Lab) -> Arc<dyn Webhook> {
    let webhooks = lab.provider().await.webhooks();
    assert_eq!((webhooks.len(), webhooks[0].path()), (1, "/lb-service"));
    Arc::clone(&webhooks[0])
}

fn service(annotations: &[(&str, &str)]) -> Value {
    let annotations = annotations.iter();
    let annotations: serde_json::Map<String, Value> = annotations
        .map(|(key, value)| {
            let is_whole = key.contains('/');
            let key = if is_whole {
                (*key).to_owned()
            } else {
                format!("{PREFIX}{key}")
            };
            (key, json!(value))
        })
        .collect();
    json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u-1", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}]},
    })
}

async fn review(webhook: &Arc<dyn Webhook>, object: Value, old: Value) -> Admission {
    let request = AdmissionRequest {
        uid: "1".to_owned(),
        operation: if old.is_null() { "CREATE" } else { "UPDATE" }.to_owned(),
        namespace: Some("default".to_owned()),
        name: "web".to_owned(),
        object,
        old_object: old,
    };
    webhook.review(&request).await.unwrap()
}

fn why(admission: &Admission) -> &str {
    match admission {
        Admission::Deny { why } => why,
        Admission::Allow { .. } => "",
    }
}

#[tokio::test(start_paused = true)]
async fn the_api_is_asked_and_nothing_is_made() {
    let lab = Lab::new(1);
    let webhook = webhook(&lab).await;
    let allowed = review(&webhook, service(&[]), Value::Null).await;
    assert_eq!(why(&allowed), "");
    let log = lab.cloud.call_log();
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].body["validate_only"], true);
    assert_eq!(
        log[0].body["network_stack"], "IPV4",
        "there are no Nodes yet"
    );
    assert!(lab.cloud.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_or_refused_is_denied_with_the_reason() {
    let lab = Lab::new(1);
    let webhook = webhook(&lab).await;
    let bad = review(&webhook, service(&[("size-unit", "x")]), Value::Null).await;
    assert!(why(&bad).contains("size-unit: \"x\""), "{bad:?}");
    assert_eq!(lab.cloud.calls().total(), 0);
    lab.cloud.add_load_balancer("taken", &[]);
    let taken = review(&webhook, service(&[("name", "taken")]), Value::Null).await;
    assert!(why(&taken).contains("name is not unique"), "{taken:?}");
    let unknown = review(&webhook, service(&[(ID, "none")]), Value::Null).await;
    assert!(why(&unknown).contains("could not be found"), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn an_api_that_cannot_say_denies_nothing_but_warns() {
    for status in [401, 429, 500, 503] {
        let lab = Lab::new(1);
        let webhook = webhook(&lab).await;
        lab.cloud
            .faults()
            .always(Operation::CreateLoadBalancer, Fault::status(status));
        let answer = review(&webhook, service(&[]), Value::Null).await;
        let Admission::Allow { warnings, .. } = answer else {
            panic!("{status}: {answer:?}");
        };
        assert_eq!(warnings.len(), 1, "{status}");
        assert!(lab.cloud.calls().total() > 0, "{status}: the fault was met");
    }
}

#[tokio::test(start_paused = true)]
async fn updates_are_asked_about_only_if_they_change_the_load_balancer() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    settle(&provider, &mut desired).await;
    let id = lab.balancer().id;
    let webhook = webhook(&lab).await;
    let old = service(&[(ID, &id)]);
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"app": "web"});
    review(&webhook, labelled, old.clone()).await;
    assert_eq!(lab.cloud.calls().total(), 0, "the same load balancer");
    let changed = service(&[(ID, &id), ("http-idle-timeout-seconds", "90")]);
    review(&webhook, changed, old.clone()).await;
    assert_eq!(lab.cloud.calls().of(Operation::UpdateLoadBalancer), 1);
    let without_id = service(&[("http-idle-timeout-seconds", "90")]);
    review(&webhook, without_id, old).await;
    assert_eq!(
        lab.cloud.calls().of(Operation::UpdateLoadBalancer),
        2,
        "by the old ID"
    );
    let before = lab.balancer();
    assert_eq!(before.http_idle_timeout_seconds, 60);
}

#[tokio::test(start_paused = true)]
async fn other_services_and_those_that_go_are_allowed_without_a_call() {
    let lab = Lab::new(1);
    let webhook = webhook(&lab).await;
    let mut plain = service(&[("size-unit", "x")]);
    plain["spec"]["type"] = json!("ClusterIP");
    let mut leaving = service(&[("size-unit", "x")]);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let disowned = service(&[
        ("size-unit", "x"),
        ("service.kubernetes.io/do-loadbalancer-disown", "true"),
    ]);
    for object in [plain, leaving, disowned] {
        assert_eq!(why(&review(&webhook, object, Value::Null).await), "");
    }
    assert_eq!(lab.cloud.calls().total(), 0);
}
