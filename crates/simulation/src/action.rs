//! The things that happen: what people, machines and kubelets do, and what goes wrong.

use std::fmt;
use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use crate::accounts::Account;
use crate::draw::Draw;
use crate::fate::Moment;

/// Machines that a plan may speak of.
pub(crate) const MACHINES: usize = 6;

/// Services that a plan may speak of.
pub(crate) const SERVICES: usize = 4;

/// One of the two managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Who {
    A,
    B,
}

impl Who {
    pub(crate) const BOTH: [Self; 2] = [Self::A, Self::B];

    /// As the lease and the cluster know it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::A => "manager-a",
            Self::B => "manager-b",
        }
    }
}

/// Something that happens. A number names a machine or a Service; what makes no sense at the moment,
/// such as destroying what is not there, is passed over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    // Machines and their kubelets.
    /// A machine appears, and its kubelet registers a Node.
    Join(usize),
    /// The machine is destroyed, and its kubelet with it.
    Destroy(usize),
    /// The machine is rebuilt under its name: it is destroyed, somebody deletes its Node, and both are back at once.
    Rebuild(usize),
    /// The machine is switched off.
    PowerOff(usize),
    /// And on again.
    PowerOn(usize),
    /// The kubelet falls silent, but the machine is there.
    Silence(usize),
    /// And is heard again.
    Wake(usize),
    /// The machine gets another address.
    Move(usize),
    /// The Node is to be no target, or is to be one again.
    Exclude(usize),
    /// The autoscaler means to remove the Node, or not any more.
    Condemn(usize),
    /// A person forbids to delete the Node, or allows it again.
    Hold(usize),
    /// People cordon all Nodes, or allow Pods there again.
    Cordon,
    // Services.
    /// A Service that wants a balancer appears.
    Serve(usize),
    /// Its ports change.
    ChangePorts(usize),
    /// It wants no balancer any more, or wants one again.
    Retype(usize),
    /// It is deleted.
    Unserve(usize),
    // Meddling in the cloud.
    /// Somebody changes a balancer of ours by hand.
    Drift(usize),
    /// Somebody removes a route of ours by hand.
    LoseRoute(usize),
    // What goes wrong with the cloud.
    /// Calls of one kind, or all, go wrong for a while.
    CloudTrouble {
        on: Option<Operation>,
        fault: Fault,
        lasts: Duration,
    },
    /// The credential sees another project for a while.
    SwapCredential { lasts: Duration },
    /// The token of an account is replaced by that of the cluster's other account for a while.
    ReplaceToken { of: Account, lasts: Duration },
    /// The same in the second account.
    InSecond(Box<Self>),
    /// The cloud hides a machine, and another one whose kubelet is heard meanwhile, as when it hides a zone.
    Hide { machine: usize, lasts: Duration },
    /// Reads lag behind for a while.
    LaggingCloud { by: Duration, lasts: Duration },
    // What goes wrong with the API.
    /// Requests of a manager go wrong for a while, so many in a hundred.
    ApiTrouble {
        who: Who,
        kind: ApiTrouble,
        percent: u32,
        lasts: Duration,
    },
    /// The API cannot be reached by a manager for a while.
    Cut { who: Who, lasts: Duration },
    /// The API cannot be reached by anything for a while.
    Outage { lasts: Duration },
    /// Watches of a manager end.
    EndWatches(Who),
    /// Watches of a manager show nothing new for a while.
    StallWatches { who: Who, lasts: Duration },
    // What goes wrong with a manager.
    /// It dies, and comes back after a while.
    Crash { who: Who, back_after: Duration },
    /// It dies exactly when it does something for the nth time, and comes back after a while.
    Trap { who: Who, moment: Moment, nth: u32 },
    /// It is asked to end, and comes back after a while.
    Stop { who: Who, back_after: Duration },
    /// Its wall clock jumps by so many seconds.
    JumpClock { who: Who, seconds: i64 },
}

/// What may go wrong with a request to the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiTrouble {
    /// Refused: somebody else was faster.
    Conflict,
    /// Refused: too many requests.
    TooMany,
    /// Refused: the server is broken.
    Broken,
    /// Nothing happened, and the connection broke.
    LostRequest,
    /// It happened, and the connection broke.
    LostAnswer,
    /// The answer takes a while.
    Slow,
}

impl ApiTrouble {
    pub(crate) const ALL: [Self; 6] = [
        Self::Conflict,
        Self::TooMany,
        Self::Broken,
        Self::LostRequest,
        Self::LostAnswer,
        Self::Slow,
    ];
}

