//! Random actions.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use super::{Action, Annotation, ApiFault, ManagerId, SERVICES};
use crate::accounts::{Account, Layout};
use crate::crash::CrashPoint;
use crate::rng::Rng;

impl Action {
    /// Any of them.
    pub(crate) fn random(rng: &mut Rng, machines: usize) -> Self {
        match rng.between(0, 99) {
            0..=35 => Self::random_machine(rng, machines),
            36..=59 => Self::random_service(rng, machines),
            60..=79 => Self::random_cloud_fault(rng, machines),
            80..=89 => Self::random_api_fault(rng),
            _ => Self::random_manager_fault(rng),
        }
    }

    /// The same in a cluster with several accounts: a fault of a cloud meets one of them, and a credential that sees
    /// another project is often that of another account.
    pub(crate) fn among_accounts(self, rng: &mut Rng, layout: Layout) -> Self {
        let (of, by) = random_accounts(rng, layout);
        match self {
            Self::SwapCredential { lasts } if rng.chance(60) => {
                Self::ReplaceToken { of, by, lasts }
            }
            Self::RotateToken { revoked_after, .. } => Self::RotateToken { of, revoked_after },
            action @ (Self::CloudFault { .. }
            | Self::SwapCredential { .. }
            | Self::LaggingCloud { .. })
                if of != Account::First =>
            {
                Self::InAccount(of, Box::new(action))
            }
            action => action,
        }
    }

    fn random_machine(rng: &mut Rng, machines: usize) -> Self {
        let machine = rng.below(machines);
        match rng.between(0, 9) {
            0 => Self::Join(machine),
            1 | 2 => Self::Destroy(machine),
            3 => Self::PowerOff(machine),
            4 => Self::PowerOn(machine),
            5 => Self::StopKubelet(machine),
            6 => Self::StartKubelet(machine),
            7 => Self::ChangeAddress(machine),
            8 => Self::ToggleExclusion(machine),
            _ if rng.chance(30) => Self::ToggleHold(machine),
            _ if rng.chance(20) => Self::ToggleCordon,
            _ => Self::ToggleAutoscalerTaint(machine),
        }
    }

    fn random_service(rng: &mut Rng, machines: usize) -> Self {
        let service = rng.below(SERVICES);
        match rng.between(0, 10) {
            0..=2 => Self::CreateService(service),
            3 | 4 => Self::ChangePorts(service),
            5 => Self::ChangeServiceType(service),
            6 => Self::DeleteService(service),
            7 => {
                let annotation = rng.one_of(&Annotation::SHOWN).unwrap_or(Annotation::Type);
                Self::Annotate {
                    service,
                    annotation,
                    value: rng.one_of(annotation.values()).flatten(),
                }
            }
            8 => Self::ChangeFamilies(service),
            9 => Self::EditBalancer(service),
            _ => Self::DeleteRoute(rng.below(machines)),
        }
    }

    fn random_cloud_fault(rng: &mut Rng, machines: usize) -> Self {
        let lasts = rng.seconds(5, 400);
        match rng.between(0, 9) {
            0 if rng.chance(30) => Self::HideZone {
                machine: rng.below(machines),
                lasts,
            },
            0 if rng.chance(40) => Self::RotateToken {
                of: Account::First,
                revoked_after: rng.seconds(0, 120),
            },
            0 => Self::SwapCredential { lasts },
            1 => Self::LaggingCloud {
                by: rng.seconds(2, 30),
                lasts,
            },
            _ => {
                let (on, fault) = (random_operation(rng), random_fault(rng));
                let lasts = lasts.min(longest(on, &fault));
                Self::CloudFault { on, fault, lasts }
            }
        }
    }

    fn random_api_fault(rng: &mut Rng) -> Self {
        let manager_id = random_manager(rng);
        match rng.between(0, 9) {
            0 => Self::Disconnect {
                manager_id,
                lasts: rng.seconds(2, 90),
            },
            1 if rng.chance(30) => Self::Outage {
                lasts: rng.seconds(10, 300),
            },
            1 => Self::EndWatches(manager_id),
            2 => Self::StallWatches {
                manager_id,
                resource: rng
                    .one_of(&[None, Some("nodes"), Some("services")])
                    .flatten(),
                lasts: rng.seconds(5, 120),
            },
            3 if rng.chance(50) => Self::Throttle {
                percent: rng.between(50, 100),
                lasts: rng.seconds(10, 240),
            },
            3 => Self::StaleLists {
                manager_id,
                age: rng.seconds(5, 120),
                lasts: rng.seconds(30, 180),
            },
            _ => Self::ApiFault {
                manager_id,
                kind: rng.one_of(&ApiFault::ALL).unwrap_or(ApiFault::Broken),
                percent: rng.between(5, 100),
                lasts: rng.seconds(2, 120),
            },
        }
    }

    fn random_manager_fault(rng: &mut Rng) -> Self {
        let manager_id = random_manager(rng);
        let back_after = rng.seconds(1, 60);
        match rng.between(0, 7) {
            0 => Self::Stop {
                manager_id,
                back_after,
            },
            1..=3 => Self::CrashAt {
                manager_id,
                point: rng
                    .one_of(&CrashPoint::ALL)
                    .unwrap_or(CrashPoint::AfterWrite),
                nth: rng.between(1, 5),
            },
            7 => Self::Freeze {
                manager_id,
                lasts: rng.seconds(1, 300),
            },
            4 => Self::JumpClock {
                manager_id,
                seconds: i64::from(rng.between(0, 7200)) - 3600,
            },
            _ => Self::Crash {
                manager_id,
                back_after,
            },
        }
    }
}

fn random_manager(rng: &mut Rng) -> ManagerId {
    if rng.chance(50) {
        ManagerId::A
    } else {
        ManagerId::B
    }
}

fn random_operation(rng: &mut Rng) -> Option<Operation> {
    if rng.chance(40) {
        return None;
    }
    rng.one_of(Operation::ALL)
}

/// How long a cloud may hide balancers, and only balancers, before they count as deleted.
const HIDES_BALANCERS: Duration = Duration::from_secs(90);

fn longest(on: Option<Operation>, fault: &Fault) -> Duration {
    match (on, fault) {
        (Some(Operation::ListBalancers), Fault::EmptyList) => HIDES_BALANCERS,
        _ => Duration::MAX,
    }
}

fn random_fault(rng: &mut Rng) -> Fault {
    let faults = [
        Fault::status(401),
        Fault::status(403),
        Fault::status(404),
        Fault::status(409),
        Fault::status(423),
        Fault::status(500),
        Fault::status(503),
        Fault::too_many_calls(None),
        Fault::too_many_calls(Some(20)),
        Fault::NoAnswer,
        Fault::BrokenBefore,
        Fault::BrokenAfter,
        Fault::TruncatedPage,
        Fault::LostNextPage,
        Fault::EmptyList,
        Fault::MalformedJson,
        Fault::Html,
        Fault::EmptyBody,
        Fault::Stale {
            by: Duration::from_mins(1),
        },
        Fault::Slow {
            by: Duration::from_secs(8),
        },
    ];
    rng.one_of(&faults).unwrap_or(Fault::NoAnswer)
}

/// An account, and another one.
pub(crate) fn random_accounts(rng: &mut Rng, layout: Layout) -> (Account, Account) {
    let of = rng.one_of(layout.accounts()).unwrap_or(Account::First);
    let others: Vec<_> = layout.others(of).collect();
    (of, rng.one_of(&others).unwrap_or(of))
}
