use serde_json::json;

use super::*;

#[test]
fn every_code_is_spelled_as_it_is_sent() {
    for code in ErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
}

#[test]
fn a_target_is_a_machine_or_an_address_with_a_state() {
    let machine = Target {
        at: TargetAt::Machine(7),
        state: TargetState::Serving,
    };
    let address = Target {
        at: TargetAt::Ip([10, 0, 0, 1].into()),
        state: TargetState::Draining,
    };
    for (target, wire) in [
        (machine, json!({"machine": 7, "state": "serving"})),
        (address, json!({"ip": "10.0.0.1", "state": "draining"})),
    ] {
        assert_eq!(serde_json::to_value(target).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Target>(wire).unwrap(), target);
    }
}

#[test]
fn a_check_without_numbers_gets_the_clouds_own() {
    let check: HealthCheck =
        serde_json::from_value(json!({"probe": {"kind": "http", "path": "/healthz"}})).unwrap();
    assert_eq!(
        check,
        HealthCheck {
            probe: Probe::Http {
                path: "/healthz".into()
            },
            ..HealthCheck::default()
        }
    );
}

#[test]
fn a_patch_tells_leaving_alone_from_taking_away() {
    let patch: BalancerPatch = serde_json::from_value(json!({"proxyProtocol": null})).unwrap();
    assert_eq!(patch.proxy_protocol, Some(None));
    assert_eq!(patch.hostname, None);
    assert_eq!(
        serde_json::to_value(&patch).unwrap(),
        json!({"proxyProtocol": null})
    );
    assert!(BalancerPatch::default().is_empty());
    assert!(!patch.is_empty());
}
