//! Every call to the cloud, as a value.

use cloudkeel_api::Priority;
use cloudkeel_http::Request;
use serde::Serialize;
use serde_json::Value;

use crate::wire::{BalancerPatch, ListenersChange, NewBalancer, RouteBatch, TargetChange, etag};

/// More than any cloud gives; it gives as much as it likes.
const PER_PAGE: u64 = 500;

pub(super) fn scope() -> Request {
    Request::get("/v1/scope")
}

pub(super) fn list(path: &'static str) -> Request {
    Request::get(path)
        .query("page", 1)
        .query("perPage", PER_PAGE)
}

pub(super) fn machines() -> Request {
    list("/v1/machines").priority(Priority::Background)
}

pub(super) fn machines_with_ids(ids: &[u64], priority: Priority) -> Request {
    let request = list("/v1/machines").priority(priority);
    ids.iter()
        .fold(request, |request, id| request.query("id", id))
}

pub(super) fn machines_with(key: &'static str, value: &str) -> Request {
    list("/v1/machines")
        .query(key, value)
        .priority(Priority::Urgent)
}

pub(super) fn machine(id: u64) -> Request {
    Request::get("/v1/machines/{id}")
        .param("id", id)
        .priority(Priority::Urgent)
}

pub(super) fn balancers(priority: Priority) -> Request {
    list("/v1/balancers").priority(priority)
}

pub(super) fn balancers_with_label(key: &str, value: &str) -> Request {
    list("/v1/balancers").query("label", format!("{key}={value}"))
}

pub(super) fn balancers_named(name: &str) -> Request {
    list("/v1/balancers").query("name", name)
}

pub(super) fn balancer(id: &str) -> Request {
    Request::get("/v1/balancers/{id}").param("id", id)
}

/// Somebody waits for a new balancer. Not repeated after a lost answer: the next observation shows
/// by its mark whether it is there.
pub(super) fn create_balancer(new: &NewBalancer) -> Request {
    Request::post("/v1/balancers")
        .json(json(new))
        .priority(Priority::Urgent)
}

pub(super) fn change_balancer(id: u64, version: u64, patch: &BalancerPatch) -> Request {
    Request::patch("/v1/balancers/{id}")
        .json(json(patch))
        .only_at(id, version)
}

pub(super) fn set_listeners(id: u64, version: u64, change: &ListenersChange) -> Request {
    Request::put("/v1/balancers/{id}/listeners")
        .json(json(change))
        .only_at(id, version)
}

pub(super) fn change_targets(id: u64, version: u64, change: &TargetChange) -> Request {
    Request::post("/v1/balancers/{id}/targets")
        .json(json(change))
        .only_at(id, version)
}

pub(super) fn delete_balancer(id: u64, version: u64) -> Request {
    Request::delete("/v1/balancers/{id}").only_at(id, version)
}

pub(super) fn change_routes(batch: &RouteBatch) -> Request {
    Request::post("/v1/routes/batch").json(json(batch))
}

pub(super) fn volume(id: &str) -> Request {
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

/// The wire types hold nothing but texts, numbers and lists of them, which always become JSON.
fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use cloudkeel_http::BaseUrl;

    use super::*;
    use crate::wire::TargetAt;

    fn sent(request: &Request) -> (String, String, String) {
        let base = BaseUrl::parse("http://127.0.0.1:8000").unwrap();
        let wire = request.to_http(&base).unwrap();
        let condition = wire.headers().get("if-match");
        (
            format!("{} {}", wire.method(), wire.uri()),
            condition.map_or_else(String::new, |value| value.to_str().unwrap().to_owned()),
            String::from_utf8(wire.body().to_vec()).unwrap(),
        )
    }

    #[test]
    fn a_change_of_targets_is_one_call_on_one_condition() {
        let change = TargetChange {
            add: vec![TargetAt::Machine(7)],
            remove: vec![TargetAt::Ip([10, 0, 0, 1].into())],
            ..TargetChange::default()
        };
        let request = change_targets(3, 12, &change);
        assert_eq!(
            sent(&request),
            (
                "POST http://127.0.0.1:8000/v1/balancers/3/targets".to_owned(),
                "\"12\"".to_owned(),
                r#"{"add":[{"machine":7}],"remove":[{"ip":"10.0.0.1"}]}"#.to_owned()
            )
        );
        assert!(request.is_idempotent());
    }

    #[test]
    fn many_machines_are_looked_up_in_one_call() {
        let (line, ..) = sent(&machines_with_ids(&[7, 8], Priority::Urgent));
        assert_eq!(
            line,
            "GET http://127.0.0.1:8000/v1/machines?page=1&perPage=500&id=7&id=8"
        );
    }

    #[test]
    fn marks_are_encoded() {
        let (line, ..) = sent(&balancers_with_label("cloudkeel.dev/service-uid", "u 1"));
        assert!(
            line.ends_with("&label=cloudkeel.dev%2Fservice-uid%3Du%201"),
            "{line}"
        );
    }

    #[test]
    fn a_new_balancer_is_never_made_twice_by_a_retry() {
        assert!(!create_balancer(&NewBalancer::default()).is_idempotent());
        assert!(!change_routes(&RouteBatch::default()).is_idempotent());
    }
}
