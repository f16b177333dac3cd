//! The live page of the demo: its data and its buttons.

mod balancers;
mod buttons;
mod nodes;
mod page_source;

pub(crate) use buttons::DemoButtons;
pub(crate) use page_source::DemoPage;

/// The IDs of the buttons.
mod action {
    pub(super) const ADD: &str = "add-machine";
    pub(super) const POWER_OFF: &str = "power-off";
    pub(super) const POWER_ON: &str = "power-on";
    pub(super) const DESTROY: &str = "destroy";
    pub(super) const BREAK: &str = "break-cloud";
    pub(super) const SWAP_TOKEN: &str = "swap-token";
    pub(super) const REPAIR: &str = "mend-cloud";
    pub(super) const KILL: &str = "kill";
    pub(super) const SCENARIO: &str = "start-scenario";
}
