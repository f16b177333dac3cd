//! The Robot web service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloudkeel_emulator_hetzner::{
    Fault, HetznerCloud, Operation, RobotLimit, RobotServer, Settings,
};
use serde_json::json;

use crate::support::{Rest, SECOND};

fn login(cloud: &HetznerCloud, user: &str, password: &str) -> Rest {
    let secret = STANDARD.encode(format!("{user}:{password}"));
    Rest::with_authorization(cloud, format!("Basic {secret}"))
}

fn robot(settings: Settings) -> (HetznerCloud, Rest) {
    let cloud = HetznerCloud::new(settings);
    cloud.set_robot_login("user", "secret");
    let rest = login(&cloud, "user", "secret");
    (cloud, rest)
}

fn with_server() -> (HetznerCloud, Rest) {
    let (cloud, rest) = robot(Settings::default());
    cloud.add_robot_server(RobotServer {
        ipv6_net: Some("2001:db8:9::".parse().unwrap()),
        dc: "NBG1-DC1".to_owned(),
        ..RobotServer::new(321, "bm-1", [192, 0, 2, 1].into())
    });
    (cloud, rest)
}

#[tokio::test(start_paused = true)]
async fn servers_have_the_shape_that_clients_read() {
    let (_, rest) = with_server();
    let list = rest.get("/robot/server").await;
    let server = list.body[0]["server"].clone();
    assert_eq!(rest.get("/robot/server/321").await.body["server"], server);
    for (field, expected) in [
        ("server_ip", json!("192.0.2.1")),
        ("server_ipv6_net", json!("2001:db8:9::")),
        ("server_number", json!(321)),
        ("server_name", json!("bm-1")),
        ("product", json!("AX41-NVMe")),
        ("dc", json!("NBG1-DC1")),
        ("status", json!("ready")),
        ("cancelled", json!(false)),
    ] {
        assert_eq!(server[field], expected, "{field}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_shows_whether_a_server_runs() {
    let (cloud, rest) = with_server();
    for status in ["running", "shut off"] {
        let mut server = cloud.robot_servers()[0].clone();
        server.operating_status = status.to_owned();
        cloud.add_robot_server(server);
        let reset = rest.get("/robot/reset/321").await;
        assert_eq!(reset.body["reset"]["operating_status"], status);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_have_the_form_and_the_codes_of_robot() {
    let (cloud, rest) = robot(Settings::default());
    let empty = rest.get("/robot/server").await;
    assert_eq!(empty.said(), (404, "SERVER_NOT_FOUND"));
    assert_eq!(empty.body["error"]["status"], 404);
    let stiff = RobotServer {
        resettable: false,
        ..RobotServer::new(7, "bm-7", [192, 0, 2, 7].into())
    };
    cloud.add_robot_server(stiff);
    assert_eq!(
        rest.get("/robot/reset/7").await.said(),
        (404, "RESET_NOT_AVAILABLE")
    );
    assert_eq!(
        rest.get("/robot/server/8").await.said(),
        (404, "SERVER_NOT_FOUND")
    );
    cloud.remove_robot_server(7);
    assert_eq!(
        rest.get("/robot/server/7").await.said(),
        (404, "SERVER_NOT_FOUND")
    );
    for (case, stranger) in [
        ("wrong password", login(&cloud, "user", "x")),
        ("cloud token", Rest::of(&cloud)),
    ] {
        assert_eq!(
            stranger.get("/robot/server").await.said(),
            (401, "UNAUTHORIZED"),
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_calls_to_a_path_are_a_403_until_the_window_is_over() {
    let settings = Settings {
        robot_limit: RobotLimit {
            max_request: 2,
            interval: SECOND * 60,
        },
        ..Settings::default()
    };
    let (cloud, rest) = robot(settings);
    cloud.add_robot_server(RobotServer::new(1, "bm", [192, 0, 2, 1].into()));
    for (after, said) in [
        (0, (200, "")),
        (30, (200, "")),
        (0, (403, "RATE_LIMIT_EXCEEDED")),
        (29, (403, "RATE_LIMIT_EXCEEDED")),
        (1, (200, "")),
    ] {
        tokio::time::advance(SECOND * after).await;
        let answer = rest.get("/robot/server").await;
        assert_eq!(answer.said(), said);
        if answer.status == 403 {
            let error = &answer.body["error"];
            assert_eq!(
                (&error["max_request"], &error["interval"]),
                (&json!(2), &json!(60))
            );
        }
    }
    assert_eq!(
        rest.get("/robot/reset/1").await.status,
        200,
        "another path has its own limit"
    );
}

#[tokio::test(start_paused = true)]
async fn faults_and_counts_know_robot_too() {
    let (cloud, rest) = with_server();
    let maintenance = Fault::Refused {
        code: "MAINTENANCE".to_owned(),
        status: Some(503),
    };
    for (fault, said) in [
        (maintenance, (503, "MAINTENANCE")),
        (Fault::status(500), (500, "SERVER_ERROR")),
        (
            Fault::code("RATE_LIMIT_EXCEEDED"),
            (403, "RATE_LIMIT_EXCEEDED"),
        ),
    ] {
        cloud.faults().once(Operation::RobotListServers, fault);
        let answer = rest.get("/robot/server").await;
        assert_eq!(answer.said(), said);
        assert_eq!(answer.body["error"]["status"], said.0);
    }
    cloud
        .faults()
        .once(Operation::RobotListServers, Fault::EmptyList);
    assert_eq!(rest.get("/robot/server").await.body, json!([]));
    assert_eq!(cloud.calls().of(Operation::RobotListServers), 4);
    assert_eq!(cloud.call_log()[0].token, "user");
}
