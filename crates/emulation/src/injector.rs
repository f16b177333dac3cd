//! Counting calls and injecting faults, for any cloud: what the conformance kit needs.

use std::time::Duration;

use super::{CommonFault, Emulated, FaultMatch, ScriptedFault};

/// How often a cloud was called. Every call counts, also one that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallTotals {
    /// All calls.
    pub total: u64,
    /// Those that could change something.
    pub mutating: u64,
}

impl CallTotals {
    /// What came since an earlier count.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            mutating: self.mutating.saturating_sub(before.mutating),
        }
    }
}

/// Which calls meet a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultTiming {
    /// All of them.
    Always,
    /// Of those that could change something the nth from now on, counted from 1, and no other.
    Mutation(u64),
    /// The same and every one after it.
    MutationsFrom(u64),
}

/// A cloud whose calls are counted and can meet faults: an [emulated](Emulated) one, or any other behind an
/// [`Interposer`](crate::interposer::Interposer).
pub trait FaultInjector: Send + Sync {
    /// How often it was called since it was made or last reset.
    fn call_totals(&self) -> CallTotals;

    /// Counts from zero again.
    fn reset_calls(&self);

    /// Lets these calls meet a fault, behind those that were asked for earlier. `false` if it cannot play this one.
    fn inject(&self, when: FaultTiming, fault: CommonFault) -> bool;

    /// Ends all faults.
    fn clear_faults(&self);
}

/// The lines of a script that play a fault at this time: which calls, how many, and what they meet.
pub(super) fn rules<O>(
    when: FaultTiming,
    fault: CommonFault,
) -> Vec<(FaultMatch<O>, Option<u64>, CommonFault)> {
    let mutating = || FaultMatch::any().mutating();
    let harmless = CommonFault::Slow { by: Duration::ZERO };
    let spared = |nth: u64| (mutating(), Some(nth.saturating_sub(1)), harmless.clone());
    match when {
        FaultTiming::Always => vec![(FaultMatch::any(), None, fault)],
        FaultTiming::Mutation(nth) => vec![spared(nth), (mutating(), Some(1), fault)],
        FaultTiming::MutationsFrom(nth) => vec![spared(nth), (mutating(), None, fault)],
    }
}

impl<C: Emulated> FaultInjector for C {
    fn call_totals(&self) -> CallTotals {
        self.with_gateway(|gateway| {
            let counts = gateway.log.counts();
            CallTotals {
                total: counts.total(),
                mutating: counts.mutations(),
            }
        })
    }

    fn reset_calls(&self) {
        self.with_gateway(|gateway| gateway.log.reset());
    }

    fn inject(&self, when: FaultTiming, fault: CommonFault) -> bool {
        // A list that announces no total cannot be seen to lack something.
        let needs_total = matches!(
            fault,
            CommonFault::TruncatedPage | CommonFault::LostNextPage
        );
        if needs_total && !C::LIST_SHAPE.announces_totals() {
            return false;
        }
        for (on, times, fault) in rules(when, fault) {
            let fault = C::Fault::from_common(fault);
            self.with_gateway(|gateway| {
                gateway.faults.add(super::FaultRule { on, times, fault });
            });
        }
        true
    }

    fn clear_faults(&self) {
        self.with_gateway(|gateway| gateway.faults.clear());
    }
}
