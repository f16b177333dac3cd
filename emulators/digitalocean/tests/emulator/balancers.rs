//! Load balancers.

use std::time::Duration;

use cloudkeel_emulator_digitalocean::Settings;
use serde_json::json;

use crate::support::{balancer, lab, lab_with, with};

const ALL: &str = "/v2/load_balancers";

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_new_without_an_address_and_then_active_with_one() {
    let settings = Settings {
        balancer_duration: Duration::from_mins(1),
        ..Settings::default()
    };
    let (_, rest) = lab_with(1, settings);
    let made = rest.post(ALL, balancer("web")).await;
    assert_eq!(made.status, 202);
    let made = &made.body["load_balancer"];
    assert_eq!((&made["status"], &made["ip"]), (&json!("new"), &json!("")));
    let one = format!("{ALL}/{}", made["id"].as_str().unwrap());
    let early = rest.put(&one, balancer("web")).await;
    let words = "Load Balancer can't be updated while it processes previous actions";
    assert_eq!(early.said(), (403, "forbidden", words));
    tokio::time::sleep(Duration::from_secs(61)).await;
    let shown = rest.get(&one).await.body["load_balancer"].clone();
    assert_eq!(shown["status"], "active");
    assert!(
        shown["ip"].as_str().unwrap().starts_with("198.18."),
        "{shown}"
    );
    assert_eq!(rest.put(&one, balancer("web")).await.status, 200);
    assert_eq!(
        rest.put(&one, balancer("web")).await.status,
        403,
        "at work again"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_change_leaves_out_is_reset_and_what_cannot_change_is_refused() {
    let (cloud, rest) = lab(2);
    let ids: Vec<u64> = cloud.droplets().iter().map(|droplet| droplet.id).collect();
    let body = with(balancer("web"), "droplet_ids", json!(ids));
    let body = with(body, "tags", json!(["k8s:c"]));
    let made = rest.post(ALL, with(body, "size_unit", json!(3))).await;
    let one = format!(
        "{ALL}/{}",
        made.body["load_balancer"]["id"].as_str().unwrap()
    );
    let changed = rest.put(&one, balancer("web")).await.body["load_balancer"].clone();
    assert_eq!(
        (&changed["droplet_ids"], &changed["tags"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(changed["size_unit"], 1);
    for (field, value) in [
        ("type", "REGIONAL_NETWORK"),
        ("network", "INTERNAL"),
        ("network_stack", "DUALSTACK"),
    ] {
        let refused = rest
            .put(&one, with(balancer("web"), field, json!(value)))
            .await;
        let words = format!("{field} cannot be updated after creating the load balancer");
        assert_eq!(
            refused.said(),
            (422, "unprocessable_entity", words.as_str())
        );
    }
    cloud.destroy_droplet(ids[0]);
    assert!(cloud.load_balancers()[0].droplet_ids.is_empty());
}

/// One field of a load balancer, a value that is refused, and the words of the refusal.
const REFUSED: [(&str, &str, &str); 9] = [
    ("name", r#""taken""#, "name is not unique"),
    ("name", r#""""#, "name must be"),
    ("region", r#""x""#, "region is invalid"),
    ("droplet_ids", "[1]", "droplets 1 could not be found"),
    ("forwarding_rules", "[]", "at least one"),
    ("type", r#""SMALL""#, "type \"SMALL\" is invalid"),
    ("size", r#""lb-huge""#, "size is invalid"),
    ("size_unit", "101", "between 1 and 100"),
    ("tags", r#"["a/b"]"#, "invalid characters"),
];

#[tokio::test(start_paused = true)]
async fn bad_requests_are_refused_in_words_and_change_nothing() {
    let (cloud, rest) = lab(1);
    rest.post(ALL, balancer("taken")).await;
    for (field, value, words) in REFUSED {
        let value = serde_json::from_str(value).unwrap();
        let refused = rest.post(ALL, with(balancer("web"), field, value)).await;
        let (status, id, message) = refused.said();
        assert_eq!((status, id), (422, "unprocessable_entity"), "{field}");
        assert!(message.contains(words), "{field}: {message}");
    }
    for (protocol, port, words) in [
        ("tcp", 50_054, "50054 is reserved"),
        ("sctp", 80, "sctp"),
        ("https", 443, "certificate"),
    ] {
        let rules = json!([{
            "entry_protocol": protocol, "entry_port": port,
            "target_protocol": "tcp", "target_port": 1,
        }]);
        let refused = rest
            .post(ALL, with(balancer("web"), "forwarding_rules", rules))
            .await;
        assert!(refused.said().2.contains(words), "{refused:?}");
    }
    assert_eq!(cloud.load_balancers().len(), 1);
    cloud.change_settings(|settings| settings.load_balancers = 1);
    let full = rest.post(ALL, balancer("web")).await;
    assert!(
        full.said()
            .2
            .contains("will exceed your load balancer limit")
    );
}

#[tokio::test(start_paused = true)]
async fn a_validation_says_what_a_call_would_and_makes_nothing() {
    let (cloud, rest) = lab(0);
    let asked = with(balancer("web"), "validate_only", json!(true));
    assert_eq!(rest.post(ALL, asked.clone()).await.status, 204);
    assert!(cloud.load_balancers().is_empty());
    let bad = with(asked, "region", json!("x"));
    assert_eq!(rest.post(ALL, bad).await.status, 422);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_is_resized_once_an_hour() {
    let settings = Settings {
        resize_after: Duration::from_hours(1),
        ..Settings::default()
    };
    let (_, rest) = lab_with(0, settings);
    let made = rest.post(ALL, balancer("web")).await;
    let one = format!(
        "{ALL}/{}",
        made.body["load_balancer"]["id"].as_str().unwrap()
    );
    let bigger = with(balancer("web"), "size", json!("lb-medium"));
    assert!(
        rest.put(&one, bigger.clone())
            .await
            .said()
            .2
            .contains("once per hour")
    );
    tokio::time::sleep(Duration::from_hours(1)).await;
    let resized = rest.put(&one, bigger).await;
    assert_eq!(resized.body["load_balancer"]["size_unit"], 3);
}
