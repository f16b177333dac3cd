//! Servers.

use cloudkeel_testkit::hetzner::{Fault, HetznerCloud, Operation, ServerStatus, Settings};
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
async fn an_ordered_server_is_made_started_and_runs() {
    let (_, rest) = lab_with(0, slow());
    let new = json!({
        "name": "new", "server_type": "cax11", "image": "debian-12", "location": "hel1",
        "labels": {"a": "b"}, "public_net": {"enable_ipv4": false, "enable_ipv6": true},
    });
    let made = rest.post("/v1/servers", new).await;
    assert_eq!(made.status, 201);
    assert_eq!(made.body["action"]["command"], "create_server");
    assert_eq!(made.body["next_actions"][0]["command"], "start_server");
    assert_eq!(made.body["server"]["public_net"]["ipv4"], Value::Null);
    assert_eq!(made.body["server"]["image"]["architecture"], "arm");
    let path = format!("/v1/servers/{}", made.body["server"]["id"]);
    for (after, status) in [(0, "initializing"), (10, "starting"), (10, "running")] {
        tokio::time::advance(SECOND * after).await;
        assert_eq!(rest.get(&path).await.body["server"]["status"], status);
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_cannot_be_met_is_refused() {
    let (cloud, rest) = lab(1);
    let order = |change: Value| {
        let mut order = json!({"name": "n", "server_type": "cx22", "image": "debian-12"});
        let fields = change.as_object().unwrap().clone();
        order.as_object_mut().unwrap().extend(fields);
        order
    };
    for (change, said, field) in [
        (json!({"name": "node-0"}), (409, "uniqueness_error"), "name"),
        (json!({"name": "no_host"}), (422, "invalid_input"), "name"),
        (
            json!({"server_type": "huge"}),
            (422, "invalid_input"),
            "server_type",
        ),
        (json!({"image": "beos"}), (422, "invalid_input"), "image"),
        (
            json!({"location": "moon"}),
            (422, "invalid_input"),
            "location",
        ),
        (json!({"networks": [1]}), (404, "not_found"), ""),
    ] {
        let answer = rest.post("/v1/servers", order(change.clone())).await;
        assert_eq!((answer.said(), answer.field()), (said, field), "{change}");
    }
    cloud.change_settings(|settings| settings.limits.servers = 1);
    let answer = rest.post("/v1/servers", order(json!({}))).await;
    assert_eq!(answer.said(), (403, "resource_limit_exceeded"));
}

#[tokio::test(start_paused = true)]
async fn power_goes_off_and_on_by_actions_that_can_fail() {
    let (cloud, rest) = lab_with(1, slow());
    let id = cloud.servers()[0].id;
    let status = |cloud: &HetznerCloud| cloud.servers()[0].status;
    for (action, meanwhile, at_last) in [
        ("poweroff", ServerStatus::Stopping, ServerStatus::Off),
        ("poweron", ServerStatus::Starting, ServerStatus::Running),
        ("shutdown", ServerStatus::Stopping, ServerStatus::Off),
        ("reset", ServerStatus::Starting, ServerStatus::Running),
        ("reboot", ServerStatus::Running, ServerStatus::Running),
    ] {
        let path = format!("/v1/servers/{id}/actions/{action}");
        assert_eq!(rest.post(&path, Value::Null).await.status, 201, "{action}");
        assert_eq!(status(&cloud), meanwhile, "{action}");
        let locked = rest.post(&path, Value::Null).await;
        assert_eq!(locked.said(), (423, "locked"), "{action}");
        tokio::time::advance(SECOND * 10).await;
        assert_eq!(status(&cloud), at_last, "{action}");
    }
    cloud
        .faults()
        .once(Operation::PowerOff, Fault::action_fails("action_failed"));
    rest.post(&format!("/v1/servers/{id}/actions/poweroff"), Value::Null)
        .await;
    tokio::time::advance(SECOND * 10).await;
    assert_eq!(status(&cloud), ServerStatus::Running);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_server_is_gone_when_its_action_is_over_and_leaves_no_targets() {
    let (cloud, rest) = lab_with(2, Settings::default());
    let ids: Vec<u64> = cloud.servers().iter().map(|server| server.id).collect();
    let balancer = rest.balancer("lb").await;
    for id in &ids {
        let target = json!({"type": "server", "server": {"id": id}});
        assert_eq!(rest.act(balancer, "add_target", target).await.status, 201);
    }
    cloud.change_settings(|settings| *settings = slow());
    let path = format!("/v1/servers/{}", ids[0]);
    let answer = rest.delete(&path).await;
    assert_eq!(
        (answer.status, &answer.body["action"]["command"]),
        (200, &json!("delete_server"))
    );
    assert_eq!(rest.get(&path).await.body["server"]["status"], "deleting");
    tokio::time::advance(SECOND * 10).await;
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
async fn a_protected_server_stays() {
    let (cloud, rest) = lab(1);
    let path = format!("/v1/servers/{}", cloud.servers()[0].id);
    let protect = format!("{path}/actions/change_protection");
    rest.post(&protect, json!({"delete": true, "rebuild": true}))
        .await;
    assert_eq!(rest.delete(&path).await.said(), (423, "protected"));
    rest.post(&protect, json!({"delete": false, "rebuild": false}))
        .await;
    assert_eq!(rest.delete(&path).await.status, 200);
    assert!(cloud.servers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_update_changes_what_it_names_and_replaces_all_labels() {
    let (cloud, rest) = lab(2);
    let path = format!("/v1/servers/{}", cloud.servers()[0].id);
    rest.put(&path, json!({"labels": {"a": "1", "b": "2"}}))
        .await;
    let answer = rest
        .put(&path, json!({"name": "renamed", "labels": {"c": "3"}}))
        .await;
    assert_eq!(answer.body["server"]["labels"], json!({"c": "3"}));
    let answer = rest.put(&path, json!({"name": "node-1"})).await;
    assert_eq!(answer.said(), (409, "uniqueness_error"));
    assert_eq!(cloud.servers()[0].name, "renamed");
}

#[tokio::test(start_paused = true)]
async fn servers_come_into_networks_and_leave_them() {
    let (cloud, rest) = lab(2);
    let server = cloud.servers()[0].id;
    let other = cloud
        .add_network("other", "10.1.0.0/24".parse().unwrap())
        .unwrap()
        .id;
    let kube = cloud.networks()[0].id;
    let path = |action: &str| format!("/v1/servers/{server}/actions/{action}");
    let ip = |ip: &str| json!({"network": other, "ip": ip});
    let range = json!({"network": other, "ip_range": "10.1.1.0/24"});
    for (case, body, said) in [
        (
            "twice",
            json!({"network": kube}),
            (422, "server_already_attached"),
        ),
        ("nowhere", json!({"network": 1}), (404, "not_found")),
        ("foreign", ip("10.9.0.1"), (422, "ip_not_available")),
        ("gateway", ip("10.1.0.1"), (422, "ip_not_available")),
        ("range", range, (422, "no_subnet_available")),
        ("good", ip("10.1.0.7"), (201, "")),
    ] {
        let answer = rest.post(&path("attach_to_network"), body).await;
        assert_eq!(answer.said(), said, "{case}");
    }
    assert_eq!(cloud.servers()[0].private_net[1].ip.to_string(), "10.1.0.7");
    let network = rest.get(&format!("/v1/networks/{other}")).await;
    assert_eq!(network.body["network"]["servers"], json!([server]));
    for said in [(201, ""), (404, "not_found")] {
        let leave = json!({"network": other});
        let answer = rest.post(&path("detach_from_network"), leave).await;
        assert_eq!(answer.said(), said);
    }
}

#[tokio::test(start_paused = true)]
async fn further_addresses_are_replaced_by_free_ones() {
    let (cloud, rest) = lab(2);
    let path = format!(
        "/v1/servers/{}/actions/change_alias_ips",
        cloud.servers()[0].id
    );
    let network = cloud.networks()[0].id;
    for (case, aliases, said) in [
        ("taken", json!(["10.0.0.3"]), (422, "ip_not_available")),
        ("outside", json!(["10.9.0.3"]), (422, "ip_not_available")),
        ("free", json!(["10.0.0.8"]), (201, "")),
        ("kept", json!(["10.0.0.8", "10.0.0.9"]), (201, "")),
    ] {
        let answer = rest
            .post(&path, json!({"network": network, "alias_ips": aliases}))
            .await;
        assert_eq!(answer.said(), said, "{case}");
    }
    assert_eq!(cloud.servers()[0].private_net[0].alias_ips.len(), 2);
    let nowhere = rest
        .post(&path, json!({"network": 1, "alias_ips": []}))
        .await;
    assert_eq!(nowhere.said(), (404, "not_found"));
}

#[tokio::test(start_paused = true)]
async fn a_new_server_is_seen_late_by_those_who_read_late() {
    let settings = Settings {
        consistency: cloudkeel_testkit::hetzner::Consistency {
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
    cloud.grant(
        "other",
        "other",
        cloudkeel_testkit::hetzner::Permission::ReadWrite,
    );
    let rest = Rest::with_token(&cloud, "other");
    let new = json!({"name": "node-0", "server_type": "cx22", "image": "debian-12"});
    assert_eq!(rest.post("/v1/servers", new).await.status, 201);
    assert_eq!(rest.get("/v1/servers").await.ids("servers").len(), 1);
}
