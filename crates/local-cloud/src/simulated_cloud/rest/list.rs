//! Pages.

use cloudkeel_provider_local::wire::{List, PageInfo};
use serde::Serialize;

use super::query::ListQuery;
use super::{Answer, Call, Refusal};

/// One page of everything that was found. Only the things of this page are kept on the way.
pub(super) fn paged<'a, T: Serialize + 'a>(
    found: impl Iterator<Item = &'a T>,
    query: &ListQuery,
    call: &Call<'_>,
) -> Result<Answer, Refusal> {
    let first = (query.page - 1).saturating_mul(query.per_page);
    let behind = first.saturating_add(query.per_page);
    let mut items = Vec::new();
    let mut total = 0;
    for item in found {
        if (first..behind).contains(&total) {
            items.push(item);
        }
        total += 1;
    }
    let page = PageInfo {
        number: query.page,
        per_page: query.per_page,
        total,
        next: (behind < total).then(|| query.next(call.operation.path())),
    };
    Answer::ok(&List { items, page })
}
