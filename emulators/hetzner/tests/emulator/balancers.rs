//! Balancers as a whole.

use cloudkeel_emulator_hetzner::{HetznerCloud, Settings};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{Rest, SECOND, lab, lab_with, slow};

const UID: &str = "hcloud-ccm/service-uid";

#[tokio::test(start_paused = true)]
async fn a_balancer_is_made_with_all_its_fields() {
    let (cloud, rest) = lab(1);
    let (server, network) = (cloud.servers()[0].id, cloud.networks()[0].id);
    let made = rest
        .post(
            "/v1/load_balancers",
            json!({
                "name": "lb", "load_balancer_type": 2, "network_zone": "eu-central",
                "labels": {UID: "u-1"}, "algorithm": {"type": "least_connections"},
                "public_interface": false, "network": network,
                "services": [{"protocol": "tcp", "listen_port": 80, "destination_port": 30080}],
                "targets": [{"type": "server", "server": {"id": server}, "use_private_ip": true}],
            }),
        )
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["action"]["command"], "create_load_balancer");
    let shown = &made.body["load_balancer"];
    for (field, expected) in [
        ("/load_balancer_type/name", json!("lb21")),
        ("/location/name", json!("fsn1")),
        ("/labels", json!({UID: "u-1"})),
        ("/algorithm/type", json!("least_connections")),
        ("/public_net/enabled", json!(false)),
        ("/public_net/ipv4/ip", json!("198.18.0.2")),
        (
            "/public_net/ipv4/dns_ptr",
            json!("static.2.0.18.198.clients.your-server.de"),
        ),
        ("/public_net/ipv6/ip", json!("2001:db8:1:2::1")),
        (
            "/private_net",
            json!([{"network": network, "ip": "10.0.0.3"}]),
        ),
        ("/protection/delete", json!(false)),
        ("/services/0/destination_port", json!(30080)),
        ("/targets/0/server/id", json!(server)),
        ("/targets/0/use_private_ip", json!(true)),
        (
            "/targets/0/health_status",
            json!([{"listen_port": 80, "status": "healthy"}]),
        ),
        ("/included_traffic", json!(21_990_232_555_520_u64)),
        ("/ingoing_traffic", Value::Null),
    ] {
        assert_eq!(shown.pointer(field), Some(&expected), "{field}");
    }
    let network = rest.get(&format!("/v1/networks/{network}")).await;
    assert_eq!(
        network.body["network"]["load_balancers"],
        json!([shown["id"]])
    );
    let server = rest.get(&format!("/v1/servers/{server}")).await;
    assert_eq!(
        server.body["server"]["load_balancers"],
        json!([shown["id"]])
    );
}

#[tokio::test(start_paused = true)]
async fn a_balancer_has_no_addresses_until_it_is_built() {
    let (_, rest) = lab_with(0, slow());
    let id = rest.balancer("lb").await;
    assert_eq!(
        rest.shown(id).await["public_net"]["ipv4"]["ip"],
        Value::Null
    );
    let locked = rest
        .act(id, "change_algorithm", json!({"type": "round_robin"}))
        .await;
    assert_eq!(locked.said(), (423, "locked"));
    assert_eq!(
        rest.delete(&format!("/v1/load_balancers/{id}"))
            .await
            .said(),
        (423, "locked")
    );
    tokio::time::advance(SECOND * 10).await;
    assert_eq!(
        rest.shown(id).await["public_net"]["ipv4"]["ip"],
        "198.18.0.1"
    );
}

/// A good order, but for these fields.
fn order(change: &Value) -> Value {
    let mut order = json!({"name": "lb", "load_balancer_type": "lb11", "location": "fsn1"});
    let change = change.as_object().unwrap().clone();
    order.as_object_mut().unwrap().extend(change);
    order
}

