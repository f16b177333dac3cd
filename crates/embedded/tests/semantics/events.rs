//! Events, in both groups.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::compare::{agree, cases};

#[tokio::test]
async fn events_agree() {
    agree(
        "events of both groups",
        cases![
            an_event_of_the_core,
            an_event_of_its_group,
            both_groups_show_the_same_events,
            an_event_counts_on,
            an_event_belongs_to_a_namespace,
            events_of_an_object,
            new_events_are_complete,
        ],
    )
    .await;
}

fn core(b: &Bench, name: &str) -> Value {
    let namespace = b.own("x").trim_end_matches("-x").to_owned();
    json!({
        "metadata": {"name": name},
        "involvedObject": {"kind": "Service", "name": "s", "namespace": namespace, "uid": "u-1"},
        "reason": "Ensured", "message": "done", "type": "Normal", "count": 1,
        "source": {"component": "service-controller"},
        "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z",
    })
}

fn modern(b: &Bench, name: &str) -> Value {
    let namespace = b.own("x").trim_end_matches("-x").to_owned();
    json!({
        "metadata": {"name": name},
        "regarding": {"kind": "Service", "name": "s", "namespace": namespace},
        "eventTime": "2020-01-01T00:00:00.123456Z", "reportingController": "x.io/c",
        "reportingInstance": "i", "action": "Sync", "reason": "Synced", "type": "Warning", "note": "done",
    })
}

async fn an_event_of_the_core(b: &Bench) {
    b.post(&b.here("events"), core(b, "e")).await;
    b.get(&b.here("events/e")).await;
}

async fn an_event_of_its_group(b: &Bench) {
    b.post(&b.here_in("events.k8s.io", "events"), modern(b, "e"))
        .await;
    b.get(&b.here_in("events.k8s.io", "events/e")).await;
}

async fn both_groups_show_the_same_events(b: &Bench) {
    b.post(&b.here("events"), core(b, "c")).await;
    b.post(&b.here_in("events.k8s.io", "events"), modern(b, "m"))
        .await;
    b.get(&b.here_in("events.k8s.io", "events")).await;
    b.get(&b.here("events")).await;
}

async fn an_event_counts_on(b: &Bench) {
    b.post(&b.here("events"), core(b, "e")).await;
    let patch = json!({"count": 2, "lastTimestamp": "2020-01-01T00:01:00Z"});
    b.merge(&b.here("events/e"), patch.clone()).await;
    b.strategic(&b.here("events/e"), json!({"count": 3})).await;
    b.merge(&b.here("events/absent"), patch).await;
    b.post(&b.here_in("events.k8s.io", "events"), modern(b, "m"))
        .await;
    let series = json!({"series": {"count": 2, "lastObservedTime": "2020-01-01T00:02:00.000001Z"}});
    b.merge(&b.here_in("events.k8s.io", "events/m"), series)
        .await;
    b.merge(
        &b.here_in("events.k8s.io", "events/m"),
        json!({"reason": "Other"}),
    )
    .await;
}

async fn an_event_belongs_to_a_namespace(b: &Bench) {
    let mut event = core(b, "e");
    event["involvedObject"]["namespace"] = json!("default");
    b.post(&b.here("events"), event.clone()).await;
    event["involvedObject"] = json!({"kind": "Node", "name": "n"});
    b.post(&b.here("events"), event).await;
    let mut event = core(b, &b.own("node"));
    event["involvedObject"] = json!({"kind": "Node", "name": "n"});
    b.post("/api/v1/namespaces/default/events", event).await;
}

async fn events_of_an_object(b: &Bench) {
    b.post(&b.here("events"), core(b, "a")).await;
    let mut other = core(b, "b");
    other["involvedObject"]["name"] = json!("t");
    b.post(&b.here("events"), other).await;
    for selector in [
        "involvedObject.name%3Ds",
        "involvedObject.kind%3DService,reason%3DEnsured",
        "type!%3DNormal",
    ] {
        b.get(&b.here(&format!("events?fieldSelector={selector}")))
            .await;
    }
}

async fn new_events_are_complete(b: &Bench) {
    let path = b.here_in("events.k8s.io", "events");
    let mut event = modern(b, "a");
    event["action"] = json!("");
    event["reportingInstance"] = json!("");
    b.post(&path, event).await;
    let mut event = modern(b, "b");
    event["type"] = json!("Odd");
    b.post(&path, event).await;
    let mut event = modern(b, "c");
    event["eventTime"] = Value::Null;
    b.post(&path, event).await;
}
