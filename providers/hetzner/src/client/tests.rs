use std::sync::Arc;

use cloudkeel_api::Priority;
use cloudkeel_http::testing::{Reply, Script};
use serde_json::json;

use super::*;
use crate::wire::Server;

fn api(script: &Arc<Script>) -> Api {
    let wiring = Wiring {
        transport: Some(Arc::<Script>::clone(script)),
        seed: Some(1),
        ..Wiring::default()
    };
    let context = ProviderContext::detached("hcloud");
    Api::new(&Config::new("token"), &context, &wiring, None).unwrap()
}

fn action(status: &str, code: Option<&str>) -> Value {
    let error = code.map(|code| json!({"code": code, "message": "why"}));
    json!({"id": 9, "status": status, "command": "add_target", "error": error})
}

async fn ended(replies: Vec<Reply>) -> (Result<ActionState, CloudError>, usize) {
    let script = Script::new(replies);
    let ended = api(&script)
        .act(requests::balancer_action(3, "add_target", None))
        .await;
    (ended, script.seen().len())
}

fn began(status: &str, code: Option<&str>) -> Reply {
    Reply::json(201, &json!({"action": action(status, code)}))
}

fn looked(actions: &[Value]) -> Reply {
    Reply::json(200, &json!({"actions": actions}))
}

#[tokio::test(start_paused = true)]
async fn work_that_is_over_is_not_asked_for_again() {
    let (ended, calls) = ended(vec![began("success", None)]).await;
    assert_eq!((ended.unwrap(), calls), (ActionState::Done, 1));
}

#[tokio::test(start_paused = true)]
async fn work_is_polled_until_it_is_over() {
    let running = action("running", None);
    let (ended, calls) = ended(vec![
        began("running", None),
        looked(&[running]),
        looked(&[action("success", None)]),
    ])
    .await;
    assert_eq!((ended.unwrap(), calls), (ActionState::Done, 3));
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_long_is_checked_later() {
    let running = || looked(&[action("running", None)]);
    let replies = std::iter::once(began("running", None)).chain((0..40).map(|_| running()));
    let (ended, calls) = ended(replies.collect()).await;
    assert_eq!(ended.unwrap(), ActionState::StillRunning);
    assert!(calls < 15, "{calls}");
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_is_an_error_of_the_kind_that_its_code_says() {
    for (code, kind) in [
        (Some("locked"), ErrorKind::Busy),
        (Some("resource_limit_exceeded"), ErrorKind::LimitExceeded),
        (Some("timeout"), ErrorKind::Unavailable),
        (Some("something_new"), ErrorKind::Other),
        (None, ErrorKind::Other),
    ] {
        let at_once = vec![began("error", code)];
        let later = vec![began("running", None), looked(&[action("error", code)])];
        for replies in [at_once, later] {
            let (ended, _) = ended(replies).await;
            assert_eq!(ended.unwrap_err().kind(), kind, "{code:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_the_answer_does_not_show_is_an_error() {
    let (ended, _) = ended(vec![began("running", None), looked(&[])]).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Malformed);
}

#[tokio::test(start_paused = true)]
async fn another_server_than_the_one_asked_for_is_no_answer() {
    let server = json!({"server": {
        "id": 8, "name": "n", "status": "running", "server_type": {"name": "cx22"},
        "public_net": {"ipv4": null, "ipv6": null}, "private_net": [],
    }});
    let script = Script::new([Reply::json(200, &server)]);
    let error = api(&script)
        .get::<Server>(&7, Priority::Urgent)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let seen = script.seen();
    let (method, path) = (seen[0].method(), seen[0].uri().path());
    assert_eq!((method.as_str(), path), ("GET", "/v1/servers/7"));
}

#[tokio::test(start_paused = true)]
async fn a_list_without_its_things_is_no_list() {
    let script = Script::new([Reply::json(200, &json!({"meta": null}))]);
    let error = api(&script)
        .all::<Server>(api(&script).list::<Server>())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
}

#[tokio::test(start_paused = true)]
async fn resources_are_asked_for_as_the_go_ccm_does() {
    let script = Script::new((0..3).map(|_| Reply::json(200, &json!({"servers": []}))));
    let api = api(&script);
    let label = "hcloud-ccm/service-uid";
    for request in [
        api.list::<Server>(),
        api.named::<Server>("a b"),
        api.labelled::<Server>(label, "u-1"),
    ] {
        assert_eq!(api.all::<Server>(request).await.unwrap(), []);
    }
    let seen = script.seen();
    let lines: Vec<_> = seen.iter().map(|it| it.uri().query().unwrap()).collect();
    let expected = [
        "page=1&per_page=50",
        "page=1&per_page=50&name=a%20b",
        "page=1&per_page=50&label_selector=hcloud-ccm%2Fservice-uid%3Du-1",
    ];
    assert_eq!(lines, expected);
    let create = api.create_request::<LoadBalancer>(&json!({}));
    assert!(!create.is_idempotent(), "it is never made twice by a retry");
}
