//! Every call to the Cloud API, as a value.

use std::fmt::Display;

use cloudkeel_api::Priority;
use cloudkeel_http::Request;
use serde_json::{Value, json};

use crate::wire::Route;

/// As much as the API gives on one page.
const PER_PAGE: u64 = 50;

pub(super) fn list(path: &'static str) -> Request {
    Request::get(path)
        .query("page", 1)
        .query("per_page", PER_PAGE)
}

pub(super) fn locations() -> Request {
    Request::get("/locations")
}

pub(super) fn servers() -> Request {
    list("/servers").priority(Priority::Background)
}

pub(super) fn server(id: u64) -> Request {
    Request::get("/servers/{id}")
        .param("id", id)
        .priority(Priority::Urgent)
}

pub(super) fn servers_named(name: &str) -> Request {
    named("/servers", name).priority(Priority::Urgent)
}

pub(super) fn named(path: &'static str, name: &str) -> Request {
    list(path).query("name", name)
}

pub(super) fn labelled(path: &'static str, label: &str, value: impl Display) -> Request {
    list(path).query("label_selector", format!("{label}={value}"))
}

pub(super) fn network(id: u64) -> Request {
    Request::get("/networks/{id}").param("id", id)
}

pub(super) fn balancer(id: u64) -> Request {
    Request::get("/load_balancers/{id}").param("id", id)
}

/// Somebody waits for a new thing. Not repeated after a lost answer: the next observation shows by its
/// label whether it is there.
pub(super) fn create(path: &'static str, body: Value) -> Request {
    Request::post(path).json(body).priority(Priority::Urgent)
}

pub(super) fn update_balancer(id: u64, body: Value) -> Request {
    Request::put("/load_balancers/{id}")
        .param("id", id)
        .json(body)
}

pub(super) fn delete_balancer(id: u64) -> Request {
    Request::delete("/load_balancers/{id}").param("id", id)
}

pub(super) fn balancer_action(id: u64, verb: &str, body: Option<Value>) -> Request {
    let request = Request::post(format!("/load_balancers/{{id}}/actions/{verb}")).param("id", id);
    match body {
        Some(body) => request.json(body),
        None => request,
    }
}

pub(super) fn route_action(network: u64, verb: &str, route: &Route) -> Request {
    Request::post(format!("/networks/{{id}}/actions/{verb}"))
        .param("id", network)
        .json(json!({
            "destination": route.destination.to_string(),
            "gateway": route.gateway.to_string(),
        }))
}

pub(super) fn action(id: u64) -> Request {
    Request::get("/actions")
        .query("id", id)
        .query("page", 1)
        .query("sort", "status")
        .query("sort", "id")
}

#[cfg(test)]
mod tests {
    use cloudkeel_http::BaseUrl;

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
            (servers(), "GET /v1/servers?page=1&per_page=50", ""),
            (server(7), "GET /v1/servers/7", ""),
            (
                servers_named("a b"),
                "GET /v1/servers?page=1&per_page=50&name=a%20b",
                "",
            ),
            (
                labelled("/load_balancers", "hcloud-ccm/service-uid", "u-1"),
                "GET /v1/load_balancers?page=1&per_page=50&label_selector=hcloud-ccm%2Fservice-uid%3Du-1",
                "",
            ),
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
        assert!(!create("/load_balancers", json!({})).is_idempotent());
        assert!(!balancer_action(3, "add_target", None).is_idempotent());
    }

    #[test]
    fn metrics_see_no_ids() {
        let request = balancer_action(3, "add_target", None);
        let operation = "POST /load_balancers/{id}/actions/add_target";
        assert_eq!(request.operation(), operation);
    }
}
