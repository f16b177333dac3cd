//! The calls to the Cloud API that begin or show actions, as values.

use cloudkeel_http::Request;
use cloudkeel_toolkit::json;
use serde_json::Value;

use crate::wire::Route;

pub(crate) fn balancer_action(id: u64, verb: &str, body: Option<Value>) -> Request {
    let request = Request::post(format!("/load_balancers/{{id}}/actions/{verb}")).param("id", id);
    match body {
        Some(body) => request.json(body),
        None => request,
    }
}

pub(crate) fn route_action(network: u64, verb: &str, route: &Route) -> Request {
    Request::post(format!("/networks/{{id}}/actions/{verb}"))
        .param("id", network)
        .json(json::body(route))
}

pub(crate) fn action(id: u64) -> Request {
    Request::get("/actions")
        .query("id", id)
        .query("page", 1)
        .query("sort", "status")
        .query("sort", "id")
}

#[cfg(test)]
mod tests;