impl Action {
    /// Any of them.
    pub(crate) fn draw(draw: &mut Draw) -> Self {
        match draw.between(0, 99) {
            0..=35 => Self::draw_machine(draw),
            36..=59 => Self::draw_service(draw),
            60..=79 => Self::draw_cloud_trouble(draw),
            80..=89 => Self::draw_api_trouble(draw),
            _ => Self::draw_manager_trouble(draw),
        }
    }

    /// The same in a cluster with two accounts: trouble with a cloud meets one of them, and a credential that sees
    /// another project is often that of the other account.
    pub(crate) fn among_accounts(self, draw: &mut Draw) -> Self {
        match self {
            Self::SwapCredential { lasts } if draw.chance(60) => Self::ReplaceToken {
                of: draw.one_of(&Account::BOTH).unwrap_or(Account::First),
                lasts,
            },
            action @ (Self::CloudTrouble { .. }
            | Self::SwapCredential { .. }
            | Self::LaggingCloud { .. })
                if draw.chance(50) =>
            {
                Self::InSecond(Box::new(action))
            }
            action => action,
        }
    }

    fn draw_machine(draw: &mut Draw) -> Self {
        let machine = draw.below(MACHINES);
        match draw.between(0, 9) {
            0 => Self::Join(machine),
            1 | 2 => Self::Destroy(machine),
            3 => Self::PowerOff(machine),
            4 => Self::PowerOn(machine),
            5 => Self::Silence(machine),
            6 => Self::Wake(machine),
            7 => Self::Move(machine),
            8 => Self::Exclude(machine),
            _ if draw.chance(30) => Self::Hold(machine),
            _ if draw.chance(20) => Self::Cordon,
            _ => Self::Condemn(machine),
        }
    }

    fn draw_service(draw: &mut Draw) -> Self {
        let service = draw.below(SERVICES);
        match draw.between(0, 9) {
            0..=2 => Self::Serve(service),
            3 | 4 => Self::ChangePorts(service),
            5 => Self::Retype(service),
            6 | 7 => Self::Unserve(service),
            8 => Self::Drift(service),
            _ => Self::LoseRoute(draw.below(MACHINES)),
        }
    }

    fn draw_cloud_trouble(draw: &mut Draw) -> Self {
        let lasts = draw.seconds(5, 400);
        match draw.between(0, 9) {
            0 if draw.chance(30) => Self::Hide {
                machine: draw.below(MACHINES),
                lasts,
            },
            0 => Self::SwapCredential { lasts },
            1 => Self::LaggingCloud {
                by: draw.seconds(2, 30),
                lasts,
            },
            _ => {
                let (on, fault) = (draw_operation(draw), draw_fault(draw));
                let lasts = lasts.min(longest(on, &fault));
                Self::CloudTrouble { on, fault, lasts }
            }
        }
    }

    fn draw_api_trouble(draw: &mut Draw) -> Self {
        let who = draw_who(draw);
        match draw.between(0, 9) {
            0 => Self::Cut {
                who,
                lasts: draw.seconds(2, 90),
            },
            1 if draw.chance(30) => Self::Outage {
                lasts: draw.seconds(10, 300),
            },
            1 => Self::EndWatches(who),
            2 | 3 => Self::StallWatches {
                who,
                lasts: draw.seconds(5, 120),
            },
            _ => Self::ApiTrouble {
                who,
                kind: draw.one_of(&ApiTrouble::ALL).unwrap_or(ApiTrouble::Broken),
                percent: draw.between(5, 100),
                lasts: draw.seconds(2, 120),
            },
        }
    }

    fn draw_manager_trouble(draw: &mut Draw) -> Self {
        let who = draw_who(draw);
        let back_after = draw.seconds(1, 60);
        match draw.between(0, 6) {
            0 => Self::Stop { who, back_after },
            1..=3 => Self::Trap {
                who,
                moment: draw.one_of(&Moment::ALL).unwrap_or(Moment::AfterWrite),
                nth: draw.between(1, 5),
            },
            4 => Self::JumpClock {
                who,
                seconds: i64::from(draw.between(0, 7200)) - 3600,
            },
            _ => Self::Crash { who, back_after },
        }
    }
}

fn draw_who(draw: &mut Draw) -> Who {
    if draw.chance(50) { Who::A } else { Who::B }
}

fn draw_operation(draw: &mut Draw) -> Option<Operation> {
    if draw.chance(40) {
        return None;
    }
    draw.one_of(Operation::ALL)
}

