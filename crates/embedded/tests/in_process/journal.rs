//! Who changed what, and that the same seed gives the same state.

use std::time::Duration;

use cloudkeel_embedded::{EmbeddedApi, Identity, Verb};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::objects::{add_balancer, add_node, api, nodes};

#[tokio::test(start_paused = true)]
async fn the_journal_tells_who_changed_what() {
    let api = api(1);
    let (first, second) = (api.client("manager-a"), api.client("manager-b"));
    add_node(&first, "n").await;
    let labels = Patch::Merge(json!({"metadata": {"labels": {"zone": "x"}}}));
    let patched = nodes(&second)
        .patch("n", &PatchParams::default(), &labels)
        .await;
    let again = nodes(&first)
        .patch("n", &PatchParams::default(), &labels)
        .await;
    assert_eq!(patched.expect("a patch"), again.expect("the same patch"));
    let removed = nodes(&first).delete("n", &DeleteParams::default()).await;
    removed.expect("a deletion");

    let journal = api.journal();
    let reported: Vec<_> = journal
        .iter()
        .map(|commit| (&*commit.by, commit.verb, commit.name.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            ("manager-a", Verb::Create, "n"),
            ("manager-b", Verb::Patch, "n"),
            ("manager-a", Verb::Delete, "n"),
        ],
        "a patch that changes nothing is no change"
    );
    let versions: Vec<_> = journal.iter().map(|commit| commit.version).collect();
    assert!(
        versions.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{versions:?}"
    );
    let last = journal.last().expect("a last change");
    assert!(last.after.is_none() && last.before.is_some());
    assert_eq!(api.journal_from(2), journal[2..]);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_makes_the_same_objects() {
    async fn state(seed: u64) -> Vec<String> {
        let api = api(seed);
        let client = api.client("manager");
        for name in ["a", "b"] {
            add_node(&client, name).await;
            add_balancer(&client, name).await;
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        let changes = api.journal();
        changes.iter().map(|commit| format!("{commit:?}")).collect()
    }
    assert_eq!(state(7).await, state(7).await);
    assert_ne!(state(7).await, state(8).await);
}

#[tokio::test(start_paused = true)]
async fn tokens_do_not_follow_from_the_seed() {
    let (first, second) = (api(7), api(7));
    let token = |api: &EmbeddedApi| api.issue_token(Identity::admin("me"));
    assert_ne!(token(&first), token(&second));
}
