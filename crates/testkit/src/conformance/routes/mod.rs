//! Routes for Pod networks.

mod slow;
mod table;

use super::check::Check;

pub(super) use self::table::creations;

pub(super) fn checks() -> impl Iterator<Item = &'static Check> {
    table::CHECKS.iter().chain(slow::CHECKS)
}
