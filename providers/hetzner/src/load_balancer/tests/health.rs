//! The health of targets: shown by Node and port, and never a reason to change anything.

use cloudkeel_api::HealthState;
use serde_json::json;

use super::*;

fn target_with(status: &str) -> Target {
    let value = json!({
        "type": "server", "server": {"id": 1}, "use_private_ip": false,
        "health_status": [{"listen_port": 80, "status": status}],
    });
    serde_json::from_value(value).unwrap()
}

#[test]
fn health_is_shown_by_node_and_port() {
    let spec = spec(&[80], &[1]);
    let (node, _) = spec.targets.first_key_value().unwrap();
    for (status, state) in [
        ("healthy", HealthState::Healthy),
        ("unhealthy", HealthState::Unhealthy),
        ("unknown", HealthState::Unknown),
        ("strange", HealthState::Unknown),
    ] {
        let mut balancer = settled();
        balancer.targets = vec![target_with(status)];
        let health = crate::load_balancer::health::target_health(&spec, &balancer);
        let shown: Vec<_> = health
            .iter()
            .map(|it| (&it.target, it.listener, it.state))
            .collect();
        assert_eq!(shown, [(node, Some(80), state)], "{status}");
    }
}

#[test]
fn targets_that_differ_only_in_health_are_equal() {
    assert_eq!(target_with("healthy"), target_with("unhealthy"));
}
