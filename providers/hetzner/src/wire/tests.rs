use serde_json::{Value, json};

use super::*;

#[test]
fn what_is_null_is_nothing() {
    let read = |value: Value| serde_json::from_value::<RobotServer>(value).unwrap();
    let null = read(json!({
        "server_number": 7, "server_name": null, "server_ip": null, "server_ipv6_net": null,
        "product": null, "dc": null,
    }));
    assert_eq!(null, read(json!({"server_number": 7})));
    assert_eq!((null.ipv4(), null.ipv6()), (None, None));

    let balancer: LoadBalancer = serde_json::from_value(json!({
        "id": 1, "name": "b", "public_net": {"enabled": false, "ipv4": null, "ipv6": null},
        "load_balancer_type": {"id": 1, "name": "lb11", "max_targets": 25, "max_services": 5},
        "algorithm": {"type": "round_robin"}, "private_net": null, "protection": null,
        "labels": null, "targets": null,
        "services": [{
            "protocol": "http", "listen_port": 80, "destination_port": 80, "proxyprotocol": null,
            "http": {"certificates": null, "redirect_http": null, "sticky_sessions": null},
            "health_check": {"protocol": "tcp", "port": 80, "http": null},
        }],
    }))
    .unwrap();
    assert_eq!(balancer.services[0].http, Some(ServiceHttp::default()));
}
