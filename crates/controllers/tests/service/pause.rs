//! Services that are paused, and what happens to drift as each Service says.

use cloudkeel_controllers::Controller as _;
use cloudkeel_controllers::report::BalancerState;
use serde_json::{Value, json};

use crate::lab::{Lab, MINUTE, SECOND};

fn annotated(key: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {"annotations": {key: value.into()}}})
}

fn paused(value: impl Into<Value>) -> Value {
    annotated("cloudkeel.dev/paused", value)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_or_changed_for_a_paused_service_until_the_pause_ends() {
    let mut lab = Lab::with_nodes(2).await;
    lab.serve(2).await;
    lab.api.world().change_service("svc-0", &paused("true"));
    lab.pass(SECOND).await;
    lab.forget();
    let ports = json!({"spec": {"ports": [{"name": "a", "port": 81, "nodePort": 30081}]}});
    lab.api.world().change_service("svc-0", &ports);
    let id = lab.balancer("svc-0").unwrap().id;
    lab.cloud.drop_listener(id, 80).unwrap();
    lab.add_node("late");
    lab.pass(MINUTE * 45).await;
    lab.restart().await;
    lab.pass(MINUTE).await;
    assert_eq!(lab.patched("svc-0"), []);
    assert_eq!(
        lab.targets("svc-0").len(),
        2,
        "it does not follow the Nodes"
    );
    assert_eq!(lab.targets("svc-1").len(), 3, "the other one does");
    assert_eq!(lab.events("svc-0", "LoadBalancerDrifted"), [""; 0]);
    let reports = lab.controller().report().managed.balancers;
    let report = reports
        .iter()
        .find(|it| it.service == "default/svc-0")
        .unwrap();
    assert_eq!(report.state, BalancerState::Paused);
    let why = "paused by cloudkeel.dev/paused";
    assert_eq!(report.waits_for.as_deref(), Some(why));

    lab.api
        .world()
        .change_service("svc-0", &paused(Value::Null));
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.targets("svc-0").len(), 3);
    let ports: Vec<_> = lab
        .balancer("svc-0")
        .unwrap()
        .listeners
        .into_iter()
        .map(|it| it.port)
        .collect();
    assert_eq!(ports, [81]);
    assert_eq!(lab.events("svc-0", "Resumed").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_reported_once_also_one_that_cannot_be_read() {
    for (value, expected) in [
        (
            "true",
            "The Service is paused by cloudkeel.dev/paused: nothing is written to the Service or changed for it in \
                  the cloud until the annotation is removed",
        ),
        (
            "yes",
            "The Service is paused, because a pause cannot be read: cloudkeel.dev/paused: \"yes\": expected `true` or \
                 `false`: nothing is written to the Service or changed for it in the cloud until the annotation is \
                 removed",
        ),
    ] {
        let lab = Lab::with_nodes(1).await;
        lab.api.world().create_service("web", &paused(value));
        lab.pass(MINUTE).await;
        let labels = json!({"metadata": {"annotations": {"a": "b"}}});
        lab.api.world().change_service("web", &labels);
        lab.pass(MINUTE).await;
        assert_eq!(lab.events("web", "Paused"), [expected]);
        assert_eq!(lab.cloud.calls().mutations(), 0, "{value}");
        assert!(!lab.has_finalizer("web"), "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_paused_service_waits_until_the_pause_ends() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    lab.api.world().change_service("svc-0", &paused("true"));
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE * 30).await;
    assert!(lab.is_held("svc-0"));
    assert_eq!(
        (lab.cloud.balancers().len(), lab.cloud.calls().mutations()),
        (1, 0)
    );
    let said = lab.events("svc-0", "Paused");
    assert!(
        said.last().unwrap().contains("the deletion of the Service"),
        "{said:?}"
    );
    lab.api.world().change_service("svc-0", &paused("false"));
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.api.world().service("svc-0"), None);
    assert_eq!(lab.cloud.balancers(), []);
}

#[tokio::test(start_paused = true)]
async fn the_balancer_of_a_paused_service_that_lost_its_finalizer_stays() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(1).await;
    lab.api.world().change_service("svc-0", &paused("true"));
    lab.pass(SECOND).await;
    let none = json!({"metadata": {"finalizers": null}});
    lab.api.world().change_service("svc-0", &none);
    lab.api.world().delete_service("svc-0");
    lab.pass(MINUTE * 30).await;
    assert_eq!(lab.api.world().service("svc-0"), None);
    assert_eq!(
        (lab.cloud.balancers().len(), lab.cloud.calls().mutations()),
        (1, 0)
    );
    assert_eq!(*lab.observed.left_over.lock().unwrap(), 1, "an orphan");
}

#[tokio::test(start_paused = true)]
async fn each_service_says_what_happens_to_drift() {
    let lab = Lab::with_nodes(1).await;
    lab.serve(4).await;
    let policies = ["repair", "report", "off", "sometimes"];
    for (index, policy) in policies.into_iter().enumerate() {
        let policy = annotated("cloudkeel.dev/lb-drift", policy);
        lab.api
            .world()
            .change_service(&format!("svc-{index}"), &policy);
    }
    lab.pass(SECOND * 5).await;
    let refused = lab.events("svc-3", "SyncLoadBalancerFailed");
    let expected = "cloudkeel.dev/lb-drift: \"sometimes\": expected `repair`, `report` or `off`";
    assert!(refused[0].contains(expected), "{refused:?}");
    for index in 0..3 {
        let id = lab.balancer(&format!("svc-{index}")).unwrap().id;
        lab.cloud.drop_listener(id, 80).unwrap();
    }
    lab.pass(MINUTE * 25).await;
    for (index, repaired, reported) in [(0, true, true), (1, false, true), (2, false, false)] {
        let service = format!("svc-{index}");
        let listeners = lab.balancer(&service).unwrap().listeners;
        assert_eq!(!listeners.is_empty(), repaired, "{service}");
        let events = lab.events(&service, "LoadBalancerDrifted");
        assert_eq!(!events.is_empty(), reported, "{service}: {events:?}");
    }
}
