//! Load balancers: made once, changed as wished, taken down, and nobody else's.

mod fields;
mod health;
mod making;
mod ownership;
mod ports;
mod races;
mod removing;
mod targets;
mod trouble;

use super::check::Check;

pub(super) fn checks() -> impl Iterator<Item = &'static Check> {
    making::CHECKS
        .iter()
        .chain(ports::CHECKS)
        .chain(fields::CHECKS)
        .chain(health::CHECKS)
        .chain(targets::CHECKS)
        .chain(ownership::CHECKS)
        .chain(removing::CHECKS)
        .chain(trouble::CHECKS)
        .chain(races::CHECKS)
}
