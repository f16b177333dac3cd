//! Lists, access and rate limits.

use std::time::Duration;

use cloudkeel_emulator_digitalocean::{Fault, Operation, Permission, RateLimit, Settings};

use crate::support::{Rest, lab, lab_with};

#[tokio::test(start_paused = true)]
async fn lists_have_pages_with_links_to_their_neighbours_and_a_total() {
    let (_, rest) = lab(45);
    let first = rest.get("/v2/droplets").await;
    assert_eq!(first.body["droplets"].as_array().unwrap().len(), 20);
    assert_eq!(first.body["meta"]["total"], 45);
    let pages = &first.body["links"]["pages"];
    assert!(
        pages["next"].as_str().unwrap().contains("page=2"),
        "{pages}"
    );
    assert!(
        pages["last"].as_str().unwrap().contains("page=3"),
        "{pages}"
    );
    assert!(pages["prev"].is_null());
    let last = rest.get("/v2/droplets?page=3").await;
    assert_eq!(last.body["droplets"].as_array().unwrap().len(), 5);
    assert!(last.body["links"]["pages"]["next"].is_null());
    assert!(
        last.body["links"]["pages"]["prev"]
            .as_str()
            .unwrap()
            .contains("page=2")
    );
    let all = rest.get("/v2/droplets?per_page=1000").await;
    assert_eq!(all.body["droplets"].as_array().unwrap().len(), 45);
    assert_eq!(all.body["links"], serde_json::json!({}));
}

#[tokio::test(start_paused = true)]
async fn droplets_are_found_by_name_and_by_id() {
    let (cloud, rest) = lab(3);
    cloud.add_droplet("node-1");
    let named = rest.get("/v2/droplets?name=node-1").await;
    assert_eq!(named.body["droplets"].as_array().unwrap().len(), 2);
    let id = cloud.droplets()[0].id;
    let one = rest.get(&format!("/v2/droplets/{id}")).await;
    assert_eq!(one.body["droplet"]["name"], "node-0");
    assert_eq!(one.body["droplet"]["networks"]["v4"][0]["type"], "public");
    for missing in ["/v2/droplets/1", "/v2/droplets/x", "/v2/nothing"] {
        let answer = rest.get(missing).await;
        let words = "The resource you were accessing could not be found.";
        assert_eq!(answer.said(), (404, "not_found", words), "{missing}");
        assert!(!answer.body["request_id"].as_str().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_see_their_own_account_and_do_what_they_may() {
    let (cloud, rest) = lab(1);
    let own = rest.get("/v2/account").await.body["account"]["uuid"].clone();
    cloud.add_project("other");
    cloud.grant("reader", "other", Permission::ReadOnly);
    let reader = Rest::with_token(&cloud, "reader");
    let other = reader.get("/v2/account").await.body["account"]["uuid"].clone();
    assert_ne!(own, other);
    assert_eq!(reader.get("/v2/droplets").await.body["meta"]["total"], 0);
    let refused = reader
        .post("/v2/tags", serde_json::json!({"name": "x"}))
        .await;
    assert_eq!((refused.status, refused.said().1), (403, "forbidden"));
    let stranger = Rest::with_token(&cloud, "").get("/v2/account").await;
    assert_eq!(
        stranger.said(),
        (401, "unauthorized", "Unable to authenticate you")
    );
}

#[tokio::test(start_paused = true)]
async fn answers_say_how_many_calls_are_left_and_too_many_are_refused() {
    let settings = Settings {
        rate_limit: Some(RateLimit {
            burst: 2,
            refill: Duration::from_secs(30),
        }),
        ..Settings::default()
    };
    let (_, rest) = lab_with(0, settings);
    let first = rest.get("/v2/account").await;
    assert_eq!(first.header("ratelimit-limit"), "2");
    assert_eq!(first.header("ratelimit-remaining"), "1");
    let reset: u64 = first.header("ratelimit-reset").parse().unwrap();
    assert!(reset > 1_767_225_600, "an epoch: {reset}");
    rest.get("/v2/account").await;
    let refused = rest.get("/v2/account").await;
    assert_eq!(
        refused.said(),
        (429, "too_many_requests", "API Rate limit exceeded.")
    );
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(rest.get("/v2/account").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_refused_with_the_time_to_wait() {
    let (_, rest) = lab(0);
    for _ in 0..250 {
        assert_eq!(rest.get("/v2/account").await.status, 200);
    }
    let refused = rest.get("/v2/account").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "60"));
}

#[tokio::test(start_paused = true)]
async fn faults_are_met_once_as_scripted() {
    let (cloud, rest) = lab(1);
    cloud
        .faults()
        .once(Operation::ListDroplets, Fault::status(500));
    cloud
        .faults()
        .once(Operation::ListDroplets, Fault::Bare { status: 502 });
    let failed = rest.get("/v2/droplets").await;
    assert_eq!(
        failed.said(),
        (500, "server_error", "Unexpected server-side error")
    );
    let bare = rest.get("/v2/droplets").await;
    assert_eq!((bare.status, bare.body), (502, serde_json::Value::Null));
    assert_eq!(rest.get("/v2/droplets").await.status, 200);
}
