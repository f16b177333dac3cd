//! The promises of the store, kept by a real API server.

use cloudkeel_manager::election::{KubeLease, LeaseStore, Record, StoreError};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::on_both_apis;

use crate::candidate::Contest;

on_both_apis![
    a_write_is_read_back_unless_another_client_was_faster,
    a_deletion_is_reported_by_the_watch,
];

fn held_by(holder: &str) -> Record {
    Record {
        holder: holder.to_owned(),
        lease_seconds: 3,
        acquired: Some("2026-02-03T04:05:06.789Z".parse().unwrap()),
        renewed: Some("2026-02-03T04:05:07.000001Z".parse().unwrap()),
        transitions: 2,
    }
}

async fn a_write_is_read_back_unless_another_client_was_faster(on: EitherApi) {
    let contest = Contest::on(on).await;
    let store = KubeLease::new(contest.client.clone(), &contest.config("a"));
    assert!(store.get().await.unwrap().is_none());

    let created = store.create(&held_by("a")).await.unwrap();
    assert_eq!(created.record(), &held_by("a"));
    let again = store.create(&held_by("b")).await;
    assert_eq!(again.unwrap_err(), StoreError::Conflict);

    let read = store.get().await.unwrap().expect("it was created");
    assert_eq!(read.record(), &held_by("a"));
    let updated = store.update(&read, &held_by("b")).await.unwrap();
    assert_eq!(updated.record(), &held_by("b"));
    let late = store.update(&created, &held_by("c")).await;
    assert_eq!(late.unwrap_err(), StoreError::Conflict);
    let now = store.get().await.unwrap().expect("it was created");
    assert_eq!(now.record(), &held_by("b"));
}

async fn a_deletion_is_reported_by_the_watch(on: EitherApi) {
    let contest = Contest::on(on).await;
    let store = KubeLease::new(contest.client.clone(), &contest.config("a"));
    store.create(&held_by("a")).await.unwrap();
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let watching = tokio::spawn(async move {
        let on_change = move |record| sender.send(record).unwrap_or_default();
        store.watch(&on_change).await
    });
    assert_eq!(seen.recv().await, Some(Some(held_by("a"))));
    let all = kube::api::DeleteParams::default();
    contest.leases().delete("ccm", &all).await.unwrap();
    assert_eq!(seen.recv().await, Some(None));
    watching.abort();
}
