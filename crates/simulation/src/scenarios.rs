//! Actions that belong together. Each would come about by chance too, but seldom.

mod services;

use std::ops::Range;
use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use crate::accounts::{Account, Layout};
use crate::action::{Action, ApiFault, ManagerId, random_accounts};
use crate::plan::TimedAction;
use crate::rng::Rng;

pub(crate) use self::services::of_services;

const SECOND: Duration = Duration::from_secs(1);

/// Machines that scenarios are about, which every cluster can have.
const MACHINES: usize = 6;

/// Those of them that are mostly there from the start.
const FIRST: usize = 4;
pub(crate) const FIRST_MACHINES: Range<usize> = 0..FIRST;

/// The actions of one scenario about machines and clouds, or none.
pub(crate) fn random(rng: &mut Rng) -> Vec<TimedAction> {
    let start = rng.seconds(60, 900);
    let machine = rng.below(FIRST);
    match rng.between(0, 10) {
        0 => many_go_at_once(start),
        1 => held_and_destroyed(start, machine),
        2 => silent_under_another_credential(rng, start, machine),
        3 => silent_while_the_cloud_hides_it(rng, start, machine),
        4 => held_while_watches_stall(start, machine),
        5 => silent_in_a_zone_that_the_cloud_hides(rng, start, machine),
        6 => another_credential_after_an_outage(rng, start, machine),
        7 => another_credential_while_all_is_cordoned(rng, start, machine),
        8 => rebuilt_twice_under_their_names(start),
        9 => rebuilt_under_another_credential(rng, start),
        _ => Vec::new(),
    }
}

/// The actions of one scenario about the managers and the API, or none.
pub(crate) fn of_processes(rng: &mut Rng) -> Vec<TimedAction> {
    let start = rng.seconds(60, 900);
    match rng.between(0, 9) {
        0 => leader_frozen_while_there_is_work(rng, start),
        1 => crashed_while_writes_are_late(rng, start),
        2 => restarted_while_throttled(rng, start),
        3 => stale_lists_after_changes(rng, start),
        4 => token_rotated(rng, start),
        _ => Vec::new(),
    }
}

/// The first machines of a cluster that has none.
pub(crate) fn first_machines(rng: &mut Rng) -> Vec<TimedAction> {
    let start = rng.seconds(60, 600);
    let join = |(machine, second)| at(start + SECOND * second, Action::Join(machine));
    FIRST_MACHINES.zip(0u32..).map(join).collect()
}

/// The leader wakes up with plans that are minutes old, and another one leads.
fn leader_frozen_while_there_is_work(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let lasts = rng.seconds(20, 300);
    let during = start + lasts / 2;
    vec![
        at(start.saturating_sub(SECOND * 2), Action::CreateService(0)),
        at(start.saturating_sub(SECOND), Action::Destroy(0)),
        at(start, Action::FreezeLeader { lasts }),
        at(during, Action::ChangeServiceType(0)),
        at(during, Action::CreateService(1)),
        at(start + lasts, Action::ChangePorts(0)),
    ]
}

/// What a manager wrote arrives after it has crashed, and after Services have changed again.
fn crashed_while_writes_are_late(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let (kind, percent, back_after) = (ApiFault::Late, 100, SECOND * 2);
    let late = |manager_id| {
        let lasts = SECOND * 20;
        let fault = Action::ApiFault {
            manager_id,
            kind,
            percent,
            lasts,
        };
        at(start, fault)
    };
    let mut actions: Vec<_> = ManagerId::BOTH.map(late).into();
    actions.push(at(start + SECOND, Action::CreateService(0)));
    actions.push(at(start + SECOND, Action::ChangeServiceType(1)));
    actions.push(at(start + SECOND, Action::Join(FIRST)));
    if rng.chance(70) {
        let crash = |manager_id| Action::Crash {
            manager_id,
            back_after,
        };
        let crashed = start + SECOND * 15;
        actions.extend(ManagerId::BOTH.map(|manager_id| at(crashed, crash(manager_id))));
    }
    let again = start + rng.seconds(20, 60);
    actions.push(at(again, Action::ChangeServiceType(0)));
    actions.push(at(again + SECOND * 10, Action::ChangeServiceType(1)));
    actions
}

