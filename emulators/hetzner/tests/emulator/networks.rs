//! Networks and their routes.

use serde_json::{Value, json};

use crate::support::{Answer, Rest, SECOND, lab, lab_with, slow, vswitch};

async fn act(rest: &Rest, network: u64, action: &str, body: Value) -> Answer {
    let path = format!("/v1/networks/{network}/actions/{action}");
    rest.post(&path, body).await
}

#[tokio::test(start_paused = true)]
async fn a_route_keeps_the_rules_of_its_network() {
    let (cloud, rest) = lab(1);
    let network = cloud.networks()[0].id;
    for (case, destination, gateway, field) in [
        ("good", "10.244.0.0/24", "10.0.0.2", ""),
        ("same", "10.244.0.0/24", "10.0.0.2", "destination"),
        ("overlap", "10.244.0.0/16", "10.0.0.2", "destination"),
        ("everything", "0.0.0.0/0", "10.0.0.2", ""),
        ("everything twice", "0.0.0.0/0", "10.0.0.3", "destination"),
        ("subnet", "10.0.1.0/24", "10.0.0.2", "destination"),
        ("public", "8.8.8.0/24", "10.0.0.2", "destination"),
        ("reserved", "172.31.0.0/16", "10.0.0.2", "destination"),
        ("no network", "10.244.1.1/24", "10.0.0.2", "destination"),
        ("IPv6", "fd00::/64", "10.0.0.2", "destination"),
        ("no gateway", "10.244.1.0/24", "", "gateway"),
        ("own gateway", "10.244.1.0/24", "10.0.0.1", "gateway"),
        ("outside", "10.244.1.0/24", "10.9.0.1", "gateway"),
    ] {
        let body = json!({"destination": destination, "gateway": gateway});
        let answer = act(&rest, network, "add_route", body).await;
        let said = if field.is_empty() {
            (201, "")
        } else {
            (422, "invalid_input")
        };
        assert_eq!((answer.said(), answer.field()), (said, field), "{case}");
    }
    cloud.change_settings(|settings| settings.limits.routes = 2);
    let more = json!({"destination": "10.245.0.0/24", "gateway": "10.0.0.2"});
    let answer = act(&rest, network, "add_route", more).await;
    assert_eq!(answer.said(), (403, "resource_limit_exceeded"));
}

#[tokio::test(start_paused = true)]
async fn a_route_does_not_lead_behind_a_vswitch() {
    let (cloud, rest) = lab(0);
    let network = vswitch(&cloud);
    let route = json!({"destination": "10.244.1.0/24", "gateway": "10.50.1.5"});
    let answer = act(&rest, network, "add_route", route).await;
    assert_eq!(
        (answer.said(), answer.field()),
        ((422, "invalid_input"), "gateway")
    );
}

#[tokio::test(start_paused = true)]
async fn a_route_is_deleted_by_both_its_parts() {
    let (cloud, rest) = lab(1);
    let network = cloud.networks()[0].id;
    let route = |gateway: &str| json!({"destination": "10.244.0.0/24", "gateway": gateway});
    act(&rest, network, "add_route", route("10.0.0.2")).await;
    let wrong = act(&rest, network, "delete_route", route("10.0.0.3")).await;
    assert_eq!(wrong.said(), (404, "not_found"));
    let invalid = act(&rest, network, "delete_route", route("<nil>")).await;
    assert_eq!(
        (invalid.said(), invalid.field()),
        ((422, "invalid_input"), "gateway")
    );
    let right = act(&rest, network, "delete_route", route("10.0.0.2")).await;
    assert_eq!(right.body["action"]["command"], "delete_route");
    assert!(cloud.networks()[0].routes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_network_is_locked_while_a_route_is_made() {
    let (cloud, rest) = lab_with(1, slow());
    let network = cloud.networks()[0].id;
    let route =
        |third: u8| json!({"destination": format!("10.244.{third}.0/24"), "gateway": "10.0.0.2"});
    assert_eq!(act(&rest, network, "add_route", route(0)).await.status, 201);
    assert!(cloud.networks()[0].routes.is_empty(), "it is not made yet");
    let locked = act(&rest, network, "add_route", route(1)).await;
    assert_eq!(locked.said(), (423, "locked"));
    tokio::time::advance(SECOND * 10).await;
    assert_eq!(cloud.networks()[0].routes.len(), 1);
    assert_eq!(act(&rest, network, "add_route", route(1)).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_network_is_found_by_name_and_has_one_of_its_own() {
    let (cloud, rest) = lab(0);
    let id = cloud.networks()[0].id;
    assert_eq!(
        rest.get("/v1/networks?name=kube").await.ids("networks"),
        [id]
    );
    let shown = rest.get(&format!("/v1/networks/{id}")).await;
    assert_eq!(shown.body["network"]["subnets"][0]["gateway"], "10.0.0.1");
    let again = cloud.add_network("kube", "10.8.0.0/16".parse().unwrap());
    assert_eq!(again.unwrap_err().code(), "uniqueness_error");
}
