//! The annotations of Services as a JSON schema for each cloud, for editors and policy engines.

use std::collections::BTreeMap;

use cloudkeel_api::{Descriptor, KeyDoc, KeyPlace, names};
use serde_json::{Map, Value, json};

/// What Go reads as a truth value.
const BOOLEANS: [&str; 12] = [
    "true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE", "True", "False",
];
const INTEGER: &str = "^-?[0-9]+$";
const DURATION: &str = r"^0$|^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$";

/// The schema of `metadata.annotations` of a Service that this cloud serves. `None` if it has no annotations.
pub(super) fn of_cloud(descriptor: &Descriptor) -> Option<Value> {
    let keys = descriptor.keys.iter();
    let own: Vec<&KeyDoc> = keys
        .filter(|key| key.place == KeyPlace::Annotation)
        .collect();
    let prefix = prefix_of(&own)?;
    let neutral = names::annotation_docs();
    let known: BTreeMap<&str, &KeyDoc> = own
        .into_iter()
        .chain(&neutral)
        .map(|key| (key.name, key))
        .collect();
    let properties: Map<String, Value> = known
        .iter()
        .map(|(name, key)| ((*name).to_owned(), property(key)))
        .collect();
    let prefixes = [names::ANNOTATION_PREFIX, &prefix].map(escaped);
    let reserved = format!("^({})", prefixes.join("|"));
    Some(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Annotations of a Service in cloud {}", descriptor.name),
        "$comment": "Printed by `cloudkeel docs`. Change the code, not this file.",
        "type": "object",
        "properties": properties,
        "additionalProperties": {"type": "string"},
        "propertyNames": {
            "if": {"pattern": reserved},
            "then": {"enum": known.keys().collect::<Vec<_>>()},
        },
    }))
}

