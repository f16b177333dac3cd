//! Every call to the cloud, as a value.

use cloudkeel_api::Priority;
use cloudkeel_http::Request;
use cloudkeel_toolkit::json::whole as json;

use crate::wire::{BalancerPatch, ListenersChange, NewBalancer, RouteBatch, TargetChange, etag};

/// More than any cloud gives; it gives as much as it likes.
const PER_PAGE: u64 = 500;

pub(crate) fn scope() -> Request {
    Request::get("/v1/scope")
}

pub(crate) fn list(path: &'static str) -> Request {
    Request::get(path)
        .query("page", 1)
        .query("perPage", PER_PAGE)
}

pub(crate) fn machines() -> Request {
    list("/v1/machines").priority(Priority::Background)
}

pub(crate) fn machines_with_ids(ids: &[u64], priority: Priority) -> Request {
    let request = list("/v1/machines").priority(priority);
    ids.iter()
        .fold(request, |request, id| request.query("id", id))
}

pub(crate) fn machines_with(key: &'static str, value: &str) -> Request {
    list("/v1/machines")
        .query(key, value)
        .priority(Priority::Urgent)
}

pub(crate) fn machine(id: u64) -> Request {
    Request::get("/v1/machines/{id}")
        .param("id", id)
        .priority(Priority::Urgent)
}

pub(crate) fn balancers(priority: Priority) -> Request {
    list("/v1/balancers").priority(priority)
}

pub(crate) fn balancers_with_label(key: &str, value: &str) -> Request {
    list("/v1/balancers").query("label", format!("{key}={value}"))
}

pub(crate) fn balancers_named(name: &str) -> Request {
    list("/v1/balancers").query("name", name)
}

pub(crate) fn balancer(id: &str) -> Request {
    Request::get("/v1/balancers/{id}").param("id", id)
}

/// A Service waits for a new balancer. Not repeated after a lost answer: the next observation shows by its
/// owner label whether it is there.
pub(crate) fn create_balancer(new: &NewBalancer) -> Request {
    Request::post("/v1/balancers")
        .json(json(new))
        .priority(Priority::Urgent)
}

pub(crate) fn change_balancer(id: u64, version: u64, patch: &BalancerPatch) -> Request {
    Request::patch("/v1/balancers/{id}")
        .json(json(patch))
        .only_at(id, version)
}

pub(crate) fn set_listeners(id: u64, version: u64, change: &ListenersChange) -> Request {
    Request::put("/v1/balancers/{id}/listeners")
        .json(json(change))
        .only_at(id, version)
}

pub(crate) fn change_targets(id: u64, version: u64, change: &TargetChange) -> Request {
    Request::post("/v1/balancers/{id}/targets")
        .json(json(change))
        .only_at(id, version)
}

pub(crate) fn delete_balancer(id: u64, version: u64) -> Request {
    Request::delete("/v1/balancers/{id}").only_at(id, version)
}

pub(crate) fn change_routes(batch: &RouteBatch) -> Request {
    Request::post("/v1/routes/batch").json(json(batch))
}

pub(crate) fn volume(id: &str) -> Request {
    Request::get("/v1/volumes/{id}").param("id", id)
}

trait OnlyAt {
    /// Changes the balancer only at this version, which makes repeating safe.
    fn only_at(self, id: u64, version: u64) -> Request;
}

impl OnlyAt for Request {
    fn only_at(self, id: u64, version: u64) -> Request {
        self.param("id", id)
            .if_match(etag(version))
            .idempotent(true)
    }
}

#[cfg(test)]
mod tests;
