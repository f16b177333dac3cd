//! Strategic merge patch: a merge patch that knows which lists are sets.

use serde_json::{Map, Value};

use super::keys::{ListRule, list_rule};
use super::order::{arrange, identity};
use crate::refusal::Refusal;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_TEXTS: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

type Fields = Map<String, Value>;

/// An object of this kind after a patch.
pub(super) fn merge(kind: &str, object: &Value, patch: &Value) -> Result<Value, Refusal> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err(wrong("a strategic merge patch is an object"));
    };
    let merged = Merge { kind }.fields(object.clone(), patch, "")?;
    Ok(Value::Object(merged))
}

fn wrong(why: impl std::fmt::Display) -> Refusal {
    Refusal::bad_request(format!("invalid strategic merge patch: {why}"))
}

struct Merge<'a> {
    kind: &'a str,
}

impl Merge<'_> {
    fn fields(&self, mut object: Fields, patch: &Fields, path: &str) -> Result<Fields, Refusal> {
        if let Some(directive) = patch.get(DIRECTIVE) {
            return match directive.as_str() {
                Some("replace") => Ok(plain_fields(patch)),
                Some("delete") => Ok(Fields::new()),
                _ => Err(wrong(format!("unknown $patch: {directive}"))),
            };
        }
        retain(&mut object, patch)?;
        for (key, value) in patch {
            if key == RETAIN_KEYS {
                continue;
            }
            if let Some(list) = key.strip_prefix(ORDER) {
                self.put_in_order(&mut object, patch, list, value, path)?;
            } else if let Some(list) = key.strip_prefix(DELETE_TEXTS) {
                delete_texts(&mut object, list, value)?;
            } else if !patch.contains_key(&format!("{ORDER}{key}")) {
                self.field(&mut object, key, value, path)?;
            }
        }
        Ok(object)
    }

    fn field(
        &self,
        object: &mut Fields,
        key: &str,
        value: &Value,
        path: &str,
    ) -> Result<(), Refusal> {
        let path = join(path, key);
        let merged = match (object.remove(key), value) {
            (_, Value::Null) => return Ok(()),
            (Some(Value::Object(known)), Value::Object(patch)) => {
                if is_deletion(patch) {
                    return Ok(());
                }
                Value::Object(self.fields(known, patch, &path)?)
            }
            (Some(Value::Array(known)), Value::Array(patch)) => {
                Value::Array(self.list(known, patch, &path)?)
            }
            (_, Value::Object(patch)) if is_deletion(patch) => return Ok(()),
            (_, value) => plain(value),
        };
        object.insert(key.to_owned(), merged);
        Ok(())
    }

    fn list(&self, known: Vec<Value>, patch: &[Value], path: &str) -> Result<Vec<Value>, Refusal> {
        match list_rule(self.kind, path) {
            ListRule::Replace => Ok(patch.to_vec()),
            ListRule::MergeTexts => {
                let live = known.clone();
                let mut merged = known;
                for item in patch {
                    if !merged.contains(item) {
                        merged.push(item.clone());
                    }
                }
                Ok(arrange(merged, patch, &live, None))
            }
            ListRule::MergeBy(key) => self.list_by(key, known, patch, path),
        }
    }

    fn list_by(
        &self,
        key: &str,
        mut known: Vec<Value>,
        patch: &[Value],
        path: &str,
    ) -> Result<Vec<Value>, Refusal> {
        let mut wanted = Vec::new();
        let mut replaces = false;
        for item in patch {
            let directive = item.get(DIRECTIVE).and_then(Value::as_str);
            match directive {
                None => wanted.push(item.clone()),
                Some("replace") => replaces = true,
                Some("delete") => {
                    let gone = identity_of(item, key, path)?;
                    known.retain(|item| identity(item, Some(key)) != gone);
                }
                Some(other) => return Err(wrong(format!("unknown $patch: {other}"))),
            }
        }
        if replaces {
            return Ok(wanted);
        }
        let live = known.clone();
        for item in &wanted {
            let id = identity_of(item, key, path)?;
            let place = known
                .iter()
                .position(|item| identity(item, Some(key)) == id);
            match (place.and_then(|place| known.get_mut(place)), item) {
                (Some(Value::Object(known)), Value::Object(patch)) => {
                    *known = self.fields(std::mem::take(known), patch, path)?;
                }
                _ => known.push(plain(item)),
            }
        }
        Ok(arrange(known, &wanted, &live, Some(key)))
    }

    /// Merges a list whose order the patch gives apart from its items.
    fn put_in_order(
        &self,
        object: &mut Fields,
        patch: &Fields,
        list: &str,
        order: &Value,
        path: &str,
    ) -> Result<(), Refusal> {
        let Some(order) = order.as_array() else {
            return Err(wrong(format!("{ORDER}{list} is no list")));
        };
        let live = match object.get(list) {
            Some(Value::Array(live)) => live.clone(),
            _ => Vec::new(),
        };
        if let Some(value) = patch.get(list) {
            self.field(object, list, value, path)?;
        }
        let key = match list_rule(self.kind, &join(path, list)) {
            ListRule::MergeBy(key) => Some(key),
            ListRule::MergeTexts | ListRule::Replace => None,
        };
        if let Some(Value::Array(items)) = object.get_mut(list) {
            *items = arrange(std::mem::take(items), order, &live, key);
        }
        Ok(())
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn identity_of<'a>(item: &'a Value, key: &str, path: &str) -> Result<&'a Value, Refusal> {
    let known = item.get(key);
    known.ok_or_else(|| wrong(format!("{item} in {path} does not contain {key}")))
}

fn is_deletion(patch: &Fields) -> bool {
    patch.get(DIRECTIVE).and_then(Value::as_str) == Some("delete")
}

/// Keeps only the fields that the patch lists.
fn retain(object: &mut Fields, patch: &Fields) -> Result<(), Refusal> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys = keys
        .as_array()
        .ok_or_else(|| wrong("$retainKeys is no list"))?;
    let kept = |key: &str| keys.iter().any(|kept| kept.as_str() == Some(key));
    let named = |key: &str| key.starts_with('$') || kept(key);
    if patch
        .iter()
        .any(|(key, value)| !value.is_null() && !named(key))
    {
        return Err(wrong("$retainKeys does not list every field of the patch"));
    }
    object.retain(|key, _| kept(key));
    Ok(())
}

fn delete_texts(object: &mut Fields, list: &str, gone: &Value) -> Result<(), Refusal> {
    let gone = gone
        .as_array()
        .ok_or_else(|| wrong(format!("{DELETE_TEXTS}{list} is no list")))?;
    if let Some(Value::Array(items)) = object.get_mut(list) {
        items.retain(|item| !gone.contains(item));
    }
    Ok(())
}

/// A value as it is taken over where there was none: without directives and nulls.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(plain_fields(fields)),
        Value::Array(items) => {
            let kept = items.iter().filter(|item| item.get(DIRECTIVE).is_none());
            Value::Array(kept.map(plain).collect())
        }
        other => other.clone(),
    }
}

fn plain_fields(fields: &Fields) -> Fields {
    let kept = fields.iter().filter(|(key, value)| {
        let directive = key.as_str() == DIRECTIVE
            || key.as_str() == RETAIN_KEYS
            || key.starts_with(DELETE_TEXTS)
            || key.starts_with(ORDER);
        !directive && !value.is_null()
    });
    kept.map(|(key, value)| (key.clone(), plain(value)))
        .collect()
}
