//! Mutations of JSON that leave it JSON: what is behind the parser is reached only by these.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Changes one place of a JSON document, which may begin after other lines. Anything else is left alone.
pub(crate) fn mutate(rng: &mut Rng, input: &mut Vec<u8>, words: &[String]) {
    let Some(from) = input.iter().position(|byte| matches!(byte, b'{' | b'[')) else {
        return;
    };
    let document = input.get(from..).unwrap_or_default();
    let Ok(mut value) = serde_json::from_slice::<Value>(document) else {
        return;
    };
    let places = count(&value);
    let mut at = rng.usize(..places.max(1));
    visit(&mut value, &mut at, &mut |place| change(rng, place, words));
    input.truncate(from);
    input.extend(value.to_string().into_bytes());
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Calls `change` with the value that has this number, counted from the outside.
fn visit(value: &mut Value, at: &mut usize, change: &mut dyn FnMut(&mut Value)) -> bool {
    if *at == 0 {
        change(value);
        return true;
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| visit(item, at, change)),
        Value::Object(fields) => fields.values_mut().any(|field| visit(field, at, change)),
        _ => false,
    }
}

fn change(rng: &mut Rng, value: &mut Value, words: &[String]) {
    match (rng.u8(..6), &mut *value) {
        (0 | 1, Value::Object(fields)) => change_field(rng, fields, words),
        (0, Value::Array(items)) => {
            let item = rng.choice(&*items).cloned();
            items.extend(item);
        }
        (1, Value::Array(items)) => {
            items.pop();
        }
        (2, _) => {
            let inner = value.take();
            *value = json!([inner]);
        }
        _ => *value = surprise(rng, words),
    }
}

fn change_field(rng: &mut Rng, fields: &mut Map<String, Value>, words: &[String]) {
    let name = rng.choice(fields.keys()).cloned().unwrap_or_default();
    if rng.bool() {
        fields.remove(&name);
        return;
    }
    let value = fields.get(&name).cloned().unwrap_or_default();
    let other = rng.choice(words).cloned().unwrap_or(name);
    fields.insert(other, value);
}

fn surprise(rng: &mut Rng, words: &[String]) -> Value {
    match rng.u8(..14) {
        0 => Value::Null,
        1 => json!(0),
        2 => json!(-1),
        3 => json!(1_u64 << 31),
        4 => json!(u64::MAX),
        5 => json!(i64::MIN),
        6 => json!(1.5e308),
        7 => json!(""),
        8 => json!("\0\u{202e}\u{fffd}"),
        9 => json!("x".repeat(1 << rng.u32(..14))),
        10 => json!([]),
        11 => json!({}),
        12 => json!(rng.bool()),
        _ => json!(rng.choice(words).cloned().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_json_stays_json_and_lines_before_it_stay() {
        let good = b"GET /x\n\n{\"a\": [1, {\"b\": null}], \"c\": \"d\"}";
        let mut changed = 0;
        for seed in 0..200 {
            let mut input = good.to_vec();
            mutate(&mut Rng::with_seed(seed), &mut input, &["w".to_owned()]);
            let Some(rest) = input.strip_prefix(b"GET /x\n\n") else {
                panic!("{input:?}");
            };
            let value: Value = serde_json::from_slice(rest).unwrap();
            let before: Value = serde_json::from_slice(&good[8..]).unwrap();
            changed += usize::from(value != before);
        }
        assert!(changed > 150, "{changed}");
    }

    #[test]
    fn what_is_no_json_is_left_alone() {
        for input in ["", "k=v", "{", "[1,"] {
            let mut bytes = input.as_bytes().to_vec();
            mutate(&mut Rng::with_seed(1), &mut bytes, &[]);
            assert_eq!(bytes, input.as_bytes());
        }
    }
}
