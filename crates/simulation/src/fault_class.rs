//! The kinds of faults, and how often a run met each.

use std::collections::BTreeMap;
use std::fmt;

/// What can go wrong, or be out of the ordinary, in a run. It counts as met when it has an effect on a manager, not when
/// it is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultClass {
    /// The cloud answers with an error, garbage or nothing.
    CloudError,
    /// The cloud shows an older state, or a part of it.
    StaleCloudRead,
    /// The credential sees another project.
    OtherProject,
    /// The token of one account is that of another.
    OtherAccount,
    /// The token was rotated, and the managers load the new one.
    CredentialReload,
    /// The API refuses a write with a conflict.
    ApiConflict,
    /// The API answers 500.
    ApiError,
    /// The API answers 429.
    ApiThrottled,
    /// The API still answers 429 after the manager was restarted.
    ThrottledAfterRestart,
    /// A request is lost before it is carried out.
    LostRequest,
    /// An answer is lost after the request was carried out.
    LostAnswer,
    /// A write is carried out long after its client gave up.
    LateWrite,
    /// A write is carried out after its sender has died or has lost the lease.
    WriteAfterSender,
    /// An answer is slow.
    SlowAnswer,
    /// The API cannot be reached.
    Disconnected,
    /// A watch ends, with or without an error.
    WatchEnded,
    /// Events of a watch are held back.
    WatchLag,
    /// A list is older than what the manager has seen before.
    StaleList,
    /// A manager that runs crashes.
    Crash,
    /// A manager crashes exactly before or after a write or a change in the cloud.
    CrashAtWrite,
    /// A manager that runs is asked to stop.
    Stop,
    /// A manager is frozen, and wakes up.
    Freeze,
    /// A manager is frozen while it leads, and wakes up when another one leads.
    FreezePastLease,
    /// The wall clock of a manager jumps.
    ClockJump,
    /// The cluster has two clouds.
    TwoClouds,
    /// The cluster has three clouds.
    ThreeClouds,
    /// A manager allocates a Pod CIDR.
    Ipam,
    /// A Node has Pod CIDRs of both families.
    DualStack,
    /// The balancer of a Service has addresses of both families.
    DualStackService,
    /// A Service has an annotation of the provider, valid or not.
    ProviderAnnotation,
    /// A balancer is released in place of being deleted, because it is protected or retained.
    ReleasedBalancer,
    /// The cluster begins without machines.
    NoMachines,
    /// The cluster begins with thirty machines.
    ThirtyMachines,
}

impl FaultClass {
    /// All of them.
    pub const ALL: [Self; 33] = [
        Self::CloudError,
        Self::StaleCloudRead,
        Self::OtherProject,
        Self::OtherAccount,
        Self::CredentialReload,
        Self::ApiConflict,
        Self::ApiError,
        Self::ApiThrottled,
        Self::ThrottledAfterRestart,
        Self::LostRequest,
        Self::LostAnswer,
        Self::LateWrite,
        Self::WriteAfterSender,
        Self::SlowAnswer,
        Self::Disconnected,
        Self::WatchEnded,
        Self::WatchLag,
        Self::StaleList,
        Self::Crash,
        Self::CrashAtWrite,
        Self::Stop,
        Self::Freeze,
        Self::FreezePastLease,
        Self::ClockJump,
        Self::TwoClouds,
        Self::ThreeClouds,
        Self::Ipam,
        Self::DualStack,
        Self::DualStackService,
        Self::ProviderAnnotation,
        Self::ReleasedBalancer,
        Self::NoMachines,
        Self::ThirtyMachines,
    ];
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Their names are words already: `WatchLag` is `watch lag`.
        for (place, letter) in format!("{self:?}").chars().enumerate() {
            if letter.is_uppercase() && place > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{}", letter.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

/// How often each class was met.
pub type FaultCounts = BTreeMap<FaultClass, u64>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_named_in_words() {
        assert_eq!(FaultClass::FreezePastLease.to_string(), "freeze past lease");
        let mut all = FaultClass::ALL.to_vec();
        all.dedup();
        assert_eq!(all.len(), FaultClass::ALL.len());
        assert!(all.is_sorted());
    }
}
