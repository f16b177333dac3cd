//! `ControlRequest` the cloud over REST.

use cloudkeel_http::Transport as _;
use cloudkeel_testkit::simulated_cloud::{Settings, SimulatedCloud};
use http::Method;
use serde_json::{Value, json};

use crate::support::Rest;

/// Sends to the router with the control API; status and body come back.
async fn handler(cloud: &SimulatedCloud, method: Method, path: &str, body: Value) -> (u16, Value) {
    let transport = cloud.transport_with_control();
    let mut request = http::Request::new(body.to_string().into());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    let answer = transport.send(request).await.unwrap();
    assert!(answer.headers().contains_key("x-request-id"), "{path}");
    let body = serde_json::from_slice(answer.body()).unwrap_or(Value::Null);
    (answer.status().as_u16(), body)
}

#[tokio::test(start_paused = true)]
async fn the_control_api_is_there_only_when_asked_for() {
    let cloud = SimulatedCloud::new(Settings::default());
    let (status, _) = handler(&cloud, Method::GET, "/control/faults", Value::Null).await;
    assert_eq!(status, 200);
    let without = Rest::of(&cloud).get("/control/faults").await;
    assert_eq!(without.status, 404);
}

#[tokio::test(start_paused = true)]
async fn faults_are_scripted_over_rest() {
    let cloud = SimulatedCloud::new(Settings::default());
    let rule = json!({
        "on": {"operation": "read-scope"},
        "times": 1,
        "fault": {"kind": "status", "status": 503},
    });
    let (status, _) = handler(&cloud, Method::POST, "/control/faults", rule).await;
    assert_eq!(status, 204);
    let slow = json!({"fault": {"kind": "slow", "by": "1m30s"}});
    handler(&cloud, Method::POST, "/control/faults", slow).await;
    let (_, script) = handler(&cloud, Method::GET, "/control/faults", Value::Null).await;
    assert_eq!(script.as_array().unwrap().len(), 2);
    assert_eq!(script[1]["fault"]["by"], "1m30s");
    assert_eq!(Rest::of(&cloud).get("/v1/scope").await.status, 503);
    handler(&cloud, Method::DELETE, "/control/faults", Value::Null).await;
    assert_eq!(Rest::of(&cloud).get("/v1/scope").await.status, 200);

    let nonsense = json!({"fault": {"kind": "earthquake"}});
    let (status, body) = handler(&cloud, Method::POST, "/control/faults", nonsense).await;
    assert_eq!(
        (status, body["error"]["code"].as_str()),
        (400, Some("invalid"))
    );
    let (status, _) = handler(&cloud, Method::PATCH, "/control/faults", Value::Null).await;
    assert_eq!(status, 404);
}

#[tokio::test(start_paused = true)]
async fn settings_are_shown_and_set_over_rest() {
    let cloud = SimulatedCloud::new(Settings::default());
    let (_, mut settings) = handler(&cloud, Method::GET, "/control/settings", Value::Null).await;
    assert_eq!(settings["pageSize"], 50);
    settings["pageSize"] = json!(2);
    settings["actionDuration"] = json!("30s");
    settings["rateLimit"] = json!({"burst": 5, "refill": "1s"});
    let (status, _) = handler(&cloud, Method::PUT, "/control/settings", settings).await;
    assert_eq!(status, 204);
    let now = cloud.settings();
    assert_eq!(now.page_size, 2);
    assert_eq!(now.action_duration.as_secs(), 30);
    assert_eq!(now.rate_limit.unwrap().burst, 5);
}

#[tokio::test(start_paused = true)]
async fn counters_and_log_are_read_and_reset_over_rest() {
    let cloud = SimulatedCloud::new(Settings::default());
    Rest::of(&cloud).get("/v1/scope").await;
    let (_, calls) = handler(&cloud, Method::GET, "/control/calls", Value::Null).await;
    assert_eq!(calls["byOperation"]["read-scope"], 1);
    let (_, log) = handler(&cloud, Method::GET, "/control/log", Value::Null).await;
    assert_eq!(log[0]["operation"], "read-scope");
    assert_eq!(log[0]["outcome"]["status"], 200);
    handler(&cloud, Method::DELETE, "/control/calls", Value::Null).await;
    assert_eq!(cloud.calls().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn projects_and_tokens_are_made_over_rest() {
    let cloud = SimulatedCloud::new(Settings::default());
    handler(&cloud, Method::PUT, "/control/projects/other", Value::Null).await;
    let grant = json!({"project": "other", "permission": "read-only"});
    handler(&cloud, Method::PUT, "/control/tokens/t2", grant).await;
    let rest = Rest::with_token(&cloud, "t2");
    assert_eq!(rest.get("/v1/scope").await.body["project"], "other");
    handler(&cloud, Method::DELETE, "/control/tokens/t2", Value::Null).await;
    assert_eq!(rest.get("/v1/scope").await.status, 401);
}
