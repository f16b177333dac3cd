//! Pages.

use serde_json::{Value, json};

use super::Answer;
use super::query::{ListQuery, Listed};

/// One page of what the query asks for. Only what is on it is rendered.
pub(super) fn paged<'a, T: Listed + 'a>(
    key: &str,
    things: impl Iterator<Item = &'a T>,
    query: &ListQuery,
    render: impl Fn(&T) -> Value,
) -> Answer {
    let mut found: Vec<&T> = things.filter(|thing| query.fits(*thing)).collect();
    found.sort_by(|a, b| query.compare(*a, *b));
    let (first, size) = window(query);
    let shown = found.iter().skip(first).take(size).copied().map(render);
    answer(key, shown.collect(), found.len(), query)
}

/// The same of things that are rendered already and have no labels.
pub(super) fn paged_plain(
    key: &str,
    things: impl IntoIterator<Item = Value>,
    name: Option<&str>,
    query: &ListQuery,
) -> Answer {
    let has_name =
        |thing: &Value| name.is_none() || thing.get("name").and_then(Value::as_str) == name;
    let found: Vec<Value> = things.into_iter().filter(has_name).collect();
    let (first, size) = window(query);
    let total = found.len();
    let shown = found.into_iter().skip(first).take(size);
    answer(key, shown.collect(), total, query)
}

fn window(query: &ListQuery) -> (usize, usize) {
    let size = usize::try_from(query.per_page).unwrap_or(usize::MAX);
    let page = usize::try_from(query.page - 1).unwrap_or(usize::MAX);
    (page.saturating_mul(size), size)
}

fn answer(key: &str, shown: Vec<Value>, total: usize, query: &ListQuery) -> Answer {
    let total = u64::try_from(total).unwrap_or(u64::MAX);
    let last = total.div_ceil(query.per_page).max(1);
    let mut body = json!({"meta": {"pagination": {
        "page": query.page,
        "per_page": query.per_page,
        "previous_page": (query.page > 1).then(|| query.page - 1),
        "next_page": (query.page < last).then(|| query.page + 1),
        "last_page": last,
        "total_entries": total,
    }}});
    if let Some(body) = body.as_object_mut() {
        body.insert(key.to_owned(), Value::Array(shown));
    }
    Answer::ok(body)
}
