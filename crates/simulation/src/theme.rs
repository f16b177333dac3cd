//! Happenings that belong together. Each would come about by chance too, but seldom.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use crate::action::{Action, MACHINES, Who};
use crate::draw::Draw;
use crate::furnish::FIRST_MACHINES;
use crate::plan::Happening;

const SECOND: Duration = Duration::from_secs(1);

/// The happenings of one theme, or none.
pub(crate) fn draw(draw: &mut Draw) -> Vec<Happening> {
    let start = draw.seconds(60, 900);
    let machine = draw.below(FIRST_MACHINES);
    match draw.between(0, 9) {
        0 => many_go_at_once(start),
        1 => held_and_destroyed(start, machine),
        2 => silent_under_another_credential(draw, start, machine),
        3 => silent_while_the_cloud_hides_it(draw, start, machine),
        4 => held_while_nobody_watches(start, machine),
        5 => silent_in_a_zone_that_the_cloud_hides(draw, start, machine),
        6 => another_credential_after_an_outage(draw, start, machine),
        7 => another_credential_while_all_is_cordoned(draw, start, machine),
        8 => rebuilt_twice_under_their_names(start),
        _ => Vec::new(),
    }
}

fn at(at: Duration, action: Action) -> Happening {
    Happening { at, action }
}

fn many_go_at_once(start: Duration) -> Vec<Happening> {
    let join = (FIRST_MACHINES..MACHINES).map(|machine| at(SECOND * 5, Action::Join(machine)));
    let go = (0..FIRST_MACHINES).map(|machine| at(start, Action::Destroy(machine)));
    join.chain(go).collect()
}

/// Every list of the first time shows machines that are gone at the second. Some Nodes stay: without any, nobody
/// could tell whether the credential is the right one.
fn rebuilt_twice_under_their_names(start: Duration) -> Vec<Happening> {
    let join = (FIRST_MACHINES..MACHINES).map(|machine| at(SECOND * 5, Action::Join(machine)));
    let times = [start, start + SECOND * 40];
    let rebuilt = times.into_iter().flat_map(|time| {
        let first = 0..FIRST_MACHINES;
        first.map(move |machine| at(time, Action::Rebuild(machine)))
    });
    join.chain(rebuilt).collect()
}

fn held_and_destroyed(start: Duration, machine: usize) -> Vec<Happening> {
    vec![
        at(start, Action::Hold(machine)),
        at(start + SECOND * 10, Action::Destroy(machine)),
    ]
}

fn silent_under_another_credential(
    draw: &mut Draw,
    start: Duration,
    machine: usize,
) -> Vec<Happening> {
    let lasts = draw.seconds(200, 500);
    vec![
        at(start, Action::Silence(machine)),
        at(start + SECOND * 5, Action::SwapCredential { lasts }),
    ]
}

fn silent_while_the_cloud_hides_it(
    draw: &mut Draw,
    start: Duration,
    machine: usize,
) -> Vec<Happening> {
    let lasts = draw.seconds(40, 200);
    let hides = Action::CloudTrouble {
        on: Some(Operation::ListMachines),
        fault: Fault::EmptyList,
        lasts,
    };
    vec![
        at(start, Action::Silence(machine)),
        at(start + SECOND * 60, hides),
    ]
}

fn held_while_nobody_watches(start: Duration, machine: usize) -> Vec<Happening> {
    let lasts = SECOND * 120;
    let stall = |who| at(start + SECOND * 42, Action::StallWatches { who, lasts });
    vec![
        at(start, Action::Destroy(machine)),
        stall(Who::A),
        stall(Who::B),
        at(start + SECOND * 44, Action::Hold(machine)),
    ]
}

fn silent_in_a_zone_that_the_cloud_hides(
    draw: &mut Draw,
    start: Duration,
    machine: usize,
) -> Vec<Happening> {
    let lasts = draw.seconds(200, 500);
    vec![
        at(start, Action::Silence(machine)),
        at(start + SECOND * 5, Action::Hide { machine, lasts }),
    ]
}

/// Every lease is old when the API is back, and the credential is not what it was.
fn another_credential_after_an_outage(
    draw: &mut Draw,
    start: Duration,
    machine: usize,
) -> Vec<Happening> {
    let outage = draw.seconds(60, 300);
    let lasts = outage + draw.seconds(100, 400);
    vec![
        at(start, Action::Silence(machine)),
        at(start + SECOND * 5, Action::Outage { lasts: outage }),
        at(start + SECOND * 10, Action::SwapCredential { lasts }),
    ]
}

fn another_credential_while_all_is_cordoned(
    draw: &mut Draw,
    start: Duration,
    machine: usize,
) -> Vec<Happening> {
    let lasts = draw.seconds(200, 500);
    vec![
        at(start, Action::Cordon),
        at(start + SECOND, Action::Silence(machine)),
        at(start + SECOND * 5, Action::SwapCredential { lasts }),
    ]
}
