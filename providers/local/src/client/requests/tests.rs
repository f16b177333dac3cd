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
fn labels_are_encoded() {
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
