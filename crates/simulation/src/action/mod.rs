//! The actions of a run: what users, machines and kubelets do, and faults.

mod annotation;
mod describe;
mod random;

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{Fault, Operation};

use crate::accounts::Account;
use crate::crash::CrashPoint;

pub(crate) use self::annotation::Annotation;
pub(crate) use self::random::random_accounts;

/// Services that a plan may speak of.
pub(crate) const SERVICES: usize = 4;

/// One of the two managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ManagerId {
    A,
    B,
}

impl ManagerId {
    pub(crate) const BOTH: [Self; 2] = [Self::A, Self::B];

    /// As the lease and the cluster know it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::A => "manager-a",
            Self::B => "manager-b",
        }
    }
}

/// Something that happens. A number names a machine or a Service; what makes no sense at the time, such as destroying
/// what is not there, is passed over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    // Machines and their kubelets.
    /// A machine appears, and its kubelet registers a Node.
    Join(usize),
    /// The machine is destroyed, and its kubelet with it.
    Destroy(usize),
    /// The machine is rebuilt under its name: it is destroyed, the operator deletes its Node, and both are back at once.
    Rebuild(usize),
    /// The machine is switched off.
    PowerOff(usize),
    /// And on again.
    PowerOn(usize),
    /// The kubelet stops its heartbeats, but the machine runs.
    StopKubelet(usize),
    /// And sends them again.
    StartKubelet(usize),
    /// The machine gets another address.
    ChangeAddress(usize),
    /// The Node is to be no target, or is to be one again.
    ToggleExclusion(usize),
    /// The autoscaler means to remove the Node, or not any more.
    ToggleAutoscalerTaint(usize),
    /// The annotation that forbids to delete the Node is added, or removed.
    ToggleHold(usize),
    /// All Nodes are cordoned, or uncordoned.
    ToggleCordon,
    // Services.
    /// A Service that wants a balancer appears.
    CreateService(usize),
    /// Its ports change.
    ChangePorts(usize),
    /// It wants no balancer any more, or wants one again.
    ChangeServiceType(usize),
    /// It is deleted.
    DeleteService(usize),
    /// It gets an annotation that the provider reads, with a value that may be invalid, or loses it.
    Annotate {
        service: usize,
        annotation: Annotation,
        value: Option<&'static str>,
    },
    /// The operator pauses it. The pause ends with the faults.
    PauseService(usize),
    /// It gets addresses of both families, or of one again.
    ChangeFamilies(usize),
    // Changes in the cloud by hand.
    /// Another client changes a balancer of ours.
    EditBalancer(usize),
    /// Another client deletes a route of ours.
    DeleteRoute(usize),
    // What goes wrong with the cloud.
    /// Calls of one kind, or all, go wrong for a while.
    CloudFault {
        on: Option<Operation>,
        fault: Fault,
        lasts: Duration,
    },
    /// The credential sees another project for a while.
    SwapCredential { lasts: Duration },
    /// The token of an account is replaced by that of another account of the cluster for a while.
    ReplaceToken {
        of: Account,
        by: Account,
        lasts: Duration,
    },
    /// The token of an account is rotated: the configuration has a new one, and the old one is revoked after a while.
    RotateToken {
        of: Account,
        revoked_after: Duration,
    },
    /// The same in another account than the first.
    InAccount(Account, Box<Self>),
    /// The cloud hides a machine, and another one whose kubelet is heard meanwhile, as when it hides a zone.
    HideZone { machine: usize, lasts: Duration },
    /// Reads lag behind for a while.
    LaggingCloud { by: Duration, lasts: Duration },
    // What goes wrong with the API.
    /// Requests of a manager go wrong for a while, so many in a hundred.
    ApiFault {
        manager_id: ManagerId,
        kind: ApiFault,
        percent: u32,
        lasts: Duration,
    },
    /// The API cannot be reached by a manager for a while.
    Disconnect {
        manager_id: ManagerId,
        lasts: Duration,
    },
    /// The API cannot be reached by anything for a while.
    Outage { lasts: Duration },
    /// Watches of a manager end.
    EndWatches(ManagerId),
    /// Watches of a manager show nothing new for a while.
    StallWatches {
        manager_id: ManagerId,
        resource: Option<&'static str>,
        lasts: Duration,
    },
    /// Watches of a manager end, and the lists that it begins anew with are this old for a while.
    StaleLists {
        manager_id: ManagerId,
        age: Duration,
        lasts: Duration,
    },
    /// Requests of both managers are refused for a while, so many in a hundred, over restarts too.
    Throttle { percent: u32, lasts: Duration },
    // What goes wrong with a manager.
    /// It crashes, and comes back after a while.
    Crash {
        manager_id: ManagerId,
        back_after: Duration,
    },
    /// It crashes exactly when it does something for the nth time, and comes back after a while.
    CrashAt {
        manager_id: ManagerId,
        point: CrashPoint,
        nth: u32,
    },
    /// It is asked to end, and comes back after a while.
    Stop {
        manager_id: ManagerId,
        back_after: Duration,
    },
    /// Its wall clock jumps by so many seconds.
    JumpClock { manager_id: ManagerId, seconds: i64 },
    /// It stands still for a while, as on a virtual machine that is paused, and then goes on.
    Freeze {
        manager_id: ManagerId,
        lasts: Duration,
    },
    /// The manager that leads stands still for a while.
    FreezeLeader { lasts: Duration },
}

/// What may go wrong with a request to the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiFault {
    /// Refused: the object was modified by another client.
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
    /// The client waits in vain, and the write is carried out up to a minute and a half later.
    Late,
}

impl ApiFault {
    pub(crate) const ALL: [Self; 7] = [
        Self::Conflict,
        Self::TooMany,
        Self::Broken,
        Self::LostRequest,
        Self::LostAnswer,
        Self::Slow,
        Self::Late,
    ];
}