fn restarted_while_throttled(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let (percent, lasts) = (rng.between(60, 100), rng.seconds(60, 240));
    let mut actions = vec![at(start, Action::Throttle { percent, lasts })];
    actions.extend(new_leader(start + SECOND * 10));
    actions
}

/// A new leader begins with lists that are older than what the last one saw.
fn stale_lists_after_changes(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let (age, lasts) = (rng.seconds(20, 120), SECOND * 60);
    let stale = |manager_id| {
        let action = Action::StaleLists {
            manager_id,
            age,
            lasts,
        };
        at(start, action)
    };
    let mut actions: Vec<_> = ManagerId::BOTH.map(stale).into();
    actions.push(at(
        start.saturating_sub(SECOND * 15),
        Action::CreateService(0),
    ));
    actions.push(at(
        start.saturating_sub(SECOND * 10),
        Action::DeleteService(1),
    ));
    actions.push(at(start.saturating_sub(SECOND * 5), Action::Rebuild(0)));
    if rng.chance(60) {
        actions.extend(new_leader(start + SECOND));
    }
    actions
}

fn token_rotated(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let (of, revoked_after) = (Account::First, rng.seconds(0, 120));
    let rotate = at(start, Action::RotateToken { of, revoked_after });
    vec![rotate, at(start + SECOND * 5, Action::CreateService(0))]
}

/// The actions of a scenario that only a cluster with several accounts has, or none.
pub(crate) fn of_accounts(rng: &mut Rng, layout: Layout) -> Vec<TimedAction> {
    if rng.chance(20) {
        return Vec::new();
    }
    let start = rng.seconds(120, 900);
    let (of, by) = random_accounts(rng, layout);
    let machines = machines_of(layout, of);
    let mut actions = partitioned_under_the_token_of_another(rng, start, machines, (of, by));
    if rng.chance(50) {
        let machines = machines_of(layout, by);
        actions.extend(gone_from_the_account_in_order(rng, start, &machines));
    }
    if rng.chance(30) {
        actions.extend(new_leader(start + rng.seconds(0, 100)));
    }
    if rng.chance(20) {
        actions.extend(balancers_shown_by_two_clouds(rng, start, of));
    }
    actions
}

/// The token of another account sees the balancers of the default cloud, which are old by then, and a new leader checks
/// whose they are.
fn balancers_shown_by_two_clouds(rng: &mut Rng, start: Duration, of: Account) -> Vec<TimedAction> {
    let (by, lasts) = (Account::First, rng.seconds(300, 700));
    if of == by {
        return Vec::new();
    }
    let later = start + SECOND * 420;
    let mut actions = vec![
        at(start, Action::CreateService(0)),
        at(later, Action::ReplaceToken { of, by, lasts }),
    ];
    actions.extend(new_leader(later + rng.seconds(20, 60)));
    actions
}

fn at(at: Duration, action: Action) -> TimedAction {
    TimedAction { at, action }
}

fn many_go_at_once(start: Duration) -> Vec<TimedAction> {
    let join = (FIRST..MACHINES).map(|machine| at(SECOND * 5, Action::Join(machine)));
    let go = FIRST_MACHINES.map(|machine| at(start, Action::Destroy(machine)));
    join.chain(go).collect()
}

/// Every list of the first time shows machines that are gone at the second. Some Nodes stay: without any, no manager
/// could tell whether the credential is the right one.
fn rebuilt_twice_under_their_names(start: Duration) -> Vec<TimedAction> {
    let join = (FIRST..MACHINES).map(|machine| at(SECOND * 5, Action::Join(machine)));
    let times = [start, start + SECOND * 40];
    let rebuilt = times.into_iter().flat_map(|time| {
        let first = FIRST_MACHINES;
        first.map(move |machine| at(time, Action::Rebuild(machine)))
    });
    join.chain(rebuilt).collect()
}

