//! How events are written, to the last one.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloudkeel_api::{Clock, Event, Subject, TokioClock};
use cloudkeel_controllers::runtime::{EventRecorder, write_events};
use cloudkeel_embedded::EmbeddedApi;
use k8s_openapi::api::core::v1::Event as KubeEvent;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use tokio_util::sync::CancellationToken;

fn about_a_node(message: &str) -> Event {
    let subject = Subject::Node {
        name: "n".to_owned(),
        uid: "u".to_owned(),
    };
    Event::warning(subject, "Trouble", message.to_owned())
}

/// Writes what was emitted, also what was not written before the stop.
async fn written(api: &EmbeddedApi, clock: &Arc<dyn Clock>, events: &[Event]) -> Vec<String> {
    let (recorder, reports) = EventRecorder::channel();
    let sink = recorder.sink("test");
    for event in events {
        sink.emit(event.clone());
    }
    let stop = CancellationToken::new();
    stop.cancel();
    write_events(api.client("test"), reports, Arc::clone(clock), stop).await;
    messages(api).await
}

async fn messages(api: &EmbeddedApi) -> Vec<String> {
    let events: Api<KubeEvent> = Api::namespaced(api.client("test"), "default");
    let list = events.list(&ListParams::default()).await.expect("a list");
    list.items
        .into_iter()
        .filter_map(|event| event.message)
        .collect()
}

fn world() -> (EmbeddedApi, Arc<dyn Clock>) {
    let epoch = "2026-01-01T00:00:00Z".parse().expect("a moment");
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(epoch));
    let api = EmbeddedApi::builder().clock(Arc::clone(&clock)).build();
    (api, clock)
}

#[tokio::test(start_paused = true)]
async fn what_waits_at_a_stop_is_written_first() {
    let (api, clock) = world();
    let events = ["a", "b", "c"].map(about_a_node);
    assert_eq!(written(&api, &clock, &events).await, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn what_has_expired_in_the_cluster_is_written_anew_with_the_text_it_had() {
    let (api, clock) = world();
    let (recorder, reports) = EventRecorder::channel();
    let sink = recorder.sink("test");
    let stop = CancellationToken::new();
    let writing = write_events(api.client("test"), reports, clock, stop.clone());
    let trouble = async {
        for number in 0..11 {
            sink.emit(about_a_node(&number.to_string()));
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let combined = "(combined from similar events): 10";
        assert_eq!(
            messages(&api).await.last().map(String::as_str),
            Some(combined)
        );
        let events: Api<KubeEvent> = Api::namespaced(api.client("test"), "default");
        let (how, which) = (DeleteParams::default(), ListParams::default());
        let expired = events.delete_collection(&how, &which).await;
        expired.expect("they expire");
        sink.emit(about_a_node("10"));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(messages(&api).await, [combined]);
        stop.cancel();
    };
    futures::join!(writing, trouble);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_written_completely_and_equal_events_in_a_row_are_one() {
    let (api, clock) = world();
    let about = |number: usize| {
        let subject = Subject::Node {
            name: format!("n-{number}"),
            uid: format!("u-{number}"),
        };
        Event::normal(subject, "Synced", format!("{number}"))
    };
    let batch = (0..300).map(about);
    let events: Vec<Event> = batch.chain([about(7), about(7), about(299)]).collect();
    let messages = written(&api, &clock, &events).await;
    let different: BTreeSet<&String> = messages.iter().collect();
    assert_eq!((messages.len(), different.len()), (300, 300));
    let all: Api<KubeEvent> = Api::namespaced(api.client("test"), "default");
    let all = all.list(&ListParams::default()).await.expect("a list");
    let count = |text: &str| {
        let found = all.iter().find(|e| e.message.as_deref() == Some(text));
        found.and_then(|event| event.count)
    };
    assert_eq!(
        [count("7"), count("299"), count("8")],
        [Some(3), Some(2), Some(1)]
    );
}
