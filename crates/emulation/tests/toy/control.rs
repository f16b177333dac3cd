//! Control from another process.

use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::cloud::{Settings, Toy, json_of};

async fn control(toy: &Toy, method: Method, path: &str, body: serde_json::Value) -> u16 {
    let sent = toy.send("", method, path, &body.to_string()).await;
    sent.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_cloud_is_controlled_without_a_token_and_without_being_counted() {
    let toy = Toy::new(Settings::default());
    let latency = json!({"latency": {"fixed": "2s"}});
    assert_eq!(
        control(&toy, Method::PUT, "/control/settings", latency).await,
        204
    );
    assert_eq!(toy.settings().latency.fixed, Duration::from_secs(2));
    let (_, shown) = toy.get("/control/settings").await;
    assert_eq!(shown["latency"]["fixed"], "2s");

    let grant = json!({"project": "p", "permission": "read-only"});
    assert_eq!(
        control(&toy, Method::PUT, "/control/tokens/new", grant).await,
        204
    );
    let answer = toy.send("new", Method::GET, "/disks", "").await.unwrap();
    assert_eq!(json_of(&answer)["of"], "p");
    assert_eq!(
        control(&toy, Method::DELETE, "/control/tokens/new", json!(null)).await,
        204
    );
    assert_eq!(
        control(&toy, Method::PUT, "/control/projects/q", json!(null)).await,
        204
    );

    let (_, calls) = toy.get("/control/calls").await;
    let expected = json!({"reads": 1, "mutations": 0, "byOperation": {"list-disks": 1}});
    assert_eq!(calls, expected);
    let (_, log) = toy.get("/control/log").await;
    assert_eq!(log[0]["operation"], "list-disks");
    assert_eq!(
        control(&toy, Method::DELETE, "/control/calls", json!(null)).await,
        204
    );
    assert_eq!(toy.calls().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_line_of_the_script_is_written_in_words() {
    let toy = Toy::new(Settings::default());
    let rule = json!({
        "on": {"operation": "get-disk", "resource": "7"},
        "times": 1,
        "fault": {"kind": "stale", "by": "1m0s"},
    });
    let faults = "/control/faults";
    assert_eq!(control(&toy, Method::POST, faults, rule).await, 204);
    let (_, shown) = toy.get(faults).await;
    assert_eq!(shown[0]["on"]["operation"], "get-disk");
    assert_eq!(shown[0]["fault"]["by"], "1m0s");
    for (case, body) in [
        (
            "an unknown call",
            json!({"on": {"operation": "fly"}, "fault": {"kind": "html"}}),
        ),
        ("an unknown fault", json!({"fault": {"kind": "boredom"}})),
    ] {
        assert_eq!(
            control(&toy, Method::POST, faults, body).await,
            400,
            "{case}"
        );
    }
    assert_eq!(control(&toy, Method::PATCH, faults, json!(null)).await, 405);
    assert_eq!(
        control(&toy, Method::DELETE, faults, json!(null)).await,
        204
    );
    assert_eq!(toy.faults().rules(), []);
}