/// The other project has a machine of that name too.
fn rebuilt_under_another_credential(rng: &mut Rng, start: Duration) -> Vec<TimedAction> {
    let lasts = rng.seconds(100, 400);
    vec![
        at(start, Action::SwapCredential { lasts }),
        at(start + rng.seconds(20, 60), Action::Rebuild(0)),
    ]
}

fn held_and_destroyed(start: Duration, machine: usize) -> Vec<TimedAction> {
    vec![
        at(start, Action::ToggleHold(machine)),
        at(start + SECOND * 10, Action::Destroy(machine)),
    ]
}

fn silent_under_another_credential(
    rng: &mut Rng,
    start: Duration,
    machine: usize,
) -> Vec<TimedAction> {
    let lasts = rng.seconds(200, 500);
    vec![
        at(start, Action::StopKubelet(machine)),
        at(start + SECOND * 5, Action::SwapCredential { lasts }),
    ]
}

fn silent_while_the_cloud_hides_it(
    rng: &mut Rng,
    start: Duration,
    machine: usize,
) -> Vec<TimedAction> {
    let lasts = rng.seconds(40, 200);
    let hides = Action::CloudFault {
        on: Some(Operation::ListMachines),
        fault: Fault::EmptyList,
        lasts,
    };
    vec![
        at(start, Action::StopKubelet(machine)),
        at(start + SECOND * 60, hides),
    ]
}

fn held_while_watches_stall(start: Duration, machine: usize) -> Vec<TimedAction> {
    let lasts = SECOND * 120;
    let stall = |manager_id| {
        at(
            start + SECOND * 42,
            Action::StallWatches {
                manager_id,
                resource: None,
                lasts,
            },
        )
    };
    vec![
        at(start, Action::Destroy(machine)),
        stall(ManagerId::A),
        stall(ManagerId::B),
        at(start + SECOND * 44, Action::ToggleHold(machine)),
    ]
}

fn silent_in_a_zone_that_the_cloud_hides(
    rng: &mut Rng,
    start: Duration,
    machine: usize,
) -> Vec<TimedAction> {
    let lasts = rng.seconds(200, 500);
    vec![
        at(start, Action::StopKubelet(machine)),
        at(start + SECOND * 5, Action::HideZone { machine, lasts }),
    ]
}

/// Every lease is old when the API is back, and the credential is not what it was.
fn another_credential_after_an_outage(
    rng: &mut Rng,
    start: Duration,
    machine: usize,
) -> Vec<TimedAction> {
    let outage = rng.seconds(60, 300);
    let lasts = outage + rng.seconds(100, 400);
    vec![
        at(start, Action::StopKubelet(machine)),
        at(start + SECOND * 5, Action::Outage { lasts: outage }),
        at(start + SECOND * 10, Action::SwapCredential { lasts }),
    ]
}

fn another_credential_while_all_is_cordoned(
    rng: &mut Rng,
    start: Duration,
    machine: usize,
) -> Vec<TimedAction> {
    let lasts = rng.seconds(200, 500);
    vec![
        at(start, Action::ToggleCordon),
        at(start + SECOND, Action::StopKubelet(machine)),
        at(start + SECOND * 5, Action::SwapCredential { lasts }),
    ]
}

/// The machines of an account that a plan may speak of.
fn machines_of(layout: Layout, account: Account) -> Vec<usize> {
    let machines = 0..MACHINES;
    machines
        .filter(|machine| layout.account_of(*machine) == account)
        .collect()
}