/// The value of an annotation is always text.
fn property(key: &KeyDoc) -> Value {
    let mut property = json!({"type": "string", "description": key.help});
    let range = key
        .range
        .map(|(lowest, highest)| format!("^({})$", between(lowest, highest).join("|")));
    let rule = match key.value_type {
        _ if !key.choices.is_empty() => Some(("enum", json!(key.choices))),
        _ if range.is_some() => Some(("pattern", json!(range))),
        "bool" => Some(("enum", json!(BOOLEANS))),
        "integer" => Some(("pattern", json!(INTEGER))),
        "duration" => Some(("pattern", json!(DURATION))),
        _ => None,
    };
    let default = key.default.map(|default| ("default", json!(default)));
    if let Some(fields) = property.as_object_mut() {
        let more = rule.into_iter().chain(default);
        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    property
}

/// Patterns of the numbers from `lowest` to `highest`, without leading zeros: each matches those that share all but their last
/// digits.
fn between(lowest: u64, highest: u64) -> Vec<String> {
    let mut patterns = Vec::new();
    let mut next = Some(lowest);
    while let Some(from) = next.filter(|from| *from <= highest) {
        // As many free digits at the end as fit below the highest, from where the ones before them begin anew.
        let mut free = 1_u64;
        while free.checked_mul(10).is_some_and(|more| {
            from != 0 && from % more == 0 && from.saturating_add(more - 1) <= highest
        }) {
            free *= 10;
        }
        let digits = free.ilog10() as usize;
        let (head, digit) = (from / free / 10, from / free % 10);
        let fits = |last: &u64| (head * 10 + last) * free + (free - 1) <= highest;
        let last = (digit..=9).rev().find(fits).unwrap_or(digit);
        let head = if head == 0 {
            String::new()
        } else {
            head.to_string()
        };
        let choice = if digit == last {
            digit.to_string()
        } else {
            format!("[{digit}-{last}]")
        };
        patterns.push(format!("{head}{choice}{}", "[0-9]".repeat(digits)));
        next = from.checked_add((last - digit + 1) * free);
    }
    patterns
}

/// What most of a cloud's annotations begin with: the domain, and in a domain of Kubernetes what they have in common.
fn prefix_of(keys: &[&KeyDoc]) -> Option<String> {
    let mut domains = BTreeMap::<&str, Vec<&str>>::new();
    for key in keys {
        let (domain, name) = key.name.split_once('/')?;
        domains.entry(domain).or_default().push(name);
    }
    let (domain, names) = domains.into_iter().max_by_key(|(_, names)| names.len())?;
    if !domain.ends_with("kubernetes.io") {
        return Some(format!("{domain}/"));
    }
    let first = names.first()?;
    let is_common = |end: &usize| {
        names
            .iter()
            .all(|name| name.get(..*end) == first.get(..*end))
    };
    let ends = first
        .match_indices('-')
        .map(|(place, dash)| place + dash.len());
    let end = ends.filter(is_common).max()?;
    Some(format!("{domain}/{}", first.get(..end)?))
}

fn escaped(text: &str) -> String {
    text.replace('.', r"\.")
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{AnnotationKey, Documented as _, names::LB_ALGORITHM};

    use super::*;

    const TYPE: AnnotationKey<String> =
        AnnotationKey::new("service.beta.kubernetes.io/x-lb-type", "Size.");
    const PORT: AnnotationKey<u16> =
        AnnotationKey::new("service.beta.kubernetes.io/x-lb-port", "Port.").with_default("80");
    const ID: AnnotationKey<bool> = AnnotationKey::new("x.example.com/id", "ID.");

    fn descriptor(keys: Vec<KeyDoc>) -> Descriptor {
        Descriptor {
            name: "x",
            summary: "",
            replaces: &[],
            capabilities: Vec::new(),
            keys,
        }
    }

    #[test]
    fn values_have_their_type_their_choices_and_their_default() {
        let keys = vec![TYPE.doc(), PORT.doc(), ID.doc()];
        let schema = of_cloud(&descriptor(keys)).unwrap();
        let property = |name: &str| &schema["properties"][name];
        let (text, port, switch) = (
            property(TYPE.name()),
            property(PORT.name()),
            property(ID.name()),
        );
        assert_eq!(*text, json!({"type": "string", "description": "Size."}));
        assert_eq!(
            (&port["pattern"], &port["default"]),
            (&json!(INTEGER), &json!("80"))
        );
        assert_eq!(switch["enum"], json!(BOOLEANS));
        let algorithm = property(LB_ALGORITHM.name());
        assert_eq!(
            algorithm["enum"],
            json!(["round-robin", "least-connections", "source-ip"])
        );
    }

    /// Whether a pattern of digits and ranges of digits matches.
    fn is_matched(pattern: &str, number: u64) -> bool {
        let (mut rest, text) = (pattern, number.to_string());
        for digit in text.bytes() {
            let (low, high, used) = match rest.as_bytes() {
                [b'[', low, b'-', high, b']', ..] => (*low, *high, 5),
                [one, ..] => (*one, *one, 1),
                [] => return false,
            };
            if !(low..=high).contains(&digit) {
                return false;
            }
            rest = &rest[used..];
        }
        rest.is_empty()
    }

    #[test]
    fn a_range_of_numbers_becomes_a_pattern() {
        assert_eq!(
            between(5, 300).join("|"),
            "[5-9]|[1-9][0-9]|[1-2][0-9][0-9]|300"
        );
        for (lowest, highest) in [
            (0, 0),
            (1, 10),
            (2, 60),
            (5, 300),
            (7, 1234),
            (99, 4000),
            (0, 2000),
        ] {
            let patterns = between(lowest, highest);
            for number in 0..=5000 {
                let matches = patterns.iter().filter(|it| is_matched(it, number)).count();
                let expected = usize::from((lowest..=highest).contains(&number));
                assert_eq!(
                    matches, expected,
                    "{number} in {lowest}..={highest}: {patterns:?}"
                );
            }
        }
        assert_eq!(between(0, 31_536_000_000).len(), 16);
    }

    #[test]
    fn names_under_a_prefix_of_ours_have_to_be_known_and_others_need_not() {
        let keys = vec![TYPE.doc(), PORT.doc(), ID.doc()];
        let names = of_cloud(&descriptor(keys)).unwrap()["propertyNames"].clone();
        let prefixes = r"^(cloudkeel\.dev/|service\.beta\.kubernetes\.io/x-lb-)";
        assert_eq!(names["if"]["pattern"], prefixes);
        let known = names["then"]["enum"].as_array().unwrap();
        assert!(known.contains(&json!(TYPE.name())) && known.contains(&json!(LB_ALGORITHM.name())));
        let own = vec![ID.doc()];
        let names = of_cloud(&descriptor(own)).unwrap()["propertyNames"].clone();
        assert_eq!(
            names["if"]["pattern"],
            r"^(cloudkeel\.dev/|x\.example\.com/)"
        );
    }

    #[test]
    fn a_cloud_without_annotations_has_no_schema() {
        assert_eq!(of_cloud(&descriptor(Vec::new())), None);
    }
}
