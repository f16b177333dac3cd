//! What must always hold, by name.

use std::fmt;

/// Something that must always hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// No write and no change in the cloud without the lease.
    LeaseHeld,
    /// No Node is deleted while its machine exists or its kubelet is heard.
    NodeDeletionProven,
    /// No Node is deleted while the credential sees another project or another account.
    NoDeletionInDoubt,
    /// No Node is deleted while an annotation holds it.
    HeldNodeStays,
    /// Nothing is written to what the operator has paused, and nothing is changed for it in the cloud.
    PausedStays,
    /// Deletions keep to their rate.
    DeletionRate,
    /// Nothing of others is touched.
    NothingForeignTouched,
    /// A manager writes only what is its own to write.
    OnlyOwnWrites,
    /// Addresses come before the taint goes, and from the right machine.
    AddressesBeforeTaint,
    /// A Node gets the ID of its own machine.
    OwnProviderId,
    /// A Node shows its own machine.
    OwnMachineShown,
    /// A Pod CIDR belongs to one Node, and stays.
    PodCidrUnique,
    /// The finalizer comes before the balancer.
    FinalizerBeforeBalancer,
    /// The finalizer goes after the balancer.
    FinalizerAfterBalancer,
    /// A balancer is made by the cloud that serves the Service.
    ServedByItsCloud,
    /// A wanted balancer stays.
    WantedBalancerStays,
    /// A balancer is kept for others if its Service asks for that, or if it is protected, and never otherwise.
    RetainedOnRequest,
    /// A balancer is never emptied while Nodes can serve.
    BalancerNotEmptied,
    /// Equal state means no change.
    NoChangeWithoutDifference,
    /// After the faults, everything converges.
    Convergence,
    /// What has converged causes no more writes.
    QuietAfterConvergence,
    /// What has converged stays so.
    ConvergenceStays,
}

impl Invariant {
    /// As a sentence.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LeaseHeld => "no write without the lease",
            Self::NodeDeletionProven => "no Node is deleted without proof",
            Self::NoDeletionInDoubt => "no Node is deleted in doubt",
            Self::HeldNodeStays => "a held Node stays",
            Self::PausedStays => "what is paused stays as it is",
            Self::DeletionRate => "deletions keep to their rate",
            Self::NothingForeignTouched => "nothing foreign is touched",
            Self::OnlyOwnWrites => "only what is needed is written",
            Self::AddressesBeforeTaint => "addresses come before the taint goes",
            Self::OwnProviderId => "a Node gets the ID of its own machine",
            Self::OwnMachineShown => "a Node shows its own machine",
            Self::PodCidrUnique => "a Pod CIDR belongs to one Node and stays",
            Self::FinalizerBeforeBalancer => "the finalizer comes before the balancer",
            Self::FinalizerAfterBalancer => "the finalizer goes after the balancer",
            Self::ServedByItsCloud => "a Service is served by its cloud",
            Self::WantedBalancerStays => "a wanted balancer stays",
            Self::RetainedOnRequest => "a balancer is retained if that is asked for, and only then",
            Self::BalancerNotEmptied => "a balancer is never emptied by accident",
            Self::NoChangeWithoutDifference => "equal state means no change",
            Self::Convergence => "everything converges",
            Self::QuietAfterConvergence => "what has converged causes no more writes",
            Self::ConvergenceStays => "what has converged stays so",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
