//! Actions: from running to success or error.

use cloudkeel_emulator_hetzner::{Fault, Operation};
use serde_json::{Value, json};

use crate::support::{SECOND, lab, lab_with, slow};

#[tokio::test(start_paused = true)]
async fn an_action_runs_makes_progress_and_succeeds() {
    let (_, rest) = lab_with(0, slow());
    let order = json!({"name": "lb", "load_balancer_type": "lb11", "location": "fsn1"});
    let made = rest.post("/v1/load_balancers", order).await;
    let id = made.body["action"]["id"].as_u64().unwrap();
    let balancer = made.body["load_balancer"]["id"].clone();
    for (after, status, progress, finished) in [
        (0, "running", 0, Value::Null),
        (5, "running", 50, Value::Null),
        (5, "success", 100, json!("2026-01-01T00:00:10+00:00")),
        (50, "success", 100, json!("2026-01-01T00:00:10+00:00")),
    ] {
        tokio::time::advance(SECOND * after).await;
        let shown = rest.get(&format!("/v1/actions/{id}")).await.body["action"].clone();
        assert_eq!(
            shown,
            json!({
                "id": id, "command": "create_load_balancer", "status": status, "progress": progress,
                "started": "2026-01-01T00:00:00+00:00", "finished": finished, "error": null,
                "resources": [{"id": balancer, "type": "load_balancer"}],
            })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn actions_are_polled_by_a_list_of_ids() {
    let (cloud, rest) = lab(0);
    let balancers = [rest.balancer("a").await, rest.balancer("b").await];
    cloud.change_settings(|settings| *settings = slow());
    let mut ids = Vec::new();
    for balancer in balancers {
        let body = json!({"type": "least_connections"});
        let answer = rest.act(balancer, "change_algorithm", body).await;
        ids.push(answer.body["action"]["id"].as_u64().unwrap());
        tokio::time::advance(SECOND * 5).await;
    }
    let query = format!(
        "id={}&id={}&id=7&page=1&sort=status&sort=id",
        ids[1], ids[0]
    );
    let statuses = async || {
        let answer = rest.get(&format!("/v1/actions?{query}")).await;
        let actions = answer.body["actions"].as_array().unwrap().clone();
        let shown = actions
            .iter()
            .map(|action| (action["id"].as_u64().unwrap(), action["status"].clone()));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(
        statuses().await,
        [(ids[1], json!("running")), (ids[0], json!("success"))]
    );
    tokio::time::advance(SECOND * 5).await;
    assert_eq!(
        statuses().await,
        [(ids[0], json!("success")), (ids[1], json!("success"))]
    );
}

#[tokio::test(start_paused = true)]
async fn an_action_that_fails_has_no_effect() {
    let (cloud, rest) = lab(1);
    let id = rest.balancer("lb").await;
    cloud.change_settings(|settings| *settings = slow());
    cloud
        .faults()
        .once(Operation::AddService, Fault::action_fails("action_failed"));
    let service = json!({"protocol": "tcp", "listen_port": 80, "destination_port": 30080});
    let answer = rest.act(id, "add_service", service).await;
    let action = answer.body["action"]["id"].clone();
    assert_eq!(answer.body["action"]["status"], "running");
    assert_eq!(answer.body["action"]["error"], Value::Null);
    tokio::time::advance(SECOND * 10).await;
    let shown = rest.get(&format!("/v1/actions/{action}")).await.body["action"].clone();
    assert_eq!(
        (&shown["status"], &shown["error"]["code"]),
        (&json!("error"), &json!("action_failed"))
    );
    assert!(shown["error"]["message"].is_string());
    assert_eq!(rest.shown(id).await["services"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn an_action_without_duration_is_over_at_once() {
    let (_, rest) = lab(0);
    let id = rest.balancer("lb").await;
    let answer = rest
        .act(id, "change_algorithm", json!({"type": "least_connections"}))
        .await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.body["action"]["status"], "success");
    assert_eq!(
        rest.shown(id).await["algorithm"]["type"],
        "least_connections"
    );
}
