//! Machines: found, switched off, gone, and never gone by mistake.

mod doubt;
mod finding;
mod sweeping;

use super::check::Check;

pub(super) fn checks() -> impl Iterator<Item = &'static Check> {
    let found = finding::CHECKS.iter();
    found.chain(doubt::CHECKS).chain(sweeping::CHECKS)
}
