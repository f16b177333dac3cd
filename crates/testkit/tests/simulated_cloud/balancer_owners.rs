//! Whose balancer it is.

use cloudkeel_api::{DesiredState, ErrorKind, Outcome, Severity};
use cloudkeel_provider_local::wire::{Balancer, NewBalancer};
use cloudkeel_provider_local::{CLUSTER_UID, SERVICE_UID};
use cloudkeel_testkit::simulated_cloud::{Fault, Operation, Permission, SimulatedCloud};

use crate::balancers::{apply, only, settle};
use crate::support::{Lab, node_of, spec};

fn by_hand(name: &str, labels: &[(&str, &str)]) -> NewBalancer {
    let labels = labels.iter();
    NewBalancer {
        name: name.into(),
        labels: labels.map(|(k, v)| ((*k).into(), (*v).into())).collect(),
        ..NewBalancer::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_balancer_of_the_same_name_is_not_ours_and_untouched() {
    for unique_names in [true, false] {
        let lab = Lab::with(1).await;
        lab.cloud
            .change_settings(|settings| settings.unique_names = unique_names);
        let foreign = lab
            .cloud
            .add_balancer(by_hand("au1", &[("team", "a")]))
            .unwrap();
        let spec = lab.spec(&[80]);
        let error = apply(&lab, &spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotOurs, "{error}");
        assert!(error.message().contains("cloudkeel.dev/adopt"), "{error}");
        let gone = lab
            .balancers()
            .apply(DesiredState::Absent(&spec.balancer_ref))
            .await
            .unwrap();
        assert!(matches!(gone, Outcome::Gone { .. }), "{gone:?}");
        assert_eq!(only(&lab), foreign);
        assert_eq!(lab.cloud.calls().mutations(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_is_adopted_on_request_unless_it_has_another_owner() {
    let lab = Lab::with(2).await;
    let free = lab
        .cloud
        .add_balancer(by_hand("by-hand", &[("team", "a")]))
        .unwrap();
    let marked = by_hand("other", &[(SERVICE_UID, "u-2")]);
    let theirs = lab.cloud.add_balancer(marked).unwrap();

    let mut spec = lab.spec(&[80]);
    spec.balancer_ref.adopt = Some(theirs.id.to_string());
    let error = apply(&lab, &spec).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotOurs, "{error}");
    assert_eq!(lab.cloud.balancer(theirs.id), Some(theirs));

    spec.balancer_ref.adopt = Some(free.id.to_string());
    let steps = settle(&lab, &spec).await;
    assert_eq!(steps[0], format!("adopt balancer {}", free.id));
    let adopted = lab.cloud.balancer(free.id).unwrap();
    assert_eq!(
        adopted.addresses, free.addresses,
        "clients find it where it was"
    );
    assert_eq!(adopted.labels["team"], "a");
    assert_eq!(adopted.labels[SERVICE_UID], "u-1");
    assert_eq!(adopted.targets.len(), 2);
    lab.cloud.reset_calls();
    assert_eq!(settle(&lab, &spec).await, [""; 0]);
    assert_eq!(lab.cloud.calls().mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_protected_balancer_is_released_with_an_event() {
    let lab = Lab::with(1).await;
    let spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    let before = lab
        .cloud
        .edit_balancer(only(&lab).id, |b| b.protected = true)
        .unwrap();
    for case in ["first", "again"] {
        let gone = lab
            .balancers()
            .apply(DesiredState::Absent(&spec.balancer_ref))
            .await
            .unwrap();
        assert!(matches!(gone, Outcome::Gone { .. }), "{case}: {gone:?}");
    }
    let left = only(&lab);
    assert!(left.labels.is_empty(), "{:?}", left.labels);
    let Balancer {
        version, labels, ..
    } = before.clone();
    assert_eq!(
        Balancer {
            version,
            labels,
            ..left
        },
        before,
        "nothing else is touched"
    );
    let events = lab.events.take();
    let [event] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(
        (event.severity, event.reason.as_ref()),
        (Severity::Warning, "LoadBalancerProtected")
    );
}

#[tokio::test(start_paused = true)]
async fn a_survey_needs_one_list_for_all_and_finds_the_drift() {
    let lab = Lab::with(2).await;
    let nodes = || lab.machines.iter().map(node_of);
    let specs: Vec<_> = (0..30)
        .map(|i| spec(&format!("svc{i}"), &[80], nodes()))
        .collect();
    for spec in &specs {
        settle(&lab, spec).await;
    }
    let drifted = lab.cloud.balancers()[7].id;
    lab.cloud.drop_listener(drifted, 80).unwrap();
    lab.cloud.reset_calls();
    let plans = lab.balancers().observe_all(&specs).await;
    let lengths: Vec<_> = plans
        .into_iter()
        .map(|observed| observed.unwrap().plan.len())
        .collect();
    let expected: Vec<_> = (0..30).map(|i| usize::from(i == 7)).collect();
    assert_eq!(lengths, expected);
    assert_eq!(lab.cloud.calls().total(), 1);

    lab.cloud
        .faults()
        .always(Operation::ListBalancers, Fault::status(403));
    let plans = lab.balancers().observe_all(&specs).await;
    assert_eq!(plans.len(), 30);
    assert!(
        plans
            .iter()
            .all(|plan| plan.as_ref().unwrap_err().kind() == ErrorKind::Denied)
    );
}

#[tokio::test(start_paused = true)]
async fn what_carries_the_clusters_mark_is_listed() {
    let lab = Lab::with(1).await;
    settle(&lab, &lab.spec(&[80])).await;
    lab.cloud
        .add_balancer(by_hand("foreign", &[(CLUSTER_UID, "cluster-2")]))
        .unwrap();
    let owned = lab.balancers().owned().await.unwrap();
    let [owned] = owned.as_slice() else {
        panic!("{owned:?}");
    };
    assert_eq!(owned.id, only_ours(&lab).to_string());
    assert_eq!(owned.service.as_ref().unwrap().to_string(), "ns/svc-u-1");
}

fn only_ours(lab: &Lab) -> u64 {
    let balancers = lab.cloud.balancers();
    let ours = balancers
        .iter()
        .find(|b| b.labels.contains_key(SERVICE_UID));
    ours.unwrap().id
}

#[tokio::test(start_paused = true)]
async fn with_a_swapped_token_no_balancer_is_made_in_the_wrong_project() {
    let lab = Lab::with(1).await;
    let spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    lab.cloud.add_project("other");
    lab.cloud
        .grant(SimulatedCloud::TOKEN, "other", Permission::ReadWrite);
    lab.cloud.reset_calls();
    for desired in [
        DesiredState::Present(&spec),
        DesiredState::Absent(&spec.balancer_ref),
    ] {
        let error = lab.balancers().apply(desired).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
    assert_eq!(lab.cloud.calls().mutations(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lying_empty_list_makes_no_second_balancer() {
    let lab = Lab::with(1).await;
    let spec = lab.spec(&[80]);
    settle(&lab, &spec).await;
    lab.cloud
        .faults()
        .always(Operation::ListBalancers, Fault::EmptyList);
    let outcome = apply(&lab, &spec).await.unwrap();
    assert!(matches!(outcome, Outcome::Pending { .. }), "{outcome:?}");
    assert_eq!(lab.cloud.balancers().len(), 1);
}
