//! In which order a merged list comes: the patch's items in the patch's order, and those of the
//! server where they were.

use serde_json::Value;

/// What tells items apart: themselves, or their value under a key.
pub(super) fn identity<'a>(item: &'a Value, key: Option<&str>) -> &'a Value {
    key.map_or(item, |key| &item[key])
}

fn place(order: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    let wanted = identity(item, key);
    order
        .iter()
        .position(|known| identity(known, key) == wanted)
}

/// Orders merged items: `wanted` is the order that a patch gives, `live` the one that was.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    key: Option<&str>,
) -> Vec<Value> {
    let of = |order: &[Value], item: &Value| place(order, item, key);
    let (mut named, mut others): (Vec<_>, Vec<_>) = merged
        .into_iter()
        .partition(|item| of(wanted, item).is_some());
    named.sort_by_key(|item| of(wanted, item));
    others.sort_by_key(|item| of(live, item).unwrap_or(usize::MAX));
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(other), Some(item)) = (others.peek(), named.peek()) {
        let was_before = match (of(live, other), of(live, item)) {
            (Some(other), Some(item)) => other < item,
            _ => false,
        };
        arranged.extend(if was_before {
            others.next()
        } else {
            named.next()
        });
    }
    arranged.extend(named);
    arranged.extend(others);
    arranged
}
