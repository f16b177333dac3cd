//! Rates, sizes and numbers that a cloud enforces.

use cloudkeel_testkit::simulated_cloud::{
    Limits, MachineSpec, Permission, RateLimit, Settings, SimulatedCloud,
};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Rest, SECOND};

fn two_per_ten_seconds() -> Settings {
    Settings {
        rate_limit: Some(RateLimit {
            burst: 2,
            refill: SECOND * 10,
        }),
        ..Settings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_calls_are_refused_with_the_time_to_come_again() {
    let cloud = SimulatedCloud::new(two_per_ten_seconds());
    let rest = Rest::of(&cloud);
    for (case, wait, status, remaining, reset) in [
        ("first", 0, 200, "1", "10"),
        ("second", 0, 200, "0", "20"),
        ("too many", 0, 429, "0", "20"),
        ("a little later", 9, 429, "0", "11"),
        ("one is back", 1, 200, "0", "20"),
        ("all are back", 60, 200, "1", "10"),
    ] {
        tokio::time::advance(SECOND * wait).await;
        let answer = rest.get("/v1/scope").await;
        assert_eq!(answer.status, status, "{case}");
        assert_eq!(answer.header("ratelimit-limit"), "2", "{case}");
        assert_eq!(answer.header("ratelimit-remaining"), remaining, "{case}");
        assert_eq!(answer.header("ratelimit-reset"), reset, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_token_has_its_own_bucket_and_unknown_tokens_have_none() {
    let cloud = SimulatedCloud::new(two_per_ten_seconds());
    cloud.grant("t2", SimulatedCloud::PROJECT, Permission::ReadOnly);
    let (one, two) = (Rest::of(&cloud), Rest::with_token(&cloud, "t2"));
    for _ in 0..2 {
        assert_eq!(one.get("/v1/scope").await.status, 200);
    }
    let refused = one.get("/v1/scope").await;
    assert_eq!((refused.status, refused.code()), (429, "rate_limited"));
    assert_eq!(refused.header("retry-after"), "10");
    assert_eq!(two.get("/v1/scope").await.status, 200);
    let stranger = Rest::with_token(&cloud, "x").get("/v1/scope").await;
    assert_eq!(stranger.status, 401);
    assert!(!stranger.headers.contains_key("ratelimit-limit"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_one_too_many_changes_nothing() {
    let cloud = SimulatedCloud::new(two_per_ten_seconds());
    let rest = Rest::of(&cloud);
    for (name, status) in [("a", 201), ("b", 201), ("c", 429)] {
        let answer = rest.post("/v1/machines", json!({"name": name})).await;
        assert_eq!(answer.status, status, "{name}");
    }
    assert_eq!(cloud.machines().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_full_project_says_so_and_changes_nothing() {
    let cloud = SimulatedCloud::new(Settings {
        limits: Limits {
            targets: 1,
            listeners: 1,
            balancers: 1,
            routes: 1,
        },
        ..Settings::default()
    });
    let machines = cloud
        .add_machines(2, |i| MachineSpec::named(format!("n{i}")))
        .unwrap();
    let ids: Vec<u64> = machines.iter().map(|m| m.id).collect();
    let rest = Rest::of(&cloud);
    let listener = |port: u16| json!({"protocol": "tcp", "port": port, "targetPort": 1});
    let route = |net: &str| json!({"destination": net, "hop": {"machine": ids[0]}});
    let made = rest.post("/v1/balancers", json!({"name": "a"})).await;
    let path = format!("/v1/balancers/{}", made.body["balancer"]["id"]);
    assert_eq!(
        rest.post("/v1/routes", route("10.244.0.0/24")).await.status,
        201
    );
    let before = (cloud.balancers(), cloud.routes());
    for (case, method, path, body) in [
        (
            "balancers",
            Method::POST,
            "/v1/balancers".to_owned(),
            json!({"name": "b"}),
        ),
        (
            "routes",
            Method::POST,
            "/v1/routes".into(),
            route("10.244.1.0/24"),
        ),
        (
            "targets",
            Method::POST,
            format!("{path}/targets"),
            json!({"add": [{"machine": ids[0]}, {"machine": ids[1]}]}),
        ),
        (
            "listeners",
            Method::PUT,
            format!("{path}/listeners"),
            json!({"listeners": [listener(1), listener(2)]}),
        ),
    ] {
        let answer = rest.call(method, &path, body, None).await;
        assert_eq!(
            (answer.status, answer.code()),
            (422, "limit_exceeded"),
            "{case}"
        );
    }
    assert_eq!((cloud.balancers(), cloud.routes()), before);
    let gone = rest.call(Method::DELETE, &path, Value::Null, None).await;
    assert_eq!(gone.status, 200);
    let other = rest.post("/v1/balancers", json!({"name": "b"})).await;
    assert_eq!(other.status, 201, "the limit allows one again");
}
