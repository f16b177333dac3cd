use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudProvider, HealthState, HealthSummary, SystemClock};
use cloudkeel_controllers::report::{
    BalancerReport, BalancerState, HealthReport, LimiterReport, QueueReport, RouteReport, RouteUse,
    StopReport, TargetReport, TargetUse, WaitingNode,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::health::{Endpoint, Health};

struct Quiet;

impl CloudProvider for Quiet {
    fn name(&self) -> &'static str {
        "quiet"
    }
}

/// A controller whose deletions are stopped, or not.
struct Careful {
    stopped: bool,
}

#[async_trait]
impl Controller for Careful {
    fn name(&self) -> ControllerName {
        ControllerName::CloudNodeLifecycle
    }

    async fn run(&self, _stop: CancellationToken) {}

    fn is_idle(&self) -> bool {
        true
    }

    fn report(&self) -> ControllerReport {
        ControllerReport {
            queue: QueueReport {
                ready: 1,
                working: 2,
                delayed: 3,
                ..QueueReport::default()
            },
            waits_for: vec!["n1: kept".to_owned()],
            deletions: vec![DeletionReport {
                cloud: "fsn".to_owned(),
                stopped: self.stopped.then(|| StopReport {
                    reason: "secret circumstances".to_owned(),
                    since: Timestamp::UNIX_EPOCH,
                    what_to_do: "look",
                }),
                limiter: LimiterReport {
                    burst: 10,
                    left: 4,
                    waiting: 0,
                    interval: Duration::from_secs(10),
                },
            }],
            pending_deletions: Vec::new(),
            managed: managed(),
        }
    }
}

fn managed() -> ManagedResources {
    ManagedResources {
        balancers: vec![BalancerReport {
            service: "shop/web".to_owned(),
            clouds: vec!["fsn".to_owned()],
            state: BalancerState::Settled,
            waits_for: None,
            targets: vec![TargetReport {
                node: "n1".to_owned(),
                role: TargetUse::Serving,
                health: Some(HealthState::Unhealthy),
            }],
            more_targets: 0,
            health: Some(HealthReport {
                summary: HealthSummary {
                    healthy: 2,
                    unhealthy: 1,
                    unknown: 0,
                },
                seconds_ago: 5,
            }),
        }],
        more_balancers: 1,
        routes: vec![RouteReport {
            cloud: "fsn".to_owned(),
            destination: "10.244.1.0/24".to_owned(),
            to: "n1".to_owned(),
            role: RouteUse::Missing {
                why: "full".to_owned(),
            },
        }],
        more_routes: 2,
        unserved_services: vec!["shop/other".to_owned()],
        more_unserved_services: 4,
        waiting_nodes: vec![WaitingNode {
            node: "n2".to_owned(),
            waits_for: "no machine has this name".to_owned(),
            seconds: 12,
        }],
        more_waiting_nodes: 3,
    }
}

fn health(stopped: bool) -> Health {
    let health = Health::new(Timestamp::UNIX_EPOCH);
    let cloud = Cloud::new("fsn", Arc::new(Quiet), None, Arc::new(SystemClock));
    let controller: Arc<dyn Controller> = Arc::new(Careful { stopped });
    health.status_report().serve(&[cloud]);
    health.status_report().set(&controller, true);
    health
}

fn status_of(health: &Health) -> Value {
    serde_json::to_value(health.status_report().read()).unwrap()
}

#[test]
fn a_standby_says_that_it_does_not_lead() {
    let health = Health::new(Timestamp::UNIX_EPOCH);
    let expected = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "leader": {"holder": null, "lease": null, "error": null},
        "leading": false, "controllers": [], "clouds": [], "balancers": [], "moreBalancers": 0,
        "unservedServices": [], "moreUnservedServices": 0,
        "waitingNodes": [], "moreWaitingNodes": 0, "routes": [], "moreRoutes": 0, "events": [],
    });
    assert_eq!(status_of(&health), expected);
}

#[test]
fn controllers_and_clouds_tell_how_they_stand() {
    let expected = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "leader": {"holder": null, "lease": null, "error": null},
        "leading": true,
        "controllers": [{
            "name": "cloud-node-lifecycle-controller",
            "running": true,
            "queue": {"ready": 1, "working": 2, "delayed": 3, "panics": 0},
            "waitsFor": ["n1: kept"],
        }],
        "clouds": [{
            "name": "fsn",
            "provider": "quiet",
            "lastList": null,
            "lastFailure": null,
            "deletions": {
                "cloud": "fsn",
                "stopped": {
                    "reason": "secret circumstances",
                    "since": "1970-01-01T00:00:00Z",
                    "whatToDo": "look",
                },
                "pace": {"burst": 10, "left": 4, "waiting": 0, "intervalSeconds": 10.0},
            },
        }],
        "balancers": [{
            "service": "shop/web",
            "clouds": ["fsn"],
            "state": "settled",
            "waitsFor": null,
            "targets": [{"node": "n1", "use": "serving", "health": "unhealthy"}],
            "moreTargets": 0,
            "health": {"healthy": 2, "unhealthy": 1, "unknown": 0, "secondsAgo": 5},
        }],
        "moreBalancers": 1,
        "unservedServices": ["shop/other"],
        "moreUnservedServices": 4,
        "waitingNodes": [{"node": "n2", "waitsFor": "no machine has this name", "seconds": 12}],
        "moreWaitingNodes": 3,
        "routes": [{
            "cloud": "fsn",
            "destination": "10.244.1.0/24",
            "to": "n1",
            "use": {"missing": {"why": "full"}},
        }],
        "moreRoutes": 2,
        "events": [],
    });
    assert_eq!(status_of(&health(true)), expected);
}

#[test]
fn a_stop_of_deletions_is_a_note_and_never_unhealthy() {
    let note = "note: node deletions of cloud \"fsn\" are stopped; /status says why\n";
    for endpoint in Endpoint::ALL {
        let report = health(true).examine(endpoint, &[]);
        assert!(report.passed(), "{endpoint:?}");
        assert_eq!(report.body(false), "ok", "{endpoint:?}");
        let is_reported = report.body(true).contains(note);
        assert_eq!(is_reported, endpoint == Endpoint::Readyz, "{endpoint:?}");
        assert!(
            !report.body(true).contains("secret"),
            "no authorization is needed"
        );
    }
    let body = health(false).examine(Endpoint::Readyz, &[]).body(true);
    assert_eq!(body, "[+]ping ok\nreadyz check passed\n");
}
