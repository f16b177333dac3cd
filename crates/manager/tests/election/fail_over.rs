//! Candidates of ours among themselves.

use cloudkeel_testkit::cluster::eventually;
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::on_both_apis;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::candidate::{Contest, DEADLINE, LEASE};

on_both_apis![
    a_fresh_lease_is_created_and_renewed,
    events_on_the_lease_tell_who_leads,
    a_released_lease_goes_to_who_waits,
    a_crashed_leader_is_followed_when_its_lease_has_expired,
    of_many_candidates_one_leads_after_the_other,
    what_others_wrote_on_the_lease_stays,
];

async fn a_fresh_lease_is_created_and_renewed(on: EitherApi) {
    let contest = Contest::on(on).await;
    let leader = contest.candidate("a");
    leader.leads().await;

    let spec = contest.lease().await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("a"));
    assert_eq!(spec.lease_duration_seconds, Some(3));
    assert_eq!(spec.lease_transitions, Some(0));
    let acquired = spec.acquire_time.clone().unwrap();
    eventually("a renewal", DEADLINE, || async {
        let renewed = contest.lease().await.spec.unwrap();
        assert_eq!(renewed.acquire_time.as_ref(), Some(&acquired));
        renewed.renew_time > spec.renew_time
    })
    .await;
    leader.stop().await;
}

async fn events_on_the_lease_tell_who_leads(on: EitherApi) {
    let contest = Contest::on(on).await;
    let leader = contest.candidate("node-1_5e1f");
    leader.leads().await;
    leader.stop().await;

    let events: Api<Event> = Api::namespaced(contest.client.clone(), contest.namespace.name());
    let found = eventually("both events", DEADLINE, || async {
        let of_lease = ListParams::default().fields("involvedObject.kind=Lease");
        let list = events.list(&of_lease).await?;
        Ok::<_, kube::Error>((list.items.len() == 2).then_some(list.items))
    })
    .await;
    let uid = contest.lease().await.metadata.uid;
    let mut messages = Vec::new();
    for event in found {
        assert_eq!(event.reason.as_deref(), Some("LeaderElection"));
        assert_eq!(event.type_.as_deref(), Some("Normal"));
        let component = event.source.and_then(|source| source.component);
        assert_eq!(component.as_deref(), Some("cloud-controller-manager"));
        assert_eq!(event.involved_object.name.as_deref(), Some(LEASE));
        assert_eq!(event.involved_object.uid, uid);
        messages.extend(event.message);
    }
    messages.sort();
    assert_eq!(
        messages,
        ["node-1_5e1f became leader", "node-1_5e1f stopped leading"]
    );
}

async fn a_released_lease_goes_to_who_waits(on: EitherApi) {
    let contest = Contest::on(on).await;
    let first = contest.candidate("a");
    first.leads().await;
    let second = contest.candidate("b");
    second.waits_for("a").await;
    let fence = first.election.fence();

    first.stop().await;
    assert!(!fence.is_open());
    second.leads().await;
    assert_eq!(second.election.fence().epoch(), Some(1));
    let spec = contest.lease().await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("b"));
    assert_eq!(spec.lease_transitions, Some(1));
}

async fn a_crashed_leader_is_followed_when_its_lease_has_expired(on: EitherApi) {
    let contest = Contest::on(on).await;
    let first = contest.candidate("a");
    first.leads().await;
    let second = contest.candidate("b");
    second.waits_for("a").await;

    first.crash().await;
    let spec = contest.lease().await.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("a"), "not released");
    second.leads().await;
    let spec = contest.lease().await.spec.unwrap();
    assert_eq!(spec.lease_transitions, Some(1));
}

async fn of_many_candidates_one_leads_after_the_other(on: EitherApi) {
    let contest = Contest::on(on).await;
    let mut waiting: Vec<_> = ["a", "b", "c"].map(|name| contest.candidate(name)).into();
    for transitions in 0..3 {
        let leads = |running: &crate::candidate::Running| running.election.is_leader();
        let position = eventually("a leader", DEADLINE, || async {
            let leaders = waiting.iter().filter(|running| leads(running)).count();
            assert!(leaders <= 1, "{leaders} lead");
            waiting.iter().position(leads)
        })
        .await;
        let spec = contest.lease().await.spec.unwrap();
        assert_eq!(spec.lease_transitions, Some(transitions));
        waiting.swap_remove(position).stop().await;
    }
}

async fn what_others_wrote_on_the_lease_stays(on: EitherApi) {
    let contest = Contest::on(on).await;
    let first = contest.candidate("a");
    first.leads().await;
    let label = json!({"metadata": {"labels": {"team": "infra"}}});
    let patch = kube::api::Patch::Merge(&label);
    let leases = contest.leases();
    leases
        .patch(LEASE, &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
    first.stop().await;
    let second = contest.candidate("b");
    second.leads().await;
    let labels = contest.lease().await.metadata.labels.unwrap();
    assert_eq!(labels["team"], "infra");
}