#[tokio::test(start_paused = true)]
async fn an_order_that_cannot_be_met_is_refused() {
    let (cloud, rest) = lab(0);
    rest.balancer("taken").await;
    let algorithm = json!({"algorithm": {"type": "x"}});
    let zone = json!({"location": null, "network_zone": "x"});
    for (case, change, field) in [
        ("no name", json!({"name": ""}), "name"),
        (
            "type",
            json!({"load_balancer_type": "lb99"}),
            "load_balancer_type",
        ),
        ("location", json!({"location": "moon"}), "location"),
        ("both", json!({"network_zone": "eu-central"}), "location"),
        ("neither", json!({"location": null}), "location"),
        ("zone", zone, "network_zone"),
        ("algorithm", algorithm, "algorithm.type"),
        ("label", json!({"labels": {UID: "a b"}}), "labels"),
    ] {
        let answer = rest.post("/v1/load_balancers", order(&change)).await;
        assert_eq!(
            (answer.said(), answer.field()),
            ((422, "invalid_input"), field),
            "{case}"
        );
    }
    let taken = rest
        .post("/v1/load_balancers", order(&json!({"name": "taken"})))
        .await;
    assert_eq!(
        (taken.said(), taken.field()),
        ((409, "uniqueness_error"), "name")
    );
    let nowhere = rest
        .post("/v1/load_balancers", order(&json!({"network": 1})))
        .await;
    assert_eq!(nowhere.said(), (404, "not_found"));
    cloud.change_settings(|settings| settings.limits.load_balancers = 1);
    let answer = rest.post("/v1/load_balancers", order(&json!({}))).await;
    assert_eq!(answer.said(), (403, "resource_limit_exceeded"));
}

#[tokio::test(start_paused = true)]
async fn a_type_on_its_way_out_is_shown_and_then_refused() {
    let (cloud, rest) = lab(0);
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let (announced, gone) = (at("2025-12-01T00:00:00Z"), at("2026-01-01T00:01:00Z"));
    cloud.deprecate_load_balancer_type("lb21", announced, gone);
    let shown = rest.get("/v1/load_balancer_types?name=lb21").await;
    assert_eq!(
        shown.body["load_balancer_types"][0]["deprecation"],
        json!({
            "announced": "2025-12-01T00:00:00+00:00",
            "unavailable_after": "2026-01-01T00:01:00+00:00",
        })
    );
    let id = rest.balancer("lb").await;
    let bigger = json!({"load_balancer_type": "lb21"});
    assert_eq!(
        rest.act(id, "change_type", bigger.clone()).await.status,
        201
    );
    tokio::time::advance(SECOND * 60).await;
    let answer = rest.act(id, "change_type", bigger).await;
    assert_eq!(answer.said(), (412, "resource_unavailable"));
}

