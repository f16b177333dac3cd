//! Instances: found, shown as they are, switched off, gone, and never gone by mistake.

mod changes;
mod list;
mod lookup;
mod slow;
mod truth;
mod unproven;

use super::check::Check;

pub(super) fn checks() -> impl Iterator<Item = &'static Check> {
    lookup::CHECKS
        .iter()
        .chain(truth::CHECKS)
        .chain(unproven::CHECKS)
        .chain(list::CHECKS)
        .chain(changes::CHECKS)
        .chain(slow::CHECKS)
}
