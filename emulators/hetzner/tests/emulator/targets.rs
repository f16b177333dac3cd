//! Targets of balancers, and their health.

use cloudkeel_emulator_hetzner::{RobotServer, ServerSpec, ServerStatus};
use serde_json::{Value, json};

use crate::support::{Rest, lab, vswitch};

fn server(id: u64, private: bool) -> Value {
    json!({"type": "server", "server": {"id": id}, "use_private_ip": private})
}

fn ip(ip: &str) -> Value {
    json!({"type": "ip", "ip": {"ip": ip}})
}

async fn listening(rest: &Rest) -> u64 {
    let id = rest.balancer("lb").await;
    let service = json!({"protocol": "tcp", "listen_port": 80, "destination_port": 30080});
    rest.act(id, "add_service", service).await;
    id
}

#[tokio::test(start_paused = true)]
async fn a_server_becomes_a_target_if_it_can_be_reached() {
    let (cloud, rest) = lab(1);
    let network = cloud.networks()[0].id;
    let node = cloud.servers()[0].id;
    let outside = cloud.add_server(ServerSpec::named("outside")).unwrap().id;
    let private = cloud
        .add_server(ServerSpec::named("private").without_ipv4())
        .unwrap()
        .id;
    let id = rest.balancer("lb").await;
    let early = rest.act(id, "add_target", server(node, true)).await;
    assert_eq!(early.said(), (422, "load_balancer_not_attached_to_network"));
    rest.act(id, "attach_to_network", json!({"network": network}))
        .await;
    for (case, body, said) in [
        ("private", server(node, true), (201, "")),
        (
            "twice",
            server(node, false),
            (422, "target_already_defined"),
        ),
        ("public", server(outside, false), (201, "")),
        (
            "unattached",
            server(private, true),
            (422, "server_not_attached_to_network"),
        ),
        ("no address", server(private, false), (422, "missing_ipv4")),
        ("unknown", server(1, false), (404, "not_found")),
        (
            "no server",
            json!({"type": "server"}),
            (422, "invalid_input"),
        ),
        ("no kind", json!({"type": "magic"}), (422, "invalid_input")),
    ] {
        assert_eq!(
            rest.act(id, "add_target", body).await.said(),
            said,
            "{case}"
        );
    }
    let gone = rest.act(id, "remove_target", server(node, true)).await;
    assert_eq!(
        (gone.status, &gone.body["action"]["command"]),
        (201, &json!("remove_target"))
    );
    let again = rest.act(id, "remove_target", server(node, true)).await;
    assert_eq!(again.said(), (404, "not_found"));
}

#[tokio::test(start_paused = true)]
async fn an_address_becomes_a_target_if_it_is_a_dedicated_server_of_ours() {
    let (cloud, rest) = lab(1);
    cloud.add_robot_server(RobotServer::new(1, "bm-1", [192, 0, 2, 1].into()));
    let cloud_ip = cloud.servers()[0].ipv4.unwrap().to_string();
    let vswitch = vswitch(&cloud);
    let id = rest.balancer("lb").await;
    let detached = rest.act(id, "add_target", ip("10.50.1.9")).await;
    assert_eq!(
        detached.said(),
        (422, "load_balancer_not_attached_to_network")
    );
    let plain = cloud.networks()[0].id;
    rest.act(id, "attach_to_network", json!({"network": plain}))
        .await;
    let no_vswitch = rest.act(id, "add_target", ip("10.50.1.9")).await;
    assert_eq!(no_vswitch.said(), (422, "network_has_no_vswitch_subnet"));
    rest.act(id, "detach_from_network", json!({"network": plain}))
        .await;
    rest.act(id, "attach_to_network", json!({"network": vswitch}))
        .await;
    for (case, body, said) in [
        ("ours", ip("192.0.2.1"), (201, "")),
        ("twice", ip("192.0.2.1"), (422, "target_already_defined")),
        ("theirs", ip("192.0.2.2"), (422, "ip_not_owned")),
        (
            "cloud",
            ip(&cloud_ip),
            (422, "cloud_resource_ip_not_allowed"),
        ),
        ("behind the vSwitch", ip("10.50.1.9"), (201, "")),
        (
            "not behind it",
            ip("10.50.2.9"),
            (422, "ip_not_in_vswitch_subnet"),
        ),
        ("no address", ip("x"), (422, "invalid_input")),
    ] {
        assert_eq!(
            rest.act(id, "add_target", body).await.said(),
            said,
            "{case}"
        );
    }
    assert_eq!(
        rest.act(id, "remove_target", ip("192.0.2.1")).await.status,
        201
    );
    let targets = rest.shown(id).await["targets"].clone();
    assert_eq!(
        targets,
        json!([
            {"type": "ip", "ip": {"ip": "10.50.1.9"}, "health_status": [], "use_private_ip": false},
        ])
    );
}

#[tokio::test(start_paused = true)]
async fn a_selector_leads_to_every_server_that_fits() {
    let (cloud, rest) = lab(0);
    for (name, role) in [("a", "web"), ("b", "db"), ("c", "web")] {
        cloud
            .add_server(ServerSpec::named(name).labelled("role", role))
            .unwrap();
    }
    let id = listening(&rest).await;
    let target = json!({"type": "label_selector", "label_selector": {"selector": "role=web"}});
    assert_eq!(rest.act(id, "add_target", target.clone()).await.status, 201);
    let shown = rest.shown(id).await["targets"][0].clone();
    assert_eq!(shown["label_selector"]["selector"], "role=web");
    let inner = shown["targets"].as_array().unwrap();
    let found: Vec<_> = inner
        .iter()
        .map(|target| target["server"]["id"].as_u64().unwrap())
        .collect();
    let servers = cloud.servers();
    assert_eq!(found, [servers[0].id, servers[2].id]);
    assert_eq!(
        inner[0]["health_status"],
        json!([{"listen_port": 80, "status": "healthy"}])
    );
    let bad = json!({"type": "label_selector", "label_selector": {"selector": "a b"}});
    assert_eq!(
        rest.act(id, "add_target", bad).await.said(),
        (422, "invalid_input")
    );
    assert_eq!(rest.act(id, "remove_target", target).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_type_limits_targets() {
    let (cloud, rest) = lab(26);
    let id = rest.balancer("lb").await;
    for (number, node) in cloud.servers().iter().enumerate() {
        let said = if number < 25 {
            (201, "")
        } else {
            (403, "resource_limit_exceeded")
        };
        let answer = rest.act(id, "add_target", server(node.id, false)).await;
        assert_eq!(answer.said(), said, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn health_follows_the_state_of_the_server() {
    let (cloud, rest) = lab(1);
    let node = cloud.servers()[0].id;
    let id = listening(&rest).await;
    rest.act(id, "add_target", server(node, false)).await;
    let health = async || rest.shown(id).await["targets"][0]["health_status"][0]["status"].clone();
    assert_eq!(health().await, "healthy");
    cloud.set_status(node, ServerStatus::Off).unwrap();
    assert_eq!(health().await, "unhealthy");
}
