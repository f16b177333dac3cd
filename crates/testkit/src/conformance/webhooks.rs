//! Admission webhooks that a provider brings along.

use std::collections::BTreeSet;

use cloudkeel_api::Capability::Webhooks;
use cloudkeel_api::{Admission, AdmissionRequest, PatchOperation};
use futures::FutureExt as _;
use futures::future::ready;
use serde_json::{Value, json};

use super::check::{Check, Done, check};
use super::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        Webhooks,
        "webhooks/have-names-and-paths",
        "names and paths are unique, and paths begin with /",
        |env| ready(names(env)).boxed(),
    ),
    check(
        Webhooks,
        "webhooks/have-no-side-effects",
        "a request that is reviewed twice gets the same answer, and nothing is changed in the cloud",
        |env| twice(env).boxed(),
    ),
    check(
        Webhooks,
        "webhooks/survive-any-object",
        "objects of other kinds, and ones without or with wrong fields, are answered without a panic, and patches are valid JSON pointers",
        |env| any_object(env).boxed(),
    ),
];

/// Objects as an API server sends them, and some that lack everything.
fn objects() -> Vec<Value> {
    let web = json!({"name": "web", "namespace": "default"});
    vec![
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": web,
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        }),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": web, "spec": {"type": "ExternalName"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"annotations": 7}, "spec": {"ports": "80"}}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "spec": {"providerID": "x"}}),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"},
            "spec": {"csi": {"driver": "x", "volumeHandle": "vol-1"}},
        }),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": web, "spec": {}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": web, "spec": {"containers": []}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": web}),
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": web, "spec": null}),
        json!({}),
        json!([]),
        json!("text"),
        json!(7),
        Value::Null,
    ]
}

/// Requests about each of them.
fn requests() -> Vec<AdmissionRequest> {
    let objects = objects();
    let operations = ["CREATE", "UPDATE", "DELETE"];
    let pairs = operations
        .iter()
        .flat_map(|o| objects.iter().map(move |object| (o, object)));
    pairs
        .map(|(operation, object)| AdmissionRequest {
            uid: "0000-1".to_owned(),
            operation: (*operation).to_owned(),
            namespace: Some("default".to_owned()),
            name: "web".to_owned(),
            object: object.clone(),
            old_object: if *operation == "UPDATE" {
                object.clone()
            } else {
                Value::Null
            },
        })
        .collect()
}

fn names(env: &TestEnv<'_>) -> Done {
    let webhooks = env.provider.webhooks();
    let names: BTreeSet<_> = webhooks.iter().map(|webhook| webhook.name()).collect();
    let paths: BTreeSet<_> = webhooks.iter().map(|webhook| webhook.path()).collect();
    ensure(
        names.len() == webhooks.len() && paths.len() == webhooks.len(),
        || {
            format!(
                "{} webhooks have the names {names:?} and paths {paths:?}",
                webhooks.len()
            )
        },
    )?;
    ensure(paths.iter().all(|path| path.starts_with('/')), || {
        format!("a path does not begin with /: {paths:?}")
    })
}

/// A call that asks whether a change would be accepted may have the form of one, so what counts is what is there.
async fn twice(env: &TestEnv<'_>) -> Done {
    let before = env.cloud.state().await?;
    for webhook in env.provider.webhooks() {
        for request in requests() {
            let first = webhook.review(&request).await;
            let second = webhook.review(&request).await;
            let same = match (&first, &second) {
                (Ok(first), Ok(second)) => first == second,
                (Err(first), Err(second)) => first.kind() == second.kind(),
                _ => false,
            };
            ensure(same, || {
                format!("{}: first {first:?}, then {second:?}", webhook.name())
            })?;
        }
    }
    let after = env.cloud.state().await?;
    ensure(before == after, || {
        format!("reviews made {after:?} of {before:?}")
    })
}

async fn any_object(env: &TestEnv<'_>) -> Done {
    for webhook in env.provider.webhooks() {
        for request in requests() {
            let Ok(Admission::Allow { patch, .. }) = webhook.review(&request).await else {
                continue;
            };
            for operation in patch {
                let (PatchOperation::Add { path, .. }
                | PatchOperation::Replace { path, .. }
                | PatchOperation::Remove { path }) = operation;
                ensure(path.is_empty() || path.starts_with('/'), || {
                    format!("{}: {path:?} is no JSON pointer", webhook.name())
                })?;
            }
        }
    }
    Ok(())
}
