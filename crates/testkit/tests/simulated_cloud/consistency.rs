//! What takes time: actions, booting, reads that lag, machines that linger.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{Consistency, MachineSpec, Settings, SimulatedCloud};
use http::Method;
use serde_json::{Value, json};
use tokio::time::advance;

use crate::support::{Rest, SECOND};

fn slow() -> Settings {
    Settings {
        action_duration: SECOND * 30,
        ..Settings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_is_pending_and_locked_while_it_is_worked_on() {
    let cloud = SimulatedCloud::new(slow());
    let rest = Rest::of(&cloud);
    let made = rest.post("/v1/balancers", json!({"name": "a"})).await;
    let balancer = &made.body["balancer"];
    assert_eq!(balancer["state"], "pending");
    assert_eq!(balancer["addresses"], json!([]), "none until it is built");
    let action = format!("/v1/actions/{}", made.body["action"]["id"]);
    assert_eq!(rest.get(&action).await.body["status"], "running");

    let path = format!("/v1/balancers/{}", balancer["id"]);
    for (method, path, body) in [
        (Method::PATCH, path.clone(), json!({"name": "b"})),
        (
            Method::PUT,
            format!("{path}/listeners"),
            json!({"listeners": []}),
        ),
        (Method::POST, format!("{path}/targets"), json!({})),
        (Method::DELETE, path.clone(), Value::Null),
    ] {
        let answer = rest.call(method.clone(), &path, body, None).await;
        assert_eq!(
            (answer.status, answer.code()),
            (423, "locked"),
            "{method} {path}"
        );
    }

    advance(SECOND * 30).await;
    assert_eq!(rest.get(&action).await.body["status"], "done");
    let built = rest.get(&path).await;
    assert_eq!(built.body["state"], "active");
    assert_eq!(built.body["addresses"], json!(["198.18.0.1"]));

    let going = rest.call(Method::DELETE, &path, Value::Null, None).await;
    assert_eq!(going.body["balancer"]["state"], "deleting");
    assert_eq!(rest.get(&path).await.body["state"], "deleting");
    advance(SECOND * 30).await;
    assert_eq!(rest.get(&path).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn machines_boot_and_stop_in_their_time() {
    let cloud = SimulatedCloud::new(slow());
    let rest = Rest::of(&cloud);
    let made = rest.post("/v1/machines", json!({"name": "a"})).await;
    let path = format!("/v1/machines/{}", made.body["id"]);
    assert_eq!(made.body["state"], "starting");
    advance(SECOND * 30).await;
    assert_eq!(rest.get(&path).await.body["state"], "running");
    let off = rest.post(&format!("{path}/power-off"), Value::Null).await;
    assert_eq!(off.body["state"], "stopping");
    advance(SECOND * 30).await;
    assert_eq!(rest.get(&path).await.body["state"], "off");
    rest.post(&format!("{path}/power-on"), Value::Null).await;
    rest.call(Method::DELETE, &path, Value::Null, None).await;
    advance(SECOND * 30).await;
    assert_eq!(
        rest.get(&path).await.status,
        404,
        "it does not come back to life"
    );
}

#[tokio::test(start_paused = true)]
async fn lists_and_single_reads_lag_each_by_its_own_time() {
    let cloud = SimulatedCloud::new(Settings {
        consistency: Consistency {
            list: SECOND * 20,
            get: SECOND * 5,
        },
        ..Settings::default()
    });
    let rest = Rest::of(&cloud);
    let old = cloud.add_machine(MachineSpec::named("old")).unwrap().id;
    advance(SECOND * 60).await;
    let new = cloud.add_machine(MachineSpec::named("new")).unwrap().id;
    cloud.rename(old, "renamed").unwrap();
    for (case, wait, listed, name, got) in [
        ("at once", 0, vec![old], "old", 404),
        ("single reads catch up", 5, vec![old], "renamed", 200),
        ("lists do not yet", 14, vec![old], "renamed", 200),
        ("lists catch up", 1, vec![old, new], "renamed", 200),
    ] {
        advance(SECOND * wait).await;
        assert_eq!(rest.get("/v1/machines").await.ids(), listed, "{case}");
        let read = rest.get(&format!("/v1/machines/{old}")).await;
        assert_eq!(read.body["name"], name, "{case}");
        let read = rest.get(&format!("/v1/machines/{new}")).await;
        assert_eq!(read.status, got, "{case}");
    }
    cloud.destroy(old).unwrap();
    assert_eq!(
        rest.get("/v1/machines").await.ids(),
        [old, new],
        "still listed"
    );
    advance(SECOND * 20).await;
    assert_eq!(rest.get("/v1/machines").await.ids(), [new]);
}

#[tokio::test(start_paused = true)]
async fn changes_go_by_what_really_is_and_not_by_what_is_shown() {
    let cloud = SimulatedCloud::new(Settings {
        consistency: Consistency::both(SECOND * 60),
        ..Settings::default()
    });
    let rest = Rest::of(&cloud);
    let made = rest.post("/v1/balancers", json!({"name": "a"})).await;
    let path = format!("/v1/balancers/{}", made.body["balancer"]["id"]);
    assert_eq!(rest.get(&path).await.status, 404, "not shown yet");
    let again = rest.post("/v1/balancers", json!({"name": "a"})).await;
    assert_eq!(again.code(), "already_exists", "but there");
    let etag = made.header("etag");
    let patch = rest
        .call(Method::PATCH, &path, json!({"name": "b"}), Some(etag))
        .await;
    assert_eq!(patch.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_machine_lingers_as_long_as_it_is_set() {
    let cloud = SimulatedCloud::new(Settings {
        keep_deleted: Duration::from_mins(10),
        ..Settings::default()
    });
    let id = cloud.add_machine(MachineSpec::named("a")).unwrap().id;
    cloud.destroy(id).unwrap();
    let rest = Rest::of(&cloud);
    let path = format!("/v1/machines/{id}");
    assert_eq!(rest.get(&path).await.body["state"], "deleted");
    let power = rest.post(&format!("{path}/power-on"), Value::Null).await;
    assert_eq!(power.code(), "invalid");
    advance(Duration::from_mins(10)).await;
    assert_eq!(rest.get(&path).await.status, 404);
}
