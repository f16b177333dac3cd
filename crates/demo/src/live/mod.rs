//! The live page of the demo: what it shows, and what its buttons do.

mod balancers;
mod board;
mod desk;
mod nodes;

pub(crate) use board::Board;
pub(crate) use desk::Desk;

/// What buttons do, by name.
mod action {
    pub(super) const ADD: &str = "add-machine";
    pub(super) const POWER_OFF: &str = "power-off";
    pub(super) const POWER_ON: &str = "power-on";
    pub(super) const DESTROY: &str = "destroy";
    pub(super) const BREAK: &str = "break-cloud";
    pub(super) const SWAP_TOKEN: &str = "swap-token";
    pub(super) const MEND: &str = "mend-cloud";
    pub(super) const KILL: &str = "kill";
    pub(super) const SCENARIO: &str = "start-scenario";
}
