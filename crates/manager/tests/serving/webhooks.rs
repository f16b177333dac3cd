//! Webhooks over TLS, and an API server that calls them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{Admission, AdmissionRequest, CloudError, PatchOperation, Webhook};
use cloudkeel_manager::metrics::{BuildInfo, Format, Metrics};
use cloudkeel_manager::options::ListenerOptions;
use cloudkeel_manager::serving::webhook_router;
use cloudkeel_testkit::cluster::{eventually, unique_name};
use cloudkeel_testkit::control_plane::ControlPlane;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::server::{Authority, Running, listener_options};

/// Marks `ConfigMaps`, except for those that say no.
struct Marker;

#[async_trait]
impl Webhook for Marker {
    fn name(&self) -> &'static str {
        "marker"
    }

    fn path(&self) -> &'static str {
        "/mark"
    }

    async fn review(&self, request: &AdmissionRequest) -> Result<Admission, CloudError> {
        if request.object.pointer("/data/please") == Some(&json!("no")) {
            return Ok(Admission::Deny {
                why: "it said no".to_owned(),
            });
        }
        Ok(Admission::Allow {
            patch: vec![PatchOperation::Add {
                path: "/data/marked".to_owned(),
                value: Value::from(request.operation.clone()),
            }],
            warnings: Vec::new(),
        })
    }
}

fn configuration(name: &str, url: &str, ca: &str) -> MutatingWebhookConfiguration {
    let webhook = json!({
        "name": "marker.cloudkeel.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": url, "caBundle": ByteString(ca.as_bytes().to_vec())},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["CREATE"],
        }],
        "objectSelector": {"matchLabels": {"mark": name}},
    });
    serde_json::from_value(json!({"metadata": {"name": name}, "webhooks": [webhook]})).unwrap()
}

fn config_map(name: &str, label: &str, please: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"mark": label}},
        "data": {"please": please},
    }))
    .unwrap()
}

#[tokio::test]
async fn a_real_api_server_gets_its_objects_changed_and_refused() {
    let plane = ControlPlane::shared().await;
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new("webhooks");
    let options = ListenerOptions {
        cert_and_key: Some(authority.server("127.0.0.1").write(directory.path(), "tls")),
        ..listener_options()
    };
    let metrics = Metrics::new(&BuildInfo::of_version("1.2.3"), Timestamp::UNIX_EPOCH);
    let router = webhook_router(vec![Arc::new(Marker)], metrics.webhooks.clone()).unwrap();
    let running = Running::start(&options, router).await.unwrap();

    let name = unique_name("marker");
    let url = format!("https://{}/mark", running.address);
    let hooks: Api<MutatingWebhookConfiguration> = Api::all(plane.client());
    let post = PostParams::default();
    hooks
        .create(&post, &configuration(&name, &url, &authority.pem()))
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(plane.client(), "default");

    // The API server takes a moment to learn of the webhook.
    let marked = eventually(
        "a ConfigMap is marked",
        Duration::from_mins(1),
        async || {
            let created = maps
                .create(&post, &config_map(&unique_name("yes"), &name, "yes"))
                .await;
            created.map(|map| map.data.unwrap_or_default().get("marked").cloned())
        },
    )
    .await;
    assert_eq!(marked, "CREATE");
    let refused = maps
        .create(&post, &config_map(&unique_name("no"), &name, "no"))
        .await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("denied the request: it said no"), "{error}");
    hooks.delete(&name, &DeleteParams::default()).await.unwrap();

    let text = metrics.expose(Format::Plain).unwrap();
    let counted = r#"cloud_provider_webhook_request_total{code="200",webhook="marker"} "#;
    assert!(text.contains(counted), "{text}");
}
