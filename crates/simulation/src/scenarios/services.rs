//! Actions that belong together, about Services and their balancers.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use super::{FIRST, FIRST_MACHINES, SECOND, at};
use crate::action::{Action, Annotation};
use crate::plan::TimedAction;
use crate::rng::Rng;

/// The actions of one scenario about Services, or none.
pub(crate) fn of_services(rng: &mut Rng) -> Vec<TimedAction> {
    let start = rng.seconds(60, 900);
    match rng.between(0, 15) {
        0 => protected_and_not_wanted(rng, start),
        1 => families_changed(rng, start),
        2 => all_leave_while_another_waits(start),
        3 => all_are_excluded(start),
        4 => deleted_under_another_credential(rng, start),
        5 => deleted_while_lists_are_empty(rng, start),
        6 => another_credential_during_a_deletion(rng, start),
        7 => right_credential_back_during_a_deletion(rng, start),
        8 => paused(rng, start),
        9 => retained(rng, start),
        _ => Vec::new(),
    }
}

/// A balancer that may not be deleted loses its Service, or is not wanted any more and then again.
fn protected_and_not_wanted(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let (annotation, value) = (Annotation::Protected, Some("true"));
    let protect = Action::Annotate {
        service: 0,
        annotation,
        value,
    };
    let mut actions = vec![
        at(start, Action::CreateService(0)),
        at(start + SECOND * 60, protect),
    ];
    let gone = start + rng.seconds(120, 240);
    if rng.chance(50) {
        actions.push(at(gone, Action::DeleteService(0)));
    } else {
        actions.push(at(gone, Action::ChangeServiceType(0)));
        let again = gone + rng.seconds(1, 120);
        actions.push(at(again, Action::ChangeServiceType(0)));
    }
    actions
}

/// From one family to both, or back, while the balancer may still be changing.
fn families_changed(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let mut actions = vec![at(start, Action::CreateService(0))];
    let mut when = start;
    for _ in 0..3 {
        when += rng.seconds(1, 90);
        actions.push(at(when, Action::ChangeFamilies(0)));
    }
    actions
}

/// The autoscaler removes all Nodes, and the one that joins has no machine: it cannot serve in their place.
fn all_leave_while_another_waits(start: Duration) -> Vec<TimedAction> {
    let later = start + SECOND * 60;
    let mut actions = vec![
        at(start, Action::CreateService(0)),
        at(later, Action::Join(FIRST)),
        at(later, Action::Destroy(FIRST)),
    ];
    let leave = |machine| at(later + SECOND * 10, Action::ToggleAutoscalerTaint(machine));
    actions.extend(FIRST_MACHINES.map(leave));
    actions
}

/// No Node is to be a target any more.
fn all_are_excluded(start: Duration) -> Vec<TimedAction> {
    let exclude = |machine| at(start + SECOND * 60, Action::ToggleExclusion(machine));
    let mut actions = vec![at(start, Action::CreateService(0))];
    actions.extend(FIRST_MACHINES.map(exclude));
    actions
}

/// The other project shows no balancer of ours.
fn deleted_under_another_credential(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let (swapped, lasts) = (start + SECOND * 120, rng.seconds(100, 400));
    vec![
        at(start, Action::CreateService(0)),
        at(swapped, Action::SwapCredential { lasts }),
        at(swapped + SECOND * 20, not_wanted(rng)),
    ]
}

/// Lists of balancers are empty, and nothing else is wrong.
fn deleted_while_lists_are_empty(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let (hidden, lasts) = (start + SECOND * 120, rng.seconds(30, 90));
    let hides = Action::CloudFault {
        on: Some(Operation::ListBalancers),
        fault: Fault::EmptyList,
        lasts,
    };
    vec![
        at(start, Action::CreateService(0)),
        at(hidden, hides),
        at(hidden + SECOND * 5, not_wanted(rng)),
    ]
}

/// A list takes so long that the deletion of what it shows arrives in another project, where there is no such balancer.
fn another_credential_during_a_deletion(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let later = start + SECOND * 120;
    let slow = Action::CloudFault {
        on: Some(Operation::ListBalancers),
        fault: Fault::Slow { by: SECOND * 8 },
        lasts: SECOND * 30,
    };
    let lasts = rng.seconds(100, 300);
    vec![
        at(start, Action::CreateService(0)),
        at(later, slow),
        at(later + SECOND, not_wanted(rng)),
        at(later + SECOND * 5, Action::SwapCredential { lasts }),
    ]
}

/// A list by another credential shows no balancer and takes long. When it ends, the right credential is back, which
/// confirms the cloud but not that list.
fn right_credential_back_during_a_deletion(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let later = start + SECOND * 120;
    let slow = Action::CloudFault {
        on: Some(Operation::ListBalancers),
        fault: Fault::Slow { by: SECOND * 12 },
        lasts: SECOND * 400,
    };
    let lasts = rng.seconds(150, 200);
    let mut actions = vec![
        at(start, Action::CreateService(0)),
        at(later, Action::SwapCredential { lasts }),
        at(later + SECOND, slow),
    ];
    actions.push(at(later + rng.seconds(2, 12), not_wanted(rng)));
    actions
}

/// The operator pauses a Service, which changes all the same, as do its balancer and the Nodes.
fn paused(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let begins = start + SECOND * 60;
    let mut actions = vec![
        at(start, Action::CreateService(0)),
        at(begins, Action::PauseService(0)),
        at(begins + rng.seconds(1, 60), Action::EditBalancer(0)),
        at(begins + SECOND * 300, Action::ChangePorts(0)),
        at(begins + SECOND * 330, Action::ToggleExclusion(0)),
    ];
    if rng.chance(50) {
        let gone = begins + rng.seconds(340, 400);
        actions.push(at(gone, Action::DeleteService(0)));
    }
    actions
}

/// A Service goes whose balancer is to stay.
fn retained(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let retain = Action::Annotate {
        service: 0,
        annotation: Annotation::Retain,
        value: Some("true"),
    };
    let annotated = start + SECOND * 60;
    vec![
        at(start, Action::CreateService(0)),
        at(annotated, retain),
        at(annotated + rng.seconds(1, 500), not_wanted(rng)),
    ]
}

fn not_wanted(rng: &mut Rng) -> Action {
    if rng.chance(50) {
        Action::DeleteService(0)
    } else {
        Action::ChangeServiceType(0)
    }
}
