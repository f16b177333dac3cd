//! Names are used once in a project, by things of the same kind.

use super::super::refusal::Refusal;
use super::query::Listed;
use cloudkeel_emulation::history::Table;

/// Refuses a name that another thing has already.
pub(in super::super) fn check_free<T: Listed>(
    table: &Table<T>,
    name: &str,
    own: Option<u64>,
) -> Result<(), Refusal> {
    let mut others = table.iter().filter(|(id, _)| Some(*id) != own);
    if others.any(|(_, other)| other.name() == name) {
        return Err(Refusal::not_unique("name"));
    }
    Ok(())
}
