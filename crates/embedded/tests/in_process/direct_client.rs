//! Changes without a client.

use cloudkeel_embedded::Verb;
use serde_json::json;

use crate::objects::api;

const NODES: &str = "/api/v1/nodes";

#[test]
fn what_a_hand_does_is_done_when_it_returns_and_stands_in_the_journal() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    // The clock of the API belongs to a runtime; the client itself needs none.
    let api = {
        let _inside = runtime.enter();
        api(1)
    };
    let direct = api.direct_client("test");
    let made = direct.create(NODES, &json!({"metadata": {"name": "n"}}));
    let made = made.expect("a node");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = direct.merge("/api/v1/nodes/n", &label).expect("a change");
    assert_eq!(changed["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(changed["metadata"]["uid"], made["metadata"]["uid"]);
    let listed = direct.get("/api/v1/nodes?labelSelector=a%3Dc");
    assert_eq!(listed.expect("a list")["items"], json!([]));
    direct.delete("/api/v1/nodes/n").expect("a deletion");
    let journal = api.journal();
    let reported: Vec<_> = journal.iter().map(|it| (&*it.by, it.verb)).collect();
    let by = "test";
    assert_eq!(
        reported,
        [(by, Verb::Create), (by, Verb::Patch), (by, Verb::Delete)]
    );
}

#[tokio::test]
async fn a_hand_is_refused_like_any_client() {
    let api = api(1);
    let direct = api.direct_client("test");
    let code = |path: &str| direct.get(path).expect_err("a refusal").code;
    assert_eq!(code("/api/v1/nodes/n"), 404);
    assert_eq!(
        code("/api/v1/nodes?watch=true"),
        400,
        "a watch is a client's"
    );
    let bad = direct.create(NODES, &json!({"metadata": {"name": "Not a name"}}));
    assert_eq!(bad.expect_err("a refusal").code, 422);
}
