//! Happenings that belong together. Each would come about by chance too, but seldom.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use crate::accounts::{Account, Layout};
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

/// The happenings of a theme that only a cluster with two accounts has, or none.
pub(crate) fn draw_of_two_accounts(draw: &mut Draw) -> Vec<Happening> {
    if draw.chance(20) {
        return Vec::new();
    }
    let start = draw.seconds(120, 900);
    let account = draw.one_of(&Account::BOTH).unwrap_or(Account::First);
    let mut happenings = partitioned_under_the_token_of_the_other(draw, start, account);
    if draw.chance(50) {
        happenings.extend(gone_from_the_account_in_order(draw, start, account.other()));
    }
    if draw.chance(30) {
        happenings.extend(new_leader(start + draw.seconds(0, 100)));
    }
    happenings
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

/// The machines of an account that a plan may speak of.
fn machines_of(account: Account) -> Vec<usize> {
    let two = Layout::Unlabelled;
    let machines = 0..MACHINES;
    machines
        .filter(|machine| two.account_of(*machine) == account)
        .collect()
}

/// One kubelet of an account, two or all of them fall silent while their machines run, and its token is replaced by
/// that of the other account. Machines that joined later have numbers that the other account may not have.
fn partitioned_under_the_token_of_the_other(
    draw: &mut Draw,
    start: Duration,
    of: Account,
) -> Vec<Happening> {
    let mut machines = machines_of(of);
    let mut happenings = Vec::new();
    if draw.chance(50) {
        let join = (FIRST_MACHINES..MACHINES).map(|machine| at(SECOND * 5, Action::Join(machine)));
        happenings.extend(join);
    }
    if draw.chance(50) {
        machines.reverse();
    }
    let silent = draw.one_of(&[1, 2, machines.len()]).unwrap_or(1);
    let silence = machines.into_iter().take(silent);
    happenings.extend(silence.map(|machine| at(start, Action::Silence(machine))));
    let replaced = (start + draw.seconds(0, 60)).saturating_sub(SECOND * 30);
    let lasts = draw.seconds(200, 700);
    happenings.push(at(replaced, Action::ReplaceToken { of, lasts }));
    happenings
}

/// A machine of the account whose token is right goes: its Node has to go too.
fn gone_from_the_account_in_order(
    draw: &mut Draw,
    start: Duration,
    account: Account,
) -> Vec<Happening> {
    let machine = draw.one_of(&machines_of(account)).unwrap_or_default();
    vec![at(start + draw.seconds(0, 60), Action::Destroy(machine))]
}

/// Both managers die: the next leader has never seen a list with the right token.
fn new_leader(start: Duration) -> Vec<Happening> {
    let back_after = SECOND * 2;
    let crash = |who| at(start, Action::Crash { who, back_after });
    Who::BOTH.map(crash).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::run::play_with;

    #[test]
    #[ignore = "slow without optimisation: cargo xtask test --tier simulation"]
    fn nodes_of_the_account_in_order_go_while_the_token_of_the_other_is_replaced() {
        let labelled = |ahead| Layout::Labelled { ahead };
        for layout in [labelled(0), labelled(1), Layout::Unlabelled] {
            let (of, lasts) = (Account::First, SECOND * 1700);
            let happenings = vec![
                at(SECOND * 60, Action::ReplaceToken { of, lasts }),
                at(SECOND * 70, Action::Silence(0)),
                at(SECOND * 80, Action::Destroy(1)),
            ];
            let plan = Plan { layout, happenings };
            let verdict = play_with(1, &plan, None, true).unwrap();
            assert_eq!(verdict.violations, [], "{layout:?}");
            let place_of = |what| verdict.history.iter().position(|line| line.contains(what));
            let (gone, end) = (
                place_of("delete nodes node-1"),
                place_of("all trouble ends"),
            );
            assert!(gone.is_some() && gone < end, "{layout:?}: {gone:?} {end:?}");
        }
    }
}