#[tokio::test(start_paused = true)]
async fn a_balancer_is_found_by_name_and_label_and_changed_by_put() {
    let (_, rest) = lab(0);
    let (one, two) = (rest.balancer("one").await, rest.balancer("two").await);
    let path = format!("/v1/load_balancers/{one}");
    rest.put(&path, json!({"labels": {UID: "u-1", "x": "y"}}))
        .await;
    let selector = "label_selector=hcloud-ccm%2Fservice-uid%3Du-1&page=1&per_page=50";
    let found = rest.get(&format!("/v1/load_balancers?{selector}")).await;
    assert_eq!(found.ids("load_balancers"), [one]);
    let found = rest.get("/v1/load_balancers?name=two").await;
    assert_eq!(found.ids("load_balancers"), [two]);
    let answer = rest
        .put(&path, json!({"name": "three", "labels": {UID: "u-2"}}))
        .await;
    assert_eq!(
        (answer.status, &answer.body["load_balancer"]["name"]),
        (200, &json!("three"))
    );
    assert_eq!(answer.body["load_balancer"]["labels"], json!({UID: "u-2"}));
    assert_eq!(
        rest.put(&path, json!({"name": "two"})).await.said(),
        (409, "uniqueness_error")
    );
    assert_eq!(rest.put(&path, json!({"name": "three"})).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_is_deleted_unless_it_is_protected() {
    let (cloud, rest) = lab(0);
    let id = rest.balancer("lb").await;
    let path = format!("/v1/load_balancers/{id}");
    let protect = |protected| {
        let changed = cloud.change_load_balancer(id, |balancer| balancer.protected = protected);
        changed.unwrap();
    };
    protect(true);
    assert_eq!(rest.delete(&path).await.said(), (423, "protected"));
    protect(false);
    let answer = rest.delete(&path).await;
    assert_eq!((answer.status, &answer.body), (204, &Value::Null));
    assert_eq!(rest.delete(&path).await.said(), (404, "not_found"));
    assert!(cloud.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn names_behind_addresses_are_set_and_reset() {
    let (_, rest) = lab(0);
    let id = rest.balancer("lb").await;
    let net = rest.shown(id).await["public_net"].clone();
    for (family, ip) in [("ipv4", &net["ipv4"]["ip"]), ("ipv6", &net["ipv6"]["ip"])] {
        let set = json!({"ip": ip, "dns_ptr": "lb.example.com"});
        assert_eq!(rest.act(id, "change_dns_ptr", set).await.status, 201);
        assert_eq!(
            rest.shown(id).await["public_net"][family]["dns_ptr"],
            "lb.example.com"
        );
        rest.act(id, "change_dns_ptr", json!({"ip": ip, "dns_ptr": null}))
            .await;
        assert_eq!(rest.shown(id).await["public_net"][family], net[family]);
    }
    let foreign = rest
        .act(
            id,
            "change_dns_ptr",
            json!({"ip": "192.0.2.1", "dns_ptr": "x"}),
        )
        .await;
    assert_eq!(foreign.said(), (404, "not_found"));
}

async fn attach(rest: &Rest, id: u64, body: Value) -> (u16, String) {
    let answer = rest.act(id, "attach_to_network", body).await;
    (answer.status, answer.code().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_balancer_is_in_at_most_one_network() {
    let (cloud, rest) = lab(1);
    let network = cloud.networks()[0].id;
    let far = cloud.add_network("us", "10.7.0.0/16".parse().unwrap());
    let far = far.unwrap().id;
    let moved = cloud.change_network(far, |network| {
        network.subnets[0].network_zone = "us-east".to_owned();
    });
    moved.unwrap();
    let id = rest.balancer("lb").await;
    for (case, body, status, code) in [
        (
            "taken",
            json!({"network": network, "ip": "10.0.0.2"}),
            422,
            "ip_not_available",
        ),
        (
            "no zone",
            json!({"network": far}),
            422,
            "no_subnet_available",
        ),
        (
            "no range",
            json!({"network": network, "ip_range": "10.0.5.0/24"}),
            422,
            "no_subnet_available",
        ),
        ("no network", json!({"network": 1}), 404, "not_found"),
        (
            "no address",
            json!({"network": network, "ip": "x"}),
            422,
            "invalid_input",
        ),
        (
            "good",
            json!({"network": network, "ip": "10.0.0.77"}),
            201,
            "",
        ),
        (
            "twice",
            json!({"network": network}),
            422,
            "load_balancer_already_attached",
        ),
    ] {
        assert_eq!(
            attach(&rest, id, body).await,
            (status, code.to_owned()),
            "{case}"
        );
    }
    let private = rest.shown(id).await["private_net"].clone();
    assert_eq!(private, json!([{"network": network, "ip": "10.0.0.77"}]));
    let wrong = rest
        .act(id, "detach_from_network", json!({"network": far}))
        .await;
    assert_eq!(wrong.said(), (422, "load_balancer_not_attached_to_network"));
    rest.act(id, "detach_from_network", json!({"network": network}))
        .await;
    assert_eq!(rest.shown(id).await["private_net"], json!([]));
    let range = json!({"network": network, "ip_range": "10.0.0.0/16"});
    assert_eq!(attach(&rest, id, range).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn two_that_come_into_a_network_at_once_have_an_address_each() {
    let (cloud, rest) = lab_with(1, slow());
    let network = cloud.networks()[0].id;
    let (one, two) = (rest.balancer("one").await, rest.balancer("two").await);
    tokio::time::advance(SECOND * 10).await;
    for id in [one, two] {
        assert_eq!(attach(&rest, id, json!({"network": network})).await.0, 201);
    }
    tokio::time::advance(SECOND * 10).await;
    let balancers = cloud.load_balancers().into_iter();
    let places: Vec<_> = balancers.map(|balancer| balancer.private_net).collect();
    let at = |last| Some((network, [10, 0, 0, last].into()));
    assert_eq!(places, [at(3), at(4)]);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_goes_private_only_with_private_targets_in_a_network() {
    let (cloud, rest) = lab(1);
    let (server, network) = (cloud.servers()[0].id, cloud.networks()[0].id);
    let id = rest.balancer("lb").await;
    let disable = async || {
        let answer = rest.act(id, "disable_public_interface", Value::Null).await;
        (answer.status, answer.code().to_owned())
    };
    let refused = |code: &str| (422, code.to_owned());
    assert_eq!(
        disable().await,
        refused("load_balancer_not_attached_to_network")
    );
    attach(&rest, id, json!({"network": network})).await;
    let public = json!({"type": "server", "server": {"id": server}});
    rest.act(id, "add_target", public.clone()).await;
    assert_eq!(disable().await, refused("targets_without_use_private_ip"));
    rest.act(id, "remove_target", public).await;
    assert_eq!(disable().await, (201, String::new()));
    assert_eq!(rest.shown(id).await["public_net"]["enabled"], false);
    rest.act(id, "enable_public_interface", Value::Null).await;
    assert_eq!(rest.shown(id).await["public_net"]["enabled"], true);
}

#[tokio::test(start_paused = true)]
async fn an_algorithm_and_a_type_are_changed_if_they_fit() {
    let (cloud, rest) = lab(0);
    let id = rest.balancer("lb").await;
    for port in 1..=5 {
        let service = json!({"protocol": "tcp", "listen_port": port, "destination_port": 80});
        assert_eq!(rest.act(id, "add_service", service).await.status, 201);
    }
    for (action, body, said) in [
        (
            "change_algorithm",
            json!({"type": "least_connections"}),
            (201, ""),
        ),
        (
            "change_algorithm",
            json!({"type": "fair"}),
            (422, "invalid_input"),
        ),
        (
            "change_type",
            json!({"load_balancer_type": "lb21"}),
            (201, ""),
        ),
        ("change_type", json!({"load_balancer_type": 3}), (201, "")),
        (
            "change_type",
            json!({"load_balancer_type": "9"}),
            (422, "invalid_input"),
        ),
    ] {
        assert_eq!(
            rest.act(id, action, body.clone()).await.said(),
            said,
            "{action} {body}"
        );
    }
    assert_eq!(rest.shown(id).await["load_balancer_type"]["name"], "lb31");
    let service = json!({"protocol": "tcp", "listen_port": 6, "destination_port": 80});
    rest.act(id, "add_service", service).await;
    let small = rest
        .act(id, "change_type", json!({"load_balancer_type": "lb11"}))
        .await;
    assert_eq!(small.said(), (422, "invalid_load_balancer_type"));
    assert_eq!(cloud.load_balancers()[0].algorithm, "least_connections");
}

#[tokio::test(start_paused = true)]
async fn another_client_can_change_a_balancer() {
    let cloud = HetznerCloud::new(Settings::default());
    let rest = Rest::of(&cloud);
    let id = rest.balancer("lb").await;
    cloud
        .change_load_balancer(id, |balancer| balancer.labels.clear())
        .unwrap();
    cloud
        .change_load_balancer(id, |balancer| balancer.name = "theirs".to_owned())
        .unwrap();
    assert_eq!(rest.shown(id).await["name"], "theirs");
    assert!(cloud.change_load_balancer(1, |_| {}).is_err());
}
