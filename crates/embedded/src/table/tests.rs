use serde_json::json;

use super::*;

fn cells(plural: &str, object: &Value) -> Vec<Value> {
    let kind = Kind::find("", "v1", plural).unwrap();
    let now = "2026-01-01T00:05:00Z".parse().unwrap();
    let table = Table::new(kind, now, Some("None")).of(&[object], &json!({}));
    let columns = table["columnDefinitions"].as_array().unwrap().len();
    let cells = table["rows"][0]["cells"].as_array().unwrap().clone();
    assert_eq!(cells.len(), columns, "a cell for each column");
    cells
}

#[test]
fn a_node_is_a_row() {
    let node = json!({
        "metadata": {
            "name": "a", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/edge": ""},
        },
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.35.4", "osImage": "Linux"},
        },
    });
    assert_eq!(
        cells("nodes", &node),
        [
            "a",
            "NotReady,SchedulingDisabled",
            "edge,worker",
            "5m",
            "v1.35.4",
            "10.0.0.1",
            "<none>",
            "Linux",
            "<unknown>",
            "<unknown>",
        ]
    );
}

#[test]
fn a_balancer_is_a_row() {
    let service = |ingress: Value| {
        json!({
            "metadata": {"name": "web", "creationTimestamp": "2026-01-01T00:04:00Z"},
            "spec": {
                "type": "LoadBalancer", "clusterIPs": ["10.0.1.1"], "selector": {"app": "web"},
                "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30100}],
            },
            "status": {"loadBalancer": {"ingress": ingress}},
        })
    };
    let waiting = cells("services", &service(json!(null)));
    assert_eq!(
        waiting,
        [
            "web",
            "LoadBalancer",
            "10.0.1.1",
            "<pending>",
            "80:30100/TCP",
            "60s",
            "app=web"
        ]
    );
    let served = cells(
        "services",
        &service(json!([{"ip": "192.0.2.2"}, {"hostname": "a.example"}])),
    );
    assert_eq!(served[3], "192.0.2.2,a.example");
}
