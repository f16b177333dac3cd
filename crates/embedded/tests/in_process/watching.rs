//! Watches: kube's own watcher, in every way it can begin, and trouble with events.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_embedded::{Call, EmbeddedApi, Interposer, Passage, Watched};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use serde_json::json;

use crate::objects::{add_node, api, nodes};

fn describe(event: &Event<Node>) -> String {
    let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
    match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(node) => format!("init {}", name(node)),
        Event::InitDone => "done".to_owned(),
        Event::Apply(node) => format!("apply {}", name(node)),
        Event::Delete(node) => format!("delete {}", name(node)),
    }
}

async fn change_some(api: &EmbeddedApi) {
    let client = api.client("changer");
    add_node(&client, "c").await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
    let patched = nodes(&client)
        .patch("a", &PatchParams::default(), &patch)
        .await;
    patched.expect("a patch");
    let deleted = nodes(&client).delete("b", &DeleteParams::default()).await;
    deleted.expect("a deletion");
}

#[tokio::test(start_paused = true)]
async fn kubes_watcher_sees_everything_however_it_begins() {
    for (case, strategy) in [
        ("list, then watch", InitialListStrategy::ListWatch),
        ("one stream", InitialListStrategy::StreamingList),
    ] {
        let api = api(1);
        let client = api.client("watcher");
        add_node(&client, "a").await;
        add_node(&client, "b").await;
        let config = watcher::Config {
            initial_list_strategy: strategy,
            ..watcher::Config::default()
        };
        let mut events = Box::pin(watcher::watcher(nodes(&client), config));
        let mut seen = Vec::new();
        for _ in 0..4 {
            let event = events.next().await.expect("an event").expect("no error");
            seen.push(describe(&event));
        }
        change_some(&api).await;
        for _ in 0..3 {
            let event = events.next().await.expect("an event").expect("no error");
            seen.push(describe(&event));
        }
        let want = [
            "init", "init a", "init b", "done", "apply c", "apply a", "delete b",
        ];
        assert_eq!(seen, want, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_whose_past_is_forgotten_lists_again() {
    let api = api(1);
    let client = api.client("watcher");
    add_node(&client, "a").await;
    let mut events = Box::pin(watcher::watcher(nodes(&client), watcher::Config::default()));
    for _ in 0..3 {
        events.next().await.expect("an event").expect("no error");
    }
    add_node(&client, "b").await;
    api.compact();
    let error = events.next().await.expect("an event").expect_err("gone");
    assert!(
        error.to_string().contains("too old resource version"),
        "{error}"
    );
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(describe(
            &events.next().await.expect("an event").expect("no error"),
        ));
    }
    assert_eq!(seen, ["init", "init a", "init b", "done"]);
}

async fn stream(client: &Client, params: &WatchParams, version: &str) -> Vec<String> {
    let events = nodes(client).watch(params, version).await.expect("a watch");
    let events = events.map_ok(|event| match event {
        WatchEvent::Added(node) => format!("added {}", node.metadata.name.unwrap_or_default()),
        WatchEvent::Modified(node) => {
            format!("modified {}", node.metadata.name.unwrap_or_default())
        }
        WatchEvent::Deleted(node) => format!("deleted {}", node.metadata.name.unwrap_or_default()),
        WatchEvent::Bookmark(_) => "bookmark".to_owned(),
        WatchEvent::Error(status) => format!("error {}", status.code),
    });
    events
        .try_collect()
        .await
        .expect("a stream without a break")
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_and_says_that_nothing_was_missed() {
    let api = api(1);
    let client = api.client("watcher");
    add_node(&client, "a").await;
    let began = tokio::time::Instant::now();
    let params = WatchParams::default().timeout(130);
    let seen = stream(&client, &params, "0").await;
    assert_eq!(seen, ["added a", "bookmark", "bookmark", "bookmark"]);
    assert_eq!(began.elapsed(), Duration::from_secs(130));
}

#[tokio::test(start_paused = true)]
async fn a_selective_watch_sees_objects_come_and_go() {
    let api = api(1);
    let client = api.client("watcher");
    let version = api.version().to_string();
    add_node(&client, "a").await;
    for zone in ["x", "y", "x"] {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"zone": zone}}}));
        let patched = nodes(&client)
            .patch("a", &PatchParams::default(), &patch)
            .await;
        patched.expect("a patch");
    }
    let params = WatchParams::default().labels("zone=x").timeout(1);
    assert_eq!(
        stream(&client, &params, &version).await,
        ["added a", "deleted a", "added a"]
    );
}

/// Writes down what passes by.
#[derive(Default)]
struct Listener(std::sync::Mutex<Vec<String>>);

#[async_trait]
impl Interposer for Listener {
    async fn watched(&self, _call: &Call, event: &Watched<'_>) -> Passage {
        let kind = event.kind.to_owned();
        self.0.lock().expect("what passed").push(kind);
        Passage::Deliver
    }
}

#[tokio::test(start_paused = true)]
async fn an_interposer_sees_that_it_is_quiet_too() {
    let api = api(1);
    let listener = Arc::new(Listener::default());
    let client = api.client_through("watcher", Arc::<Listener>::clone(&listener));
    add_node(&api.client("changer"), "a").await;
    let params = WatchParams::default().timeout(130);
    let seen = stream(&client, &params, "0").await;
    assert_eq!(seen, ["added a", "bookmark", "bookmark", "bookmark"]);
    let passed = listener.0.lock().expect("what passed").clone();
    assert_eq!(passed, ["ADDED", "BOOKMARK", "BOOKMARK", "BOOKMARK"]);
}

/// Doubles the first event and breaks the connection before the third.
struct Doubler(std::sync::atomic::AtomicU32);

#[async_trait]
impl Interposer for Doubler {
    async fn watched(&self, _call: &Call, _event: &Watched<'_>) -> Passage {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Passage::Twice,
            1 => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Passage::Deliver
            }
            _ => Passage::Disconnect,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn events_may_come_twice_late_or_not_at_all() {
    let api = api(1);
    let client = api.client_through("watcher", Arc::new(Doubler(0.into())));
    for name in ["a", "b", "c"] {
        add_node(&api.client("changer"), name).await;
    }
    let params = WatchParams::default().timeout(60);
    let watch = nodes(&client).watch(&params, "0").await.expect("a watch");
    let events: Vec<_> = watch.collect().await;
    let seen: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Ok(WatchEvent::Added(node)) => node.metadata.name.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(seen, ["a", "a", "b"]);
}
