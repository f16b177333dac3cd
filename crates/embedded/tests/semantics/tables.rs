//! Tables: what `kubectl get` and `kubectl get -o wide` show.

use serde_json::json;

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn tables_agree() {
    agree(
        "tables",
        cases![
            nodes_as_rows,
            services_as_rows,
            events_as_rows,
            the_rest_as_rows
        ],
    )
    .await;
}

async fn nodes_as_rows(b: &Bench) {
    let body = json!({
        "metadata": {
            "name": b.own("a"), "labels": {"own": "x", "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"},
        },
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "ExternalIP", "address": "198.51.100.1"}],
            "nodeInfo": {"kubeletVersion": "v1.35.4", "osImage": "Linux", "kernelVersion": "6", "containerRuntimeVersion": "c://1"},
        },
    });
    b.post("/api/v1/nodes", body).await;
    let plain = json!({"metadata": {"name": b.own("b"), "labels": {"own": "x"}}});
    b.post("/api/v1/nodes", plain).await;
    b.table("/api/v1/nodes?labelSelector=own%3Dx").await;
    b.table(&format!("/api/v1/nodes/{}", b.own("a"))).await;
}

async fn services_as_rows(b: &Bench) {
    let ports = json!([{"name": "a", "port": 80, "nodePort": 30071}, {"name": "b", "port": 53, "protocol": "UDP", "nodePort": 30072}]);
    for (name, spec) in [
        (
            "cluster",
            json!({"ports": [{"port": 80}], "clusterIP": "10.0.0.91", "selector": {"a": "b", "c": "d"}}),
        ),
        (
            "headless",
            json!({"clusterIP": "None", "selector": {"a": "b"}}),
        ),
        (
            "external",
            json!({"type": "ExternalName", "externalName": "a.example"}),
        ),
        (
            "waiting",
            json!({"type": "LoadBalancer", "clusterIP": "10.0.0.92", "ports": ports}),
        ),
    ] {
        b.post(
            &b.here("services"),
            json!({"metadata": {"name": name}, "spec": spec}),
        )
        .await;
    }
    b.table(&b.here("services")).await;
    let ingress = json!([{"ip": "192.0.2.9"}, {"hostname": "b.example"}]);
    b.merge(
        &b.here("services/waiting/status"),
        json!({"status": {"loadBalancer": {"ingress": ingress}}}),
    )
    .await;
    b.merge(
        &b.here("services/waiting"),
        json!({"spec": {"externalIPs": ["198.51.100.7"]}}),
    )
    .await;
    b.table(&b.here("services/waiting")).await;
}

async fn events_as_rows(b: &Bench) {
    let namespace = b.own("x").trim_end_matches("-x").to_owned();
    let event = json!({
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Service", "name": "s", "namespace": namespace, "fieldPath": "spec"},
        "reason": "Ensured", "message": " done ", "type": "Normal", "count": 3,
        "source": {"component": "service-controller", "host": "h"},
        "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z",
    });
    b.post(&b.here("events"), event).await;
    b.table(&b.here("events")).await;
    b.table(&b.here_in("events.k8s.io", "events")).await;
}

async fn the_rest_as_rows(b: &Bench) {
    b.post(
        &b.here("configmaps"),
        json!({"metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}),
    )
    .await;
    b.table(&b.here("configmaps")).await;
    b.post(
        &b.here("secrets"),
        json!({"metadata": {"name": "s"}, "stringData": {"a": "1"}}),
    )
    .await;
    b.table(&b.here("secrets")).await;
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    b.post(&b.here_in("coordination.k8s.io", "leases"), lease)
        .await;
    b.table(&b.here_in("coordination.k8s.io", "leases")).await;
    b.table("/api/v1/namespaces/kube-system").await;
    b.post(
        &b.here("serviceaccounts"),
        json!({"metadata": {"name": "a"}}),
    )
    .await;
    b.table(&b.here("serviceaccounts")).await;
}