/// How long a cloud may hide balancers, and only balancers, without being believed.
const HIDES_BALANCERS: Duration = Duration::from_secs(90);

fn longest(on: Option<Operation>, fault: &Fault) -> Duration {
    match (on, fault) {
        (Some(Operation::ListBalancers), Fault::EmptyList) => HIDES_BALANCERS,
        _ => Duration::MAX,
    }
}

fn draw_fault(draw: &mut Draw) -> Fault {
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
    draw.one_of(&faults).unwrap_or(Fault::NoAnswer)
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join(machine) => write!(f, "machine {machine} appears and joins"),
            Self::Destroy(machine) => write!(f, "machine {machine} is destroyed"),
            Self::Rebuild(machine) => write!(f, "machine {machine} is rebuilt, and joins again"),
            Self::PowerOff(machine) => write!(f, "machine {machine} is switched off"),
            Self::PowerOn(machine) => write!(f, "machine {machine} is switched on"),
            Self::Silence(machine) => write!(f, "the kubelet of machine {machine} falls silent"),
            Self::Wake(machine) => write!(f, "the kubelet of machine {machine} is heard again"),
            Self::Move(machine) => write!(f, "machine {machine} gets another address"),
            Self::Exclude(machine) => write!(f, "the exclusion of node {machine} is turned"),
            Self::Condemn(machine) => {
                write!(f, "the autoscaler's taint on node {machine} is turned")
            }
            Self::Hold(machine) => write!(f, "the hold on node {machine} is turned"),
            Self::Cordon => write!(f, "the cordon of all nodes is turned"),
            Self::Serve(service) => write!(f, "service {service} is created"),
            Self::ChangePorts(service) => write!(f, "service {service} gets other ports"),
            Self::Retype(service) => write!(f, "service {service} changes its type"),
            Self::Unserve(service) => write!(f, "service {service} is deleted"),
            Self::Drift(service) => {
                write!(f, "somebody meddles with the balancer of service {service}")
            }
            Self::LoseRoute(machine) => write!(f, "somebody removes the route of node {machine}"),
            Self::CloudTrouble { on, fault, lasts } => {
                let on = on.map_or_else(|| "every call".to_owned(), |on| format!("{on}"));
                write!(f, "cloud: {on} meets {fault:?} for {lasts:?}")
            }
            Self::SwapCredential { lasts } => {
                write!(
                    f,
                    "cloud: the credential sees another project for {lasts:?}"
                )
            }
            Self::ReplaceToken { of, lasts } => {
                let (of, by) = (of.cloud_name(), of.other().cloud_name());
                write!(
                    f,
                    "cloud: the token of {of} is replaced by that of {by} for {lasts:?}"
                )
            }
            Self::InSecond(action) => write!(f, "second {action}"),
            Self::Hide { machine, lasts } => {
                write!(
                    f,
                    "cloud: hides machine {machine} and another for {lasts:?}"
                )
            }
            Self::LaggingCloud { by, lasts } => {
                write!(f, "cloud: reads lag by {by:?} for {lasts:?}")
            }
            trouble => trouble.describe_trouble(f),
        }
    }
}

impl Action {
    /// What goes wrong with the API or a manager.
    fn describe_trouble(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiTrouble {
                who,
                kind,
                percent,
                lasts,
            } => write!(
                f,
                "API: {percent} % of the requests of {} meet {kind:?} for {lasts:?}",
                who.name()
            ),
            Self::Cut { who, lasts } => write!(f, "API: {} is cut off for {lasts:?}", who.name()),
            Self::Outage { lasts } => write!(f, "API: nothing reaches it for {lasts:?}"),
            Self::EndWatches(who) => write!(f, "API: the watches of {} end", who.name()),
            Self::StallWatches { who, lasts } => {
                write!(f, "API: the watches of {} stall for {lasts:?}", who.name())
            }
            Self::Crash { who, back_after } => {
                write!(f, "{} dies, and is back after {back_after:?}", who.name())
            }
            Self::Trap { who, moment, nth } => {
                write!(f, "{} dies at {moment:?} number {nth} from now", who.name())
            }
            Self::Stop { who, back_after } => {
                write!(
                    f,
                    "{} is stopped, and is back after {back_after:?}",
                    who.name()
                )
            }
            Self::JumpClock { who, seconds } => {
                write!(f, "the wall clock of {} jumps by {seconds} s", who.name())
            }
            _ => Ok(()),
        }
    }
}
