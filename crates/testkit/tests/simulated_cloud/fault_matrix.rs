//! Every fault, on every way to ask, as often as it likes: no machine that exists is ever gone.

use std::time::Duration;

use cloudkeel_api::{CloudError, ErrorKind, Existence, InstanceList, Shared};
use cloudkeel_provider_local::wire::ErrorCode;
use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch, Operation, Settings};
use tokio::time::advance;

use crate::support::{Lab, SECOND};

/// More than one page of machines.
const MACHINES: usize = 60;

fn faults() -> Vec<Fault> {
    let coded = |status, code| Fault::Status {
        status,
        code: Some(code),
        retry_after_seconds: None,
    };
    let statuses = [
        400, 401, 403, 404, 409, 410, 412, 422, 423, 500, 502, 503, 504,
    ];
    let mut faults: Vec<Fault> = statuses.map(Fault::status).into();
    faults.extend([
        coded(500, ErrorCode::NotFound),
        coded(403, ErrorCode::NotFound),
        coded(404, ErrorCode::Forbidden),
        Fault::too_many_calls(None),
        Fault::too_many_calls(Some(2)),
        Fault::too_many_calls(Some(3600)),
        Fault::NoAnswer,
        Fault::BrokenBefore,
        Fault::BrokenAfter,
        Fault::TruncatedPage,
        Fault::LostNextPage,
        Fault::EmptyList,
        Fault::MalformedJson,
        Fault::Html,
        Fault::EmptyBody,
        Fault::Stale { by: SECOND * 10 },
        Fault::Stale {
            by: Duration::from_hours(1),
        },
        Fault::Slow { by: SECOND },
        Fault::Slow {
            by: Duration::from_hours(1),
        },
        Fault::OtherProject {
            project: "other".into(),
        },
        Fault::OtherProject {
            project: "no-such".into(),
        },
    ]);
    faults
}

/// Where and how often a fault strikes.
fn strikes() -> Vec<(FaultMatch, Option<u64>)> {
    let places = [
        FaultMatch::from(Operation::GetMachine),
        FaultMatch::from(Operation::ListMachines),
        FaultMatch::any(),
    ];
    let times = [Some(1), Some(2), None];
    let all = places.into_iter();
    all.flat_map(|place| times.map(|times| (place.clone(), times)))
        .collect()
}

async fn lab() -> Lab {
    let lab = Lab::set_up(MACHINES, Settings::default()).await;
    lab.cloud.add_project("other");
    advance(SECOND * 20).await;
    lab
}

fn strike(lab: &Lab, (place, times): &(FaultMatch, Option<u64>), fault: &Fault) {
    let on = place.clone();
    match times {
        Some(times) => lab.cloud.faults().times(on, *times, fault.clone()),
        None => lab.cloud.faults().always(on, fault.clone()),
    };
}

#[tokio::test(start_paused = true)]
async fn no_fault_makes_a_machine_that_exists_look_gone() {
    for fault in faults() {
        for strike_at in strikes() {
            let lab = lab().await;
            let known_instance = lab.known_instance_besides(0).await;
            let known_instance = known_instance.as_ref();
            strike(&lab, &strike_at, &fault);
            let mut answers = vec![lab.instances().find(&lab.node(0), known_instance).await];
            let nodes = [lab.node(0), lab.node(1)];
            answers.extend(
                lab.instances()
                    .find_many(&Shared::of_each(&nodes), known_instance)
                    .await,
            );
            for answer in answers {
                let gone = matches!(answer, Existence::Gone(_));
                assert!(!gone, "{fault:?} {strike_at:?}: {answer:?}");
            }
        }
    }
}

/// Whether a list that a fault met is fit for use.
fn is_honest(list: &Result<InstanceList, CloudError>, fault: &Fault) -> bool {
    match list {
        Err(_) => true,
        Ok(list) if list.instances().len() == MACHINES => true,
        // A state without machines: another project, or the time before the first one. It says so by
        // its scope, or nothing in it confirms anything.
        Ok(list) => {
            let another_world = matches!(fault, Fault::OtherProject { .. } | Fault::Stale { .. });
            another_world && list.instances().len() == 0
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_fault_makes_a_list_short() {
    for fault in faults() {
        for strike_at in strikes() {
            let lab = lab().await;
            lab.instances().list().await.unwrap();
            strike(&lab, &strike_at, &fault);
            let list = lab.instances().list().await;
            assert!(
                is_honest(&list, &fault),
                "{fault:?} {strike_at:?}: {list:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_fault_on_a_later_page_makes_a_list_short() {
    for fault in faults() {
        let lab = lab().await;
        lab.cloud
            .change_settings(|settings| settings.page_size = 20);
        lab.instances().list().await.unwrap();
        let first_page_is_fine = Fault::Slow { by: SECOND };
        lab.cloud
            .faults()
            .once(Operation::ListMachines, first_page_is_fine)
            .always(Operation::ListMachines, fault.clone());
        let list = lab.instances().list().await;
        assert!(is_honest(&list, &fault), "{fault:?}: {list:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrongly_empty_list_is_an_error_and_an_empty_project_is_not() {
    let lab = lab().await;
    lab.instances().list().await.unwrap();
    lab.cloud
        .faults()
        .once(Operation::ListMachines, Fault::EmptyList);
    let error = lab.instances().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete, "{error}");
    for machine in &lab.machines {
        lab.cloud.destroy(machine.id).unwrap();
    }
    let list = lab.instances().list().await.unwrap();
    assert_eq!(list.instances().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn once_the_fault_is_over_a_destroyed_machine_is_found_to_be_gone() {
    for fault in faults() {
        let lab = lab().await;
        lab.cloud.destroy(lab.machines[0].id).unwrap();
        lab.cloud.faults().always(FaultMatch::any(), fault.clone());
        let _ = lab.instances().find(&lab.node(0), None).await;
        lab.cloud.faults().clear();
        // A closed gate of the rate limiter opens again.
        advance(Duration::from_hours(2)).await;
        let known_instance = lab.known_instance_besides(0).await;
        let found = lab
            .instances()
            .find(&lab.node(0), known_instance.as_ref())
            .await;
        assert!(matches!(found, Existence::Gone(_)), "{fault:?}: {found:?}");
    }
}
