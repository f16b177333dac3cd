//! Networks and their routes.

use serde_json::{Value, json};

use crate::support::{Answer, Rest, SECOND, lab, lab_with, slow};

async fn act(rest: &Rest, network: u64, action: &str, body: Value) -> Answer {
    let path = format!("/v1/networks/{network}/actions/{action}");
    rest.post(&path, body).await
}

#[tokio::test(start_paused = true)]
async fn a_network_is_made_found_renamed_and_removed() {
    let (cloud, rest) = lab(0);
    let new = json!({
        "name": "net", "ip_range": "10.8.0.0/16", "labels": {"a": "b"},
        "subnets": [{"type": "cloud", "ip_range": "10.8.1.0/24", "network_zone": "eu-central"}],
        "routes": [{"destination": "10.100.0.0/16", "gateway": "10.8.1.9"}],
    });
    let made = rest.post("/v1/networks", new.clone()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let shown = &made.body["network"];
    assert_eq!(shown["subnets"][0]["gateway"], "10.8.0.1");
    assert_eq!(
        shown["routes"],
        json!([{"destination": "10.100.0.0/16", "gateway": "10.8.1.9"}])
    );
    assert_eq!(
        rest.post("/v1/networks", new).await.said(),
        (409, "uniqueness_error")
    );
    let path = format!("/v1/networks/{}", shown["id"]);
    let found = rest.get("/v1/networks?name=net").await;
    assert_eq!(found.ids("networks"), [shown["id"].as_u64().unwrap()]);
    let update = rest.put(&path, json!({"name": "net2", "labels": {}})).await;
    assert_eq!(update.body["network"]["labels"], json!({}));
    assert_eq!(
        rest.get("/v1/networks?label_selector=a")
            .await
            .ids("networks"),
        [] as [u64; 0]
    );
    assert_eq!(
        rest.put(&path, json!({"name": "kube"})).await.said(),
        (409, "uniqueness_error")
    );
    rest.post(
        &format!("{path}/actions/change_protection"),
        json!({"delete": true}),
    )
    .await;
    assert_eq!(rest.delete(&path).await.said(), (423, "protected"));
    rest.post(
        &format!("{path}/actions/change_protection"),
        json!({"delete": false}),
    )
    .await;
    assert_eq!(rest.delete(&path).await.status, 204);
    assert_eq!(cloud.networks().len(), 1);
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
    let (_, rest) = lab(0);
    let subnet = json!({
        "type": "vswitch", "ip_range": "10.50.1.0/24", "network_zone": "eu-central", "vswitch_id": 7,
    });
    let new = json!({"name": "v", "ip_range": "10.50.0.0/16", "subnets": [subnet]});
    let made = rest.post("/v1/networks", new).await;
    let network = made.body["network"]["id"].as_u64().unwrap();
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
async fn subnets_come_and_go_inside_their_network() {
    let (cloud, rest) = lab(0);
    let made = rest
        .post(
            "/v1/networks",
            json!({"name": "n", "ip_range": "10.8.0.0/23"}),
        )
        .await;
    let network = made.body["network"]["id"].as_u64().unwrap();
    let subnet =
        |range: &str| json!({"type": "cloud", "ip_range": range, "network_zone": "eu-central"});
    let any = |kind: &str| json!({"type": kind, "network_zone": "eu-central"});
    let range = |range: &str| json!({"ip_range": range});
    for (case, action, body, said) in [
        (
            "outside",
            "add_subnet",
            subnet("10.9.0.0/24"),
            (422, "invalid_input"),
        ),
        ("kind", "add_subnet", any("x"), (422, "invalid_input")),
        ("given", "add_subnet", subnet("10.8.0.0/24"), (201, "")),
        (
            "overlap",
            "add_subnet",
            subnet("10.8.0.0/25"),
            (422, "invalid_input"),
        ),
        ("chosen", "add_subnet", any("cloud"), (201, "")),
        ("full", "add_subnet", any("cloud"), (422, "invalid_input")),
        (
            "unknown",
            "delete_subnet",
            range("10.8.0.0/25"),
            (404, "not_found"),
        ),
        ("gone", "delete_subnet", range("10.8.1.0/24"), (201, "")),
        ("wider", "change_ip_range", range("10.8.0.0/16"), (201, "")),
        (
            "elsewhere",
            "change_ip_range",
            range("10.0.0.0/8"),
            (422, "invalid_input"),
        ),
    ] {
        let answer = act(&rest, network, action, body).await;
        assert_eq!(answer.said(), said, "{case}");
    }
    let spec = cloudkeel_testkit::hetzner::ServerSpec::named("s").in_network(network);
    cloud.add_server(spec).unwrap();
    let used = act(
        &rest,
        network,
        "delete_subnet",
        json!({"ip_range": "10.8.0.0/24"}),
    )
    .await;
    assert_eq!(used.said(), (422, "resource_in_use"));
}

#[tokio::test(start_paused = true)]
async fn a_removed_network_lets_its_members_go() {
    let (cloud, rest) = lab(1);
    let network = cloud.networks()[0].id;
    let balancer = rest.balancer("lb").await;
    rest.act(balancer, "attach_to_network", json!({"network": network}))
        .await;
    assert_eq!(
        rest.delete(&format!("/v1/networks/{network}")).await.status,
        204
    );
    assert!(cloud.servers()[0].private_net.is_empty());
    assert_eq!(cloud.load_balancers()[0].private_net, None);
}
