use cloudkeel_controllers::view::View as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

fn service(name: &str, kind: &str, ingress: &Value) -> Arc<ServiceView> {
    let service = json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"type": kind, "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]},
        "status": {"loadBalancer": {"ingress": ingress}},
    });
    Arc::new(ServiceView::of(&serde_json::from_value(service).unwrap()))
}

fn report(service: &str, state: BalancerState, waits_for: Option<&str>) -> BalancerReport {
    BalancerReport {
        service: service.to_owned(),
        clouds: vec!["fsn".to_owned()],
        state,
        waits_for: waits_for.map(str::to_owned),
        targets: Vec::new(),
        more_targets: 0,
        health: None,
    }
}

fn managed(balancers: Vec<BalancerReport>) -> ManagedResources {
    ManagedResources {
        balancers,
        ..ManagedResources::default()
    }
}

#[test]
fn services_with_a_balancer_are_listed_with_their_ports() {
    let services = [
        service("web", "LoadBalancer", &json!([{"hostname": "lb.test"}])),
        service("api", "LoadBalancer", &json!([])),
        service("db", "ClusterIP", &json!([])),
    ];
    let rows = balancers(&services, &ManagedResources::default());
    let rendered: Vec<_> = rows
        .iter()
        .map(|row| (row.service.as_str(), row.state.as_str()))
        .collect();
    assert_eq!(
        rendered,
        [("shop/api", "pending"), ("shop/web", "in service")]
    );
    assert_eq!(rows[1].addresses, ["lb.test"]);
    assert_eq!(rows[1].listeners, ["TCP 80 → 30080"]);
}

#[test]
fn a_service_of_another_controller_is_shown_as_such() {
    let services = [service("web", "LoadBalancer", &json!([]))];
    let managed = ManagedResources {
        unserved_services: vec!["shop/web".to_owned()],
        ..ManagedResources::default()
    };
    let rows = balancers(&services, &managed);
    assert_eq!(rows[0].state, "not served here");
    assert_eq!(rows[0].level, Level::Neutral);
}

#[test]
fn a_balancer_says_how_far_it_is_and_what_it_waits_for() {
    use BalancerState::{Failing, Settled, Waiting, Working};
    let at = json!([{"ip": "192.0.2.1"}]);
    let (web, new) = (("LoadBalancer", &at), ("LoadBalancer", &json!([])));
    let old = ("ClusterIP", &at);
    let (bad, warning) = (Level::Bad, Level::Warning);
    for ((kind, ingress), state, why, expected, level) in [
        (web, Settled, None, "in service", Level::Good),
        (web, Working, None, "in service, changes", Level::Good),
        (web, Waiting, Some("busy"), "in service, waits", warning),
        (web, Failing, Some("503"), "in service, sync fails", bad),
        (new, Waiting, Some("an action"), "waits", warning),
        (new, Failing, Some("quota"), "sync fails", bad),
        (new, Working, None, "pending", Level::Neutral),
        (old, Waiting, None, "is being removed", Level::Neutral),
        (old, Failing, Some("401"), "cannot be removed", bad),
    ] {
        let services = [service("web", kind, ingress)];
        let report = BalancerReport {
            targets: vec![target("n", TargetUse::Serving)],
            ..report("shop/web", state, why)
        };
        let rows = balancers(&services, &managed(vec![report]));
        assert_eq!(rows.len(), 1, "{expected}");
        assert_eq!((rows[0].state.as_str(), rows[0].level), (expected, level));
        assert_eq!(rows[0].note.as_deref(), why, "{expected}");
        assert_eq!(rows[0].cloud, "fsn", "{expected}");
    }
}

#[test]
fn a_balancer_whose_service_is_gone_is_shown_until_it_is_removed() {
    let left = report("shop/old", BalancerState::Waiting, None);
    let rows = balancers(&[], &managed(vec![left]));
    assert_eq!(rows[0].service, "shop/old");
    assert_eq!(rows[0].state, "is being removed");
}

fn target(node: &str, role: TargetUse) -> TargetReport {
    TargetReport {
        node: node.to_owned(),
        role,
        health: None,
    }
}

#[test]
fn targets_are_shown_with_what_keeps_them_from_serving() {
    let uses = [
        (TargetUse::Draining, "draining", Level::Warning),
        (TargetUse::Leaving, "leaving", Level::Neutral),
        (TargetUse::Joining, "joining", Level::Neutral),
        (TargetUse::NoProviderId, "no provider ID", Level::Warning),
        (TargetUse::NoAddress, "no address", Level::Warning),
        (TargetUse::ShutDown, "shut down", Level::Warning),
        (TargetUse::NotReady, "not ready", Level::Warning),
        (TargetUse::Serving, "serving", Level::Good),
    ];
    let report = BalancerReport {
        targets: uses.iter().map(|(role, ..)| target("n", *role)).collect(),
        more_targets: 7,
        ..report("shop/web", BalancerState::Settled, None)
    };
    let rows = balancers(&[], &managed(vec![report]));
    let shown = rows[0].targets.iter();
    let shown: Vec<_> = shown.map(|row| (row.state.as_str(), row.level)).collect();
    assert_eq!(shown, uses.map(|(_, state, level)| (state, level)));
    assert_eq!(rows[0].more_targets, 7);
}

