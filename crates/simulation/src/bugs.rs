//! Which invariant a planted bug breaks.

use cloudkeel_controllers::planted::Bug;

use crate::accounts::Layout;
use crate::action::{Action, Annotation};
use crate::invariants::{Invariant, Violation};
use crate::plan::Plan;

/// What a planted bug breaks. It counts as found only if one of these reports it: anything else would be luck.
pub const fn broken_by(bug: Bug) -> &'static [Invariant] {
    match bug {
        Bug::DeleteOnFirstAbsence => &[Invariant::NodeDeletionProven],
        Bug::IgnorePause => &[Invariant::PausedStays],
        Bug::IgnoreRetain => &[Invariant::RetainedOnRequest],
        Bug::IgnoreHold => &[Invariant::HeldNodeStays],
        // A Node that is deleted as the watch showed it has changed since: its kubelet is back, or it is held.
        Bug::ActOnStaleCache => &[Invariant::NodeDeletionProven, Invariant::HeldNodeStays],
        Bug::IgnoreDoubt | Bug::LearnFromOldLists => {
            &[Invariant::NodeDeletionProven, Invariant::NoDeletionInDoubt]
        }
        Bug::ConfirmAnyCloud => &[
            Invariant::NodeDeletionProven,
            Invariant::NoDeletionInDoubt,
            Invariant::NothingForeignTouched,
        ],
        Bug::ConfirmByIdAlone => &[
            Invariant::NodeDeletionProven,
            Invariant::NoDeletionInDoubt,
            Invariant::NothingForeignTouched,
            Invariant::OwnMachineShown,
        ],
        Bug::ShowInstanceOfSameId => {
            &[Invariant::OwnMachineShown, Invariant::NothingForeignTouched]
        }
        Bug::IgnoreDeletionLimiter => &[Invariant::DeletionRate],
        Bug::TaintBeforeAddresses => &[Invariant::AddressesBeforeTaint],
        Bug::MatchInOldList | Bug::MatchInAnyProject => &[Invariant::OwnProviderId],
        Bug::TouchForeignNodes
        | Bug::TakeForeignRoutes
        | Bug::CreateBalancerAnywhere
        | Bug::RecreateAnywhere => &[Invariant::NothingForeignTouched],
        Bug::FinalizerOffEarly | Bug::BelieveFirstAbsence | Bug::BelieveVanished => {
            &[Invariant::FinalizerAfterBalancer]
        }
        Bug::FinalizerOnLate => &[Invariant::FinalizerBeforeBalancer],
        Bug::MatchRoutesInAnyCloud
        | Bug::ForgetTarget
        | Bug::ForgetFailures
        | Bug::CountWaitingNodes
        | Bug::CountUnmanagedNodes => &[Invariant::Convergence],
        Bug::IgnoreLeaseLoss | Bug::FenceByTimerAlone => &[Invariant::LeaseHeld],
    }
}

/// Whether the violations of a run show that the bug was found.
pub fn is_found(bug: Bug, violations: &[Violation]) -> bool {
    let broken = broken_by(bug);
    let mut reported = violations.iter().map(|violation| violation.invariant);
    reported.any(|invariant| broken.contains(&invariant))
}

/// A Service asks for its balancer to stay.
const RETAIN: Action = Action::Annotate {
    service: 0,
    annotation: Annotation::Retain,
    value: Some("true"),
};

/// Whether a plan has what a planted bug needs at all: some are about several clouds, one about a leader that stands
/// still, two about Nodes that are all about to go.
pub fn can_show(bug: Bug, plan: &Plan) -> bool {
    match bug {
        Bug::ConfirmAnyCloud
        | Bug::ConfirmByIdAlone
        | Bug::ShowInstanceOfSameId
        | Bug::MatchRoutesInAnyCloud => plan.topology.layout.has_several(),
        Bug::LearnFromOldLists => plan.topology.layout == Layout::Unlabelled,
        Bug::CountWaitingNodes => plan.has_all(Action::ToggleAutoscalerTaint),
        Bug::CountUnmanagedNodes => plan.has_all(Action::ToggleExclusion),
        Bug::FenceByTimerAlone => plan.freezes_a_leader(),
        Bug::IgnoreRetain => plan.has(&RETAIN),
        Bug::IgnorePause => plan.has(&Action::PauseService(0)),
        _ => true,
    }
}
