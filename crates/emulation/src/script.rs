//! Writing the script of faults.

use super::{Emulated, FaultMatch, FaultRule};

/// The calls and faults of a cloud, in one line of its script.
type Rule<C> = FaultRule<<C as Emulated>::Operation, <C as Emulated>::Fault>;

/// The script of faults of a cloud. The first line that matches a call is its fault.
///
/// Calls are named by their operation or a [`FaultMatch`].
#[derive(Debug)]
pub struct Faults<'a, C> {
    cloud: &'a C,
}

impl<'a, C: Emulated> Faults<'a, C> {
    /// The script of this cloud.
    pub const fn of(cloud: &'a C) -> Self {
        Self { cloud }
    }

    /// The next such call goes wrong.
    pub fn once(&self, on: impl Into<FaultMatch<C::Operation>>, fault: C::Fault) -> &Self {
        self.times(on, 1, fault)
    }

    /// The next `times` such calls go wrong.
    pub fn times(
        &self,
        on: impl Into<FaultMatch<C::Operation>>,
        times: u64,
        fault: C::Fault,
    ) -> &Self {
        self.add(FaultRule {
            on: on.into(),
            times: Some(times),
            fault,
        })
    }

    /// Every such call goes wrong.
    pub fn always(&self, on: impl Into<FaultMatch<C::Operation>>, fault: C::Fault) -> &Self {
        self.add(FaultRule {
            on: on.into(),
            times: None,
            fault,
        })
    }

    /// Adds a line.
    pub fn add(&self, rule: Rule<C>) -> &Self {
        self.cloud.with_gateway(|gateway| gateway.faults.add(rule));
        self
    }

    /// What is left of the script.
    pub fn rules(&self) -> Vec<Rule<C>> {
        self.cloud
            .with_gateway(|gateway| gateway.faults.rules().to_vec())
    }

    /// Nothing goes wrong any more.
    pub fn clear(&self) {
        self.cloud.with_gateway(|gateway| gateway.faults.clear());
    }
}
