//! Load balancers: created once, changed as asked for, removed, and never another owner's.

mod concurrency;
mod create;
mod defaults;
mod delete;
mod drift;
mod faults;
mod foreign_parts;
mod health;
mod labels;
mod limits;
mod ownership;
mod ports;
mod settings;
mod shared;
mod slow;
mod targets;

use super::check::Check;

pub(super) fn checks() -> impl Iterator<Item = &'static Check> {
    create::CHECKS
        .iter()
        .chain(drift::CHECKS)
        .chain(ports::CHECKS)
        .chain(settings::CHECKS)
        .chain(defaults::CHECKS)
        .chain(health::CHECKS)
        .chain(labels::CHECKS)
        .chain(targets::CHECKS)
        .chain(limits::CHECKS)
        .chain(ownership::CHECKS)
        .chain(shared::CHECKS)
        .chain(foreign_parts::CHECKS)
        .chain(delete::CHECKS)
        .chain(faults::CHECKS)
        .chain(slow::CHECKS)
        .chain(concurrency::CHECKS)
}
