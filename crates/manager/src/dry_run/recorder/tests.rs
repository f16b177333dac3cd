use cloudkeel_api::{PlannedStep, Route, RouteTarget};
use cloudkeel_controllers::report::{RouteReport, RouteUse};

use super::*;

fn service() -> ServiceRef {
    ServiceRef {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u".into(),
    }
}

fn plan(texts: &[&str]) -> Plan {
    let steps = texts.iter().map(|text| PlannedStep {
        text: (*text).to_owned(),
        action: StepAction::Create,
        destructive: false,
        ineffective: false,
    });
    Plan {
        steps: steps.collect(),
    }
}

fn write(name: &str, text: &str) -> ObjectWrite {
    ObjectWrite {
        path: format!("/api/v1/nodes/{name}"),
        uid: "u".into(),
        resource_version: None,
        patch: None,
        step: DryRunStep {
            controller: "cloud-node-controller".into(),
            action: StepAction::Change,
            object: format!("Node {name}"),
            cloud: None,
            text: text.into(),
        },
    }
}

fn route(destination: &str) -> Route {
    Route {
        name: String::new(),
        destination: destination.parse().unwrap(),
        target: RouteTarget::Elsewhere { hop: "h".into() },
        blackhole: true,
        follows_addresses: false,
    }
}

fn texts(recorder: &Recorder) -> Vec<String> {
    let steps = recorder.report().steps.into_iter();
    steps.map(|step| step.text).collect()
}

#[test]
fn a_step_is_recorded_once_and_a_plan_replaces_the_one_before() {
    let recorder = Recorder::default();
    recorder.note_write(write("b", "two"));
    recorder.note_write(write("a", "one"));
    recorder.note_write(write("a", "one"));
    assert_eq!(texts(&recorder), ["one", "two"]);
    recorder.set_balancer("c", &service(), &plan(&["create it", "add a target"]));
    recorder.set_balancer("c", &service(), &plan(&["add a target"]));
    assert_eq!(texts(&recorder), ["one", "two", "add a target"]);
    recorder.set_balancer("c", &service(), &plan(&[]));
    recorder.forget_write(&write("b", "two"));
    assert_eq!(texts(&recorder), ["one"]);
}

#[test]
fn what_is_unconfirmed_is_shown_until_it_is_planned_for_certain() {
    let recorder = Recorder::default();
    recorder.note_suspect_route(&RouteReport {
        cloud: "c".into(),
        destination: "10.0.1.0/24".into(),
        to: "h".into(),
        role: RouteUse::Suspect,
    });
    recorder.note_pending_deletion(&PendingDeletion {
        node: "gone".into(),
        confirmations: 2,
    });
    assert_eq!(
        texts(&recorder),
        [
            "delete Node gone, its instance is gone, after 2 more confirmations",
            "delete route 10.0.1.0/24 to h, after a second list confirms that it leads nowhere",
        ]
    );
    recorder.set_routes("c", &[RouteChange::Delete(route("10.0.1.0/24"))]);
    let deleted = DryRunStep {
        action: StepAction::Delete,
        ..write("gone", "delete Node gone").step
    };
    recorder.note_write(ObjectWrite {
        step: deleted,
        ..write("gone", "")
    });
    assert_eq!(
        texts(&recorder),
        ["delete Node gone", "delete route 10.0.1.0/24 to h"]
    );
}

#[test]
fn calls_are_counted_by_cloud_and_writes_apart() {
    let recorder = Arc::new(Recorder::default());
    let observer = recorder.observer("c", Arc::new(cloudkeel_api::NoObserver));
    let call = CallRecord {
        operation: "GET /servers",
        mutating: false,
        priority: cloudkeel_api::Priority::Normal,
        status: Some(200),
        error: None,
        duration: std::time::Duration::ZERO,
        attempt: 1,
    };
    observer.call_finished(&call);
    observer.call_finished(&call);
    recorder.set_balancer("c", &service(), &plan(&["create it"]));
    recorder.note_write(write("a", "one"));
    recorder.complete();
    let report = recorder.report();
    let counted = CloudCalls {
        cloud: "c".into(),
        made: 2,
        planned: 1,
    };
    assert_eq!((report.clouds, report.api_writes), (vec![counted], 1));
    assert!(report.complete);
}

#[test]
fn a_failed_read_makes_the_plan_incomplete_until_it_succeeds() {
    let recorder = Recorder::default();
    recorder.complete();
    recorder.note_failure("c", "routes", Some("routes cannot be read: no".into()));
    let report = recorder.report();
    assert!(!report.complete);
    assert_eq!(report.failures, ["cloud c: routes cannot be read: no"]);
    recorder.note_failure("c", "routes", None);
    assert!(recorder.report().complete);
}
