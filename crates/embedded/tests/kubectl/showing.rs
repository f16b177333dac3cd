//! `get`, `describe` and `-w`.

use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::fixture::{Fixture, words};

async fn create_first_objects(stand: &Fixture) {
    let nodes: Api<Node> = Api::all(stand.client());
    let node = json!({
        "metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"providerID": "local://n1", "podCIDR": "10.244.1.0/24"},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok"}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "nodeInfo": {"kubeletVersion": "v1.35.4", "osImage": "Linux", "kernelVersion": "6.1", "containerRuntimeVersion": "sim://1"},
        },
    });
    let node = serde_json::from_value(node).expect("a node");
    nodes
        .create(&PostParams::default(), &node)
        .await
        .expect("a node");
    stand.apply(WEB).await;
    let services: Api<Service> = Api::namespaced(stand.client(), "default");
    let uid = services.get("web").await.expect("the service").metadata.uid;
    let events: Api<Event> = Api::namespaced(stand.client(), "default");
    let event = json!({
        "metadata": {"name": "e1"},
        "involvedObject": {"kind": "Service", "name": "web", "namespace": "default", "uid": uid},
        "reason": "EnsuredLoadBalancer", "message": "Ensured load balancer", "type": "Normal", "count": 2,
        "source": {"component": "service-controller"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    let event = serde_json::from_value(event).expect("an event");
    events
        .create(&PostParams::default(), &event)
        .await
        .expect("an event");
    let ingress =
        json!({"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}}).to_string();
    stand
        .kubectl(&[
            "patch",
            "service",
            "web",
            "--subresource=status",
            "--type=merge",
            "-p",
            &ingress,
        ])
        .await;
}

const WEB: &str = r"
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080, nodePort: 30080}]
";

#[tokio::test]
async fn get_shows_columns() {
    let stand = Fixture::new().await;
    create_first_objects(&stand).await;
    let wide = stand.kubectl(&["get", "nodes", "-o", "wide"]).await;
    let lines: Vec<_> = wide.lines().map(words).collect();
    assert_eq!(
        lines[0],
        [
            "NAME",
            "STATUS",
            "ROLES",
            "AGE",
            "VERSION",
            "INTERNAL-IP",
            "EXTERNAL-IP",
            "OS-IMAGE",
            "KERNEL-VERSION",
            "CONTAINER-RUNTIME",
        ]
    );
    assert_eq!(lines[1][..3], ["n1", "Ready", "worker"]);
    assert_eq!(
        lines[1][4..],
        ["v1.35.4", "192.0.2.1", "<none>", "Linux", "6.1", "sim://1"]
    );

    let services = stand.kubectl(&["get", "svc", "-o", "wide"]).await;
    let web = services
        .lines()
        .find(|line| line.starts_with("web"))
        .expect("a row");
    let web = words(web);
    assert_eq!(web[1], "LoadBalancer");
    assert_eq!(web[3..5], ["203.0.113.9", "80:30080/TCP"]);
    assert_eq!(web.last(), Some(&"app=web"));

    let events = stand.kubectl(&["get", "events"]).await;
    assert!(
        events.contains("EnsuredLoadBalancer") && events.contains("service/web"),
        "{events}"
    );
    let all = stand.kubectl(&["get", "svc", "-A", "--no-headers"]).await;
    assert!(all.contains("kubernetes"), "{all}");
    let yaml = stand.kubectl(&["get", "svc", "web", "-o", "yaml"]).await;
    assert!(yaml.contains("ipMode: VIP"), "{yaml}");
    let name = stand
        .kubectl(&[
            "get",
            "nodes",
            "-l",
            "node-role.kubernetes.io/worker",
            "-o",
            "name",
        ])
        .await;
    assert_eq!(name, "node/n1\n");
    stand.close().await;
}

#[tokio::test]
async fn describe_tells_everything() {
    let stand = Fixture::new().await;
    create_first_objects(&stand).await;
    let node = stand.kubectl(&["describe", "node", "n1"]).await;
    for part in [
        "ProviderID:                   local://n1",
        "KubeletReady",
        "PodCIDR:",
        "Non-terminated Pods:",
    ] {
        assert!(node.contains(part), "{part:?} is missing in: {node}");
    }
    let service = stand.kubectl(&["describe", "service", "web"]).await;
    for part in [
        "LoadBalancer Ingress:",
        "203.0.113.9 (VIP)",
        "NodePort:",
        "30080/TCP",
        "EnsuredLoadBalancer",
    ] {
        assert!(service.contains(part), "{part:?} is missing in: {service}");
    }
    stand.close().await;
}

#[tokio::test]
async fn a_watch_shows_rows_as_they_change() {
    let stand = Fixture::new().await;
    create_first_objects(&stand).await;
    let mut watch = stand.spawn(&["get", "nodes", "-w"]);
    let mut lines = BufReader::new(watch.stdout.take().expect("an output")).lines();
    let mut rows = Vec::new();
    for _ in 0..2 {
        rows.push(lines.next_line().await.expect("a line").expect("a line"));
    }
    stand.kubectl(&["cordon", "n1"]).await;
    rows.push(lines.next_line().await.expect("a line").expect("a line"));
    stand
        .kubectl(&["delete", "node", "n1", "--wait=false"])
        .await;
    rows.push(lines.next_line().await.expect("a line").expect("a line"));
    watch.kill().await.expect("it ends");
    let status: Vec<_> = rows.iter().map(|row| words(row)[1].to_owned()).collect();
    assert_eq!(
        status,
        [
            "STATUS",
            "Ready",
            "Ready,SchedulingDisabled",
            "Ready,SchedulingDisabled"
        ]
    );
    stand.close().await;
}
