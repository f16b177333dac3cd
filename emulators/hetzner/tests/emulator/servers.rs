//! Servers.

use cloudkeel_emulator_hetzner::{Consistency, Permission, ServerSpec, Settings};
use serde_json::{Value, json};

use crate::support::{Rest, SECOND, lab, lab_with, slow};

#[tokio::test(start_paused = true)]
async fn a_server_has_the_shape_that_clients_read() {
    let (cloud, rest) = lab(1);
    let server = &cloud.servers()[0];
    let answer = rest.get(&format!("/v1/servers/{}", server.id)).await;
    let shown = &answer.body["server"];
    for (field, expected) in [
        ("/name", json!("node-0")),
        ("/status", json!("running")),
        ("/created", json!("2026-01-01T00:00:00+00:00")),
        ("/server_type/name", json!("cx22")),
        ("/location/name", json!("fsn1")),
        ("/location/network_zone", json!("eu-central")),
        ("/public_net/ipv4/ip", json!("198.18.0.1")),
        ("/public_net/ipv6/ip", json!("2001:db8:1:1::/64")),
        ("/public_net/floating_ips", json!([])),
        ("/private_net/0/network", json!(cloud.networks()[0].id)),
        ("/private_net/0/ip", json!("10.0.0.2")),
        ("/private_net/0/alias_ips", json!([])),
        ("/private_net/0/mac_address", json!("86:00:0a:00:00:02")),
        ("/protection", json!({"delete": false, "rebuild": false})),
        ("/labels", json!({})),
        ("/load_balancers", json!([])),
        ("/image", Value::Null),
    ] {
        assert_eq!(shown.pointer(field), Some(&expected), "{field}");
    }
    assert!(shown.get("datacenter").is_none(), "it left the API");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_server_is_gone_and_leaves_no_targets() {
    let (cloud, rest) = lab_with(2, Settings::default());
    let ids: Vec<u64> = cloud.servers().iter().map(|server| server.id).collect();
    let balancer = rest.balancer("lb").await;
    for id in &ids {
        let target = json!({"type": "server", "server": {"id": id}});
        assert_eq!(rest.act(balancer, "add_target", target).await.status, 201);
    }
    let path = format!("/v1/servers/{}", ids[0]);
    cloud.destroy_server(ids[0]).unwrap();
    assert_eq!(rest.get(&path).await.said(), (404, "not_found"));
    let targets = rest.shown(balancer).await["targets"].clone();
    assert_eq!(targets.as_array().unwrap().len(), 1);
    assert_eq!(targets[0]["server"]["id"], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_while_it_becomes_a_target_is_none() {
    let (cloud, rest) = lab(1);
    let id = cloud.servers()[0].id;
    let balancer = rest.balancer("lb").await;
    cloud.change_settings(|settings| *settings = slow());
    let target = json!({"type": "server", "server": {"id": id}});
    assert_eq!(rest.act(balancer, "add_target", target).await.status, 201);
    cloud.destroy_server(id).unwrap();
    tokio::time::advance(SECOND * 10).await;
    assert_eq!(rest.shown(balancer).await["targets"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_new_server_is_seen_late_by_lagging_reads() {
    let settings = Settings {
        consistency: Consistency {
            list: SECOND * 5,
            get: SECOND,
        },
        ..Settings::default()
    };
    let (cloud, rest) = lab_with(1, settings);
    let path = format!("/v1/servers/{}", cloud.servers()[0].id);
    for (after, listed, got) in [(0, 0, 404), (1, 0, 200), (4, 1, 200)] {
        tokio::time::advance(SECOND * after).await;
        let seen = rest.get("/v1/servers").await.ids("servers").len();
        assert_eq!((seen, rest.get(&path).await.status), (listed, got));
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_of_one_project_do_not_see_each_others_names() {
    let (cloud, _) = lab(1);
    cloud.add_project("other");
    cloud.grant("other", "other", Permission::ReadWrite);
    let rest = Rest::with_token(&cloud, "other");
    let added = cloud.add_server_in("other", ServerSpec::named("node-0"));
    assert_eq!(
        rest.get("/v1/servers").await.ids("servers"),
        [added.unwrap().id]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_added_is_refused() {
    let (cloud, _) = lab(1);
    for (case, spec, code) in [
        ("name", ServerSpec::named("node-0"), "uniqueness_error"),
        (
            "type",
            ServerSpec::named("n").of_type("huge"),
            "invalid_input",
        ),
        (
            "location",
            ServerSpec::named("n").at("moon"),
            "invalid_input",
        ),
        ("network", ServerSpec::named("n").in_network(1), "not_found"),
    ] {
        let refusal = cloud.add_server(spec).unwrap_err();
        assert_eq!(refusal.code(), code, "{case}");
    }
    let network = cloud.networks()[0].id;
    for ip in ["10.9.0.1", "10.0.0.1", "10.0.0.2"] {
        let spec = ServerSpec::named("n").in_network_as(network, ip.parse().unwrap());
        let refusal = cloud.add_server(spec).unwrap_err();
        assert_eq!(refusal.code(), "ip_not_available", "{ip}");
    }
    cloud.change_settings(|settings| settings.limits.servers = 1);
    let refusal = cloud.add_server(ServerSpec::named("n")).unwrap_err();
    assert_eq!(refusal.code(), "resource_limit_exceeded");
}
