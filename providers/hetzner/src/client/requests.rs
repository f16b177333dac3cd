//! Every call to the Cloud API, as a value.

use std::fmt::Display;

use cloudkeel_api::Priority;
use cloudkeel_http::Request;
use cloudkeel_toolkit::{Resource, json};
use serde_json::Value;

use crate::wire::Route;

/// As much as the API gives on one page.
pub(super) const PER_PAGE: usize = 50;

pub(crate) fn list<T: Resource>() -> Request {
    Request::get(format!("/{}", T::MANY))
        .query("page", 1)
        .query("per_page", PER_PAGE)
}

pub(crate) fn named<T: Resource>(name: &str) -> Request {
    list::<T>().query("name", name)
}

pub(crate) fn labelled<T: Resource>(label: &str, value: impl Display) -> Request {
    list::<T>().query("label_selector", format!("{label}={value}"))
}

/// A Service waits for a new resource. Not repeated after a lost answer: the next observation shows by its
/// label whether it is there.
pub(crate) fn create<T: Resource>(body: Value) -> Request {
    let request = Request::post(format!("/{}", T::MANY));
    request.json(body).priority(Priority::Urgent)
}

pub(crate) fn update_balancer(id: u64, body: Value) -> Request {
    Request::put("/load_balancers/{id}")
        .param("id", id)
        .json(body)
}

pub(crate) fn delete_balancer(id: u64) -> Request {
    Request::delete("/load_balancers/{id}").param("id", id)
}

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
