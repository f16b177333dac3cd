//! Faults between a client and the API.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cloudkeel_embedded::{After, Before, Call, Interposer, Refusal, Verb};
use kube::api::PostParams;

use crate::objects::{add_node, api, nodes};

/// Does to the next writes what it was made for.
#[derive(Default)]
struct Script {
    before: Mutex<VecDeque<Before>>,
    after: Mutex<VecDeque<After>>,
    calls: Mutex<Vec<Call>>,
}

#[async_trait]
impl Interposer for Script {
    async fn before(&self, call: &Call) -> Before {
        self.calls.lock().expect("calls").push(call.clone());
        let next = self.before.lock().expect("a script").pop_front();
        next.unwrap_or(Before::Pass)
    }

    async fn after(&self, _call: &Call, _code: u16) -> After {
        let next = self.after.lock().expect("a script").pop_front();
        next.unwrap_or(After::Deliver)
    }
}

fn api_error(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("not an answer of the API: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_changes_nothing() {
    let api = api(1);
    let script = Arc::new(Script::default());
    let client = api.client_through("manager", Arc::<Script>::clone(&script));
    let before = api.version();
    for (refusal, code, reason) in [
        (
            Refusal::conflict("another client was faster"),
            409,
            "Conflict",
        ),
        (Refusal::expired("too old"), 410, "Expired"),
        (Refusal::too_many_requests(1), 429, "TooManyRequests"),
        (Refusal::internal_error("broken"), 500, "InternalError"),
        (Refusal::unavailable("not now"), 503, "ServiceUnavailable"),
    ] {
        let refuse = Before::Refuse(refusal);
        script.before.lock().expect("a script").push_back(refuse);
        let error = nodes(&client).get("n").await.expect_err("a refusal");
        assert_eq!(api_error(error), (code, reason.to_owned()));
    }
    assert_eq!(api.version(), before);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_a_change_that_the_client_does_not_know() {
    let api = api(1);
    let script = Arc::new(Script::default());
    let client = api.client_through("manager", Arc::<Script>::clone(&script));
    script
        .after
        .lock()
        .expect("a script")
        .push_back(After::Lose);
    let node = serde_json::from_value(serde_json::json!({"metadata": {"name": "n"}}));
    let node = node.expect("a node");
    let lost = nodes(&client).create(&PostParams::default(), &node).await;
    assert!(matches!(lost, Err(kube::Error::Service(_))), "{lost:?}");
    assert_eq!(api.journal().len(), 1, "it was carried out");

    script
        .before
        .lock()
        .expect("a script")
        .push_back(Before::Disconnect);
    let lost = nodes(&client).create(&PostParams::default(), &node).await;
    assert!(lost.is_err());
    assert_eq!(api.journal().len(), 1, "it never arrived");
}

#[tokio::test(start_paused = true)]
async fn a_replaced_answer_is_a_change_that_the_client_takes_for_a_failure() {
    let api = api(1);
    let script = Arc::new(Script::default());
    let client = api.client_through("manager", Arc::<Script>::clone(&script));
    let node = serde_json::from_value(serde_json::json!({"metadata": {"name": "n"}}));
    let node = node.expect("a node");
    let gateway = After::Replace(Refusal::timeout("too late"));
    script.after.lock().expect("a script").push_back(gateway);
    let answer = nodes(&client).create(&PostParams::default(), &node).await;
    let error = answer.expect_err("another answer");
    assert_eq!(api_error(error), (504, "Timeout".to_owned()));
    assert_eq!(api.journal().len(), 1, "it was carried out");
}

#[tokio::test(start_paused = true)]
async fn an_interposer_sees_what_is_asked() {
    let api = api(1);
    let script = Arc::new(Script::default());
    let client = api.client_through("manager-a", Arc::<Script>::clone(&script));
    add_node(&client, "n").await;
    let calls = script.calls.lock().expect("calls").clone();
    let [call] = calls.as_slice() else {
        panic!("one call: {calls:?}");
    };
    assert_eq!(call.client, "manager-a");
    assert_eq!((call.verb, call.resource.as_str()), (Verb::Create, "nodes"));
    assert_eq!(call.body["metadata"]["name"], "n");
}
