//! `ControlRequest` from another process.

use cloudkeel_emulator_hetzner::{HetznerCloud, Permission, ServerStatus};
use serde_json::{Value, json};

use crate::support::{Rest, lab};

#[tokio::test(start_paused = true)]
async fn settings_are_shown_and_set() {
    let (cloud, rest) = lab(0);
    let shown = rest.get("/control/settings").await;
    assert_eq!(
        shown.body["rateLimit"],
        json!({"burst": 3600, "refill": "1s"})
    );
    let set = rest
        .put(
            "/control/settings",
            json!({"actionDuration": "2s", "rateLimit": null}),
        )
        .await;
    assert_eq!(set.status, 204);
    assert_eq!(cloud.settings().action_duration.as_secs(), 2);
    assert_eq!(cloud.settings().rate_limit, None);
    let wrong = rest
        .put("/control/settings", json!({"actionDuratoin": "2s"}))
        .await;
    assert_eq!(wrong.said(), (400, "json_error"));
    assert_eq!(rest.delete("/control/settings").await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn faults_are_written_shown_and_cleared() {
    let (cloud, rest) = lab(0);
    let rule = json!({
        "on": {"operation": "list-servers"}, "times": 1,
        "fault": {"kind": "refused", "code": "conflict"},
    });
    assert_eq!(rest.post("/control/faults", rule).await.status, 204);
    assert_eq!(
        rest.get("/control/faults").await.body[0]["fault"]["code"],
        "conflict"
    );
    assert_eq!(rest.get("/v1/servers").await.said(), (409, "conflict"));
    assert_eq!(rest.get("/v1/servers").await.status, 200);
    let slow = json!({"fault": {"kind": "slow", "by": "1s"}});
    rest.post("/control/faults", slow).await;
    rest.delete("/control/faults").await;
    assert!(cloud.faults().rules().is_empty());
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_for_others_and_control_is_not_among_them() {
    let (cloud, rest) = lab(0);
    rest.get("/v1/servers").await;
    rest.balancer("lb").await;
    let counts = rest.get("/control/calls").await.body;
    assert_eq!(
        counts,
        json!({
            "reads": 1, "mutations": 1,
            "byOperation": {"list-servers": 1, "create-load-balancer": 1},
        })
    );
    let log = rest.get("/control/log").await.body;
    assert_eq!(log[1]["operation"], "create-load-balancer");
    assert_eq!(log[1]["body"]["name"], "lb");
    rest.delete("/control/calls").await;
    assert_eq!(cloud.calls().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn projects_tokens_servers_and_robot_are_controlled() {
    let (cloud, rest) = lab(1);
    let id = cloud.servers()[0].id;
    for (method, path, body) in [
        ("PUT", "/control/projects/other".to_owned(), Value::Null),
        (
            "PUT",
            "/control/tokens/t".to_owned(),
            json!({"project": "other", "permission": "read-only"}),
        ),
        ("PUT", format!("/control/servers/{id}"), json!("off")),
        ("PUT", "/control/robot/login".to_owned(), json!(["u", "p"])),
        (
            "POST",
            "/control/robot/servers".to_owned(),
            json!({"number": 1, "name": "bm", "ip": "192.0.2.1"}),
        ),
    ] {
        let answer = rest.call(method.parse().unwrap(), &path, body).await;
        assert_eq!(answer.status, 204, "{method} {path}: {answer:?}");
    }
    let other = Rest::with_token(&cloud, "t");
    assert_eq!(
        other.get("/v1/servers").await.ids("servers"),
        [] as [u64; 0]
    );
    assert_eq!(cloud.servers()[0].status, ServerStatus::Off);
    assert_eq!(
        rest.get("/control/robot/servers").await.body[0]["dc"],
        "FSN1-DC8"
    );
    for path in [
        "/control/tokens/t".to_owned(),
        "/control/robot/servers/1".to_owned(),
        format!("/control/servers/{id}"),
    ] {
        assert_eq!(rest.delete(&path).await.status, 204, "{path}");
    }
    assert_eq!(other.get("/v1/servers").await.status, 401);
    assert!(cloud.servers().is_empty() && cloud.robot_servers().is_empty());
    let again = rest.delete(&format!("/control/servers/{id}")).await;
    assert_eq!(again.said(), (404, "not_found"));
    cloud.grant("t", HetznerCloud::PROJECT, Permission::ReadOnly);
    assert_eq!(other.get("/v1/servers").await.status, 200);
}
