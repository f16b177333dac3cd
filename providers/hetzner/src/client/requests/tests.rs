use cloudkeel_http::BaseUrl;

use serde_json::json;

use super::*;

fn sent(request: &Request) -> (String, String) {
    let base = BaseUrl::parse("https://api.hetzner.cloud/v1").unwrap();
    let wire = request.to_http(&base).unwrap();
    let body = String::from_utf8(wire.body().to_vec()).unwrap();
    let line = format!("{} {}", wire.method(), wire.uri());
    (line.replace("https://api.hetzner.cloud", ""), body)
}

#[test]
fn calls_look_as_the_go_ccm_makes_them() {
    let route = Route {
        destination: "10.244.0.0/24".parse().unwrap(),
        gateway: "10.0.0.2".parse().unwrap(),
    };
    for (request, line, body) in [
        (
            action(9),
            "GET /v1/actions?id=9&page=1&sort=status&sort=id",
            "",
        ),
        (
            balancer_action(3, "delete_service", Some(json!({"listen_port": 80}))),
            "POST /v1/load_balancers/3/actions/delete_service",
            r#"{"listen_port":80}"#,
        ),
        (
            balancer_action(3, "enable_public_interface", None),
            "POST /v1/load_balancers/3/actions/enable_public_interface",
            "",
        ),
        (
            route_action(5, "add_route", &route),
            "POST /v1/networks/5/actions/add_route",
            r#"{"destination":"10.244.0.0/24","gateway":"10.0.0.2"}"#,
        ),
    ] {
        assert_eq!(sent(&request), (line.to_owned(), body.to_owned()));
    }
}

#[test]
fn what_is_made_is_never_made_twice_by_a_retry() {
    assert!(!balancer_action(3, "add_target", None).is_idempotent());
}

#[test]
fn metrics_see_no_ids() {
    let request = balancer_action(3, "add_target", None);
    let operation = "POST /load_balancers/{id}/actions/add_target";
    assert_eq!(request.operation(), operation);
}