/// A settled balancer with two targets, checked a while ago.
fn checked(states: [HealthState; 2]) -> BalancerReport {
    let serving = |node: &str, health| TargetReport {
        health: Some(health),
        ..target(node, TargetUse::Serving)
    };
    let count = |which| states.iter().filter(|state| **state == which).count();
    BalancerReport {
        targets: vec![serving("a", states[0]), serving("b", states[1])],
        health: Some(HealthReport {
            summary: HealthSummary {
                healthy: count(HealthState::Healthy),
                unhealthy: count(HealthState::Unhealthy),
                unknown: count(HealthState::Unknown),
            },
            seconds_ago: 130,
        }),
        ..report("shop/web", BalancerState::Settled, None)
    }
}

#[test]
fn what_the_cloud_says_of_targets_is_shown_as_a_problem() {
    let (up, down, new) = (
        HealthState::Healthy,
        HealthState::Unhealthy,
        HealthState::Unknown,
    );
    let at = json!([{"ip": "192.0.2.1"}]);
    for (policy, states, state, level, rows_of_targets) in [
        (
            "Cluster",
            [up, down],
            "in service, targets unhealthy",
            Level::Warning,
            [("serving, healthy", Level::Good), ("unhealthy", Level::Bad)],
        ),
        (
            "Local",
            [up, down],
            "in service",
            Level::Good,
            [("serving, healthy", Level::Good), ("unhealthy", Level::Bad)],
        ),
        (
            "Local",
            [down, down],
            "in service, no target serves",
            Level::Bad,
            [("unhealthy", Level::Bad), ("unhealthy", Level::Bad)],
        ),
        (
            "Cluster",
            [up, new],
            "in service",
            Level::Good,
            [
                ("serving, healthy", Level::Good),
                ("serving, not checked yet", Level::Neutral),
            ],
        ),
    ] {
        let mut service = service("web", "LoadBalancer", &at);
        if policy == "Local" {
            Arc::make_mut(&mut service).traffic_policy = TrafficPolicy::Local;
        }
        let rows = balancers(&[service], &managed(vec![checked(states)]));
        let row = &rows[0];
        assert_eq!(
            (row.state.as_str(), row.level),
            (state, level),
            "{states:?}"
        );
        let shown: Vec<_> = row
            .targets
            .iter()
            .map(|it| (it.state.as_str(), it.level))
            .collect();
        assert_eq!(shown, rows_of_targets);
        let healthy = states.iter().filter(|state| **state == up).count();
        let expected = format!("{healthy} of 2 targets healthy, checked 2m ago");
        assert_eq!(row.health.as_deref(), Some(expected.as_str()));
    }
}

#[test]
fn routes_say_whose_they_are_and_why_one_is_missing() {
    let why = "the table is full".to_owned();
    for (role, state, level) in [
        (RouteUse::Serving, "ours", Level::Good),
        (RouteUse::Foreign, "not ours", Level::Neutral),
        (RouteUse::Suspect, "leads nowhere", Level::Warning),
        (
            RouteUse::Missing { why },
            "missing: the table is full",
            Level::Bad,
        ),
    ] {
        let row = route(&RouteReport {
            cloud: "fsn".to_owned(),
            destination: "10.244.1.0/24".to_owned(),
            to: "a".to_owned(),
            role,
        });
        assert_eq!((row.state.as_str(), row.level), (state, level));
        assert_eq!((row.cloud.as_str(), row.to.as_str()), ("fsn", "a"));
    }
}

#[test]
fn events_keep_their_place_time_and_count() {
    let row = event(&RecentEvent {
        id: 7,
        at: Timestamp::UNIX_EPOCH,
        source: "service-controller",
        severity: Severity::Warning,
        reason: "SyncLoadBalancerFailed".to_owned(),
        object: "Service/shop/web".to_owned(),
        message: "no".to_owned(),
        count: 3,
    });
    let expected = EventRow {
        id: "7".to_owned(),
        time: "1970-01-01T00:00:00Z".to_owned(),
        level: Level::Warning,
        reason: "SyncLoadBalancerFailed".to_owned(),
        object: "Service/shop/web".to_owned(),
        message: "no".to_owned(),
        count: 3,
    };
    assert_eq!(row, expected);
}
