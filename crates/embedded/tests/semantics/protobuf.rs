//! Protobuf: the same objects as in JSON, and in events of a watch.

use cloudkeel_embedded::{decode_protobuf, decode_protobuf_events};
use http::Method;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

#[tokio::test]
async fn protobuf_agrees() {
    agree(
        "protobuf",
        cases![
            a_node,
            a_list,
            metadata_alone,
            refused,
            written_back,
            events_of_a_watch,
        ],
    )
    .await;
}

fn node(b: &Bench) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": b.own("n"), "labels": {"case": b.own("case"), "empty": ""},
            "annotations": {"a": "1"}, "finalizers": ["x.io/f"],
        },
        "spec": {
            "podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"], "providerID": "x://1",
            "unschedulable": true,
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2020-01-01T00:00:00Z"}],
        },
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi"},
            "addresses": [{"type": "InternalIP", "address": "10.1.0.1"}],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "r", "message": "m",
                "lastHeartbeatTime": "2020-01-01T00:00:01Z", "lastTransitionTime": "2020-01-01T00:00:02Z",
            }],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": "1", "systemUUID": "2", "bootID": "3", "kernelVersion": "4", "osImage": "5",
                "containerRuntimeVersion": "6", "kubeletVersion": "7", "kubeProxyVersion": "8",
                "operatingSystem": "9", "architecture": "10",
            },
            "images": [{"names": ["a", "b"], "sizeBytes": 7}],
            "volumesInUse": ["v"],
            "volumesAttached": [{"name": "v", "devicePath": "d"}],
        },
    })
}

async fn add(b: &Bench) -> String {
    let added = b.unnoted_post("/api/v1/nodes", node(b)).await;
    assert_eq!(added["kind"], "Node", "{added}");
    format!("/api/v1/nodes/{}", b.own("n"))
}

async fn remove(b: &Bench, path: &str) {
    let patch = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
    b.unnoted_json_patch(path, patch).await;
    b.unnoted_delete(path).await;
}

/// What a server says in protobuf, noted as JSON.
async fn get(b: &Bench, path: &str, accept: &str) -> Value {
    let asked = (PROTOBUF, accept);
    let (code, kind, bytes) = b.bytes(&Method::GET, path, asked, Vec::new()).await;
    let object = if kind.starts_with(PROTOBUF) {
        decode_protobuf(&bytes).expect("an object in protobuf")
    } else {
        serde_json::from_slice(&bytes).expect("an object in JSON")
    };
    let answer = json!({"code": code, "content-type": kind, "body": object});
    b.note(format!("GET {path} in protobuf"), answer);
    object
}

async fn a_node(b: &Bench) {
    let path = add(b).await;
    let mut in_json = b.unnoted_get(&path).await;
    let metadata = in_json["metadata"].as_object_mut().expect("metadata");
    metadata.remove("managedFields");
    assert_eq!(get(b, &path, PROTOBUF).await, in_json);
    remove(b, &path).await;
}

async fn a_list(b: &Bench) {
    let path = add(b).await;
    let case = b.own("case");
    let list = format!("/api/v1/nodes?limit=500&labelSelector=case%3D{case}");
    get(b, &list, PROTOBUF).await;
    get(b, &list, &METADATA.replace("Metadata;", "MetadataList;")).await;
    remove(b, &path).await;
}

async fn metadata_alone(b: &Bench) {
    let path = add(b).await;
    get(b, &path, METADATA).await;
    let patch = json!({"metadata": {"labels": {"x": "1"}}}).to_string();
    let asked = (STRATEGIC, METADATA);
    let (code, _, bytes) = b
        .bytes(&Method::PATCH, &path, asked, patch.into_bytes())
        .await;
    let object = decode_protobuf(&bytes).expect("metadata");
    b.note("a patch".to_owned(), json!({"code": code, "body": object}));
    remove(b, &path).await;
}

async fn refused(b: &Bench) {
    let missing = format!("/api/v1/nodes/{}", b.own("missing"));
    get(b, &missing, PROTOBUF).await;
    get(b, &missing, METADATA).await;
}

async fn written_back(b: &Bench) {
    let path = add(b).await;
    let asked = (PROTOBUF, PROTOBUF);
    let (_, _, bytes) = b.bytes(&Method::GET, &path, asked, Vec::new()).await;
    let (code, _, answer) = b.bytes(&Method::PUT, &path, asked, bytes).await;
    let object = decode_protobuf(&answer).expect("a Node");
    b.note(
        "written back".to_owned(),
        json!({"code": code, "body": object}),
    );
    let (code, _, _) = b
        .bytes(&Method::PUT, &path, asked, b"no protobuf".to_vec())
        .await;
    b.note("what is no protobuf".to_owned(), json!(code));
    remove(b, &path).await;
}

async fn events_of_a_watch(b: &Bench) {
    let path = add(b).await;
    let case = b.own("case");
    for accept in [PROTOBUF, METADATA] {
        let watch =
            format!("/api/v1/nodes?watch=true&timeoutSeconds=1&labelSelector=case%3D{case}");
        let asked = (PROTOBUF, accept);
        let (code, kind, bytes) = b.bytes(&Method::GET, &watch, asked, Vec::new()).await;
        let events = decode_protobuf_events(&bytes).expect("events");
        let reported: Vec<_> = events
            .iter()
            .map(|(kind, object)| json!([kind, object]))
            .collect();
        let kind = kind.replace("; ", ";");
        b.note(format!("WATCH in {accept}"), json!([code, kind, reported]));
    }
    remove(b, &path).await;
}