/// One kubelet of an account, two or all of them fall silent while their machines run, and its token is replaced by
/// that of the other account. Machines that joined later have numbers that the other account may not have.
fn partitioned_under_the_token_of_another(
    rng: &mut Rng,
    start: Duration,
    mut machines: Vec<usize>,
    (of, by): (Account, Account),
) -> Vec<TimedAction> {
    let mut actions = Vec::new();
    if rng.chance(50) {
        let join = (FIRST..MACHINES).map(|machine| at(SECOND * 5, Action::Join(machine)));
        actions.extend(join);
    }
    if rng.chance(50) {
        machines.reverse();
    }
    let silent = rng.one_of(&[1, 2, machines.len()]).unwrap_or(1);
    let silence = machines.into_iter().take(silent);
    actions.extend(silence.map(|machine| at(start, Action::StopKubelet(machine))));
    let replaced = (start + rng.seconds(0, 60)).saturating_sub(SECOND * 30);
    let lasts = rng.seconds(200, 700);
    actions.push(at(replaced, Action::ReplaceToken { of, by, lasts }));
    actions
}

/// A machine of the account whose token is right goes: its Node has to go too.
fn gone_from_the_account_in_order(
    rng: &mut Rng,
    start: Duration,
    machines: &[usize],
) -> Vec<TimedAction> {
    let machine = rng.one_of(machines).unwrap_or_default();
    vec![at(start + rng.seconds(0, 60), Action::Destroy(machine))]
}

/// Both managers crash: the next leader has never seen a list with the right token.
fn new_leader(start: Duration) -> Vec<TimedAction> {
    let back_after = SECOND * 2;
    let crash = |manager_id| {
        at(
            start,
            Action::Crash {
                manager_id,
                back_after,
            },
        )
    };
    ManagerId::BOTH.map(crash).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::run::play_with;
    use crate::topology::Topology;

    #[test]
    #[ignore = "slow without optimisation: cargo xtask test --tier simulation"]
    fn nodes_of_the_account_in_order_go_while_the_token_of_the_other_is_replaced() {
        let labelled = |ahead| Layout::Labelled { accounts: 2, ahead };
        for layout in [labelled(0), labelled(1), Layout::Unlabelled] {
            let (of, by, lasts) = (Account::First, Account::Second, SECOND * 1700);
            let actions = vec![
                at(SECOND * 60, Action::ReplaceToken { of, by, lasts }),
                at(SECOND * 70, Action::StopKubelet(0)),
                at(SECOND * 80, Action::Destroy(1)),
            ];
            let topology = Topology::with_layout(layout);
            let plan = Plan { topology, actions };
            let outcome = play_with(1, &plan, None, true).unwrap();
            assert_eq!(outcome.violations, [], "{layout:?}");
            let place_of = |what| outcome.history.iter().position(|line| line.contains(what));
            let (gone, end) = (place_of("delete nodes node-1"), place_of("all faults end"));
            assert!(gone.is_some() && gone < end, "{layout:?}: {gone:?} {end:?}");
        }
    }

    #[test]
    #[ignore = "slow without optimisation: cargo xtask test --tier simulation"]
    fn managers_that_start_while_an_account_refuses_all_serve_the_other_and_lose_nothing() {
        for status in [401, 503] {
            let down = Action::CloudFault {
                on: None,
                fault: Fault::status(status),
                lasts: SECOND * 900,
            };
            let mut actions = vec![at(SECOND * 60, down)];
            actions.extend(new_leader(SECOND * 70));
            // One of each account.
            actions.extend([0, 1].map(|machine| at(SECOND * 100, Action::StopKubelet(machine))));
            actions.extend([0, 1].map(|machine| at(SECOND * 100, Action::Destroy(machine))));
            let layout = Layout::Labelled {
                accounts: 2,
                ahead: 0,
            };
            let topology = Topology::with_layout(layout);
            let plan = Plan { topology, actions };
            let outcome = play_with(1, &plan, None, true).unwrap();
            assert_eq!(outcome.violations, [], "{status}");
            let place_of = |what| outcome.history.iter().position(|line| line.contains(what));
            let end = place_of("all faults end");
            let [refused, other] = ["delete nodes node-0", "delete nodes node-1"].map(place_of);
            assert!(
                other.is_some() && other < end,
                "{status}: {other:?} {end:?}"
            );
            assert!(
                refused.is_none_or(|refused| Some(refused) > other),
                "{status}: {refused:?}"
            );
        }
    }
}
