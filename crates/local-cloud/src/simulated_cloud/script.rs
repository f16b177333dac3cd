//! Writing the script of faults.

use super::SimulatedCloud;
use super::fault::{Fault, FaultMatch, FaultRule};

/// The script of faults of a cloud. The first line that fits a call is its fault.
///
/// Calls are named by their [`Operation`](super::Operation) or a [`FaultMatch`].
#[derive(Debug)]
pub struct Faults<'a> {
    cloud: &'a SimulatedCloud,
}

impl<'a> Faults<'a> {
    pub(super) const fn of(cloud: &'a SimulatedCloud) -> Self {
        Self { cloud }
    }

    /// The next such call goes wrong.
    pub fn once(&self, on: impl Into<FaultMatch>, fault: Fault) -> &Self {
        self.times(on, 1, fault)
    }

    /// The next `times` such calls go wrong.
    pub fn times(&self, on: impl Into<FaultMatch>, times: u64, fault: Fault) -> &Self {
        self.add(FaultRule {
            on: on.into(),
            times: Some(times),
            fault,
        })
    }

    /// Every such call goes wrong.
    pub fn always(&self, on: impl Into<FaultMatch>, fault: Fault) -> &Self {
        self.add(FaultRule {
            on: on.into(),
            times: None,
            fault,
        })
    }

    /// Adds a line.
    pub fn add(&self, rule: FaultRule) -> &Self {
        self.cloud.with(|world, _| world.faults.add(rule));
        self
    }

    /// What is left of the script.
    pub fn rules(&self) -> Vec<FaultRule> {
        self.cloud.with(|world, _| world.faults.rules().to_vec())
    }

    /// Nothing goes wrong any more.
    pub fn clear(&self) {
        self.cloud.with(|world, _| world.faults.clear());
    }
}
