//! Label selectors, in the grammar of Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::KeyValue;
use crate::label::{is_label_key, is_label_value};

/// A label selector such as `pool=web,!gpu,zone in (a,b)`. All requirements must hold; an empty one
/// selects everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
}

/// Why a text is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a label selector such as `pool=web,!gpu,zone in (a,b)` in place of {part:?}")]
pub struct SelectorError {
    /// The part that cannot be parsed.
    pub part: String,
}

impl LabelSelector {
    /// Whether these labels are selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Absent(key) => !labels.contains_key(key),
            Requirement::In(key, values) => labels.get(key).is_some_and(|v| values.contains(v)),
            // As in Kubernetes: a missing label is not in any set.
            Requirement::NotIn(key, values) => !labels.get(key).is_some_and(|v| values.contains(v)),
        })
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        split_outside_parentheses(text)
            .into_iter()
            .map(|part| {
                parse_requirement(part).ok_or_else(|| SelectorError {
                    part: part.to_owned(),
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn parse_requirement(part: &str) -> Option<Requirement> {
    let part = part.trim();
    if let Some(key) = part.strip_prefix('!') {
        return label_key(key).map(Requirement::Absent);
    }
    if let Some((key, values)) = parse_set(part, " notin ") {
        return Some(Requirement::NotIn(key, values));
    }
    if let Some((key, values)) = parse_set(part, " in ") {
        return Some(Requirement::In(key, values));
    }
    let one =
        |key: &str, value: &str| Some((label_key(key)?, BTreeSet::from([label_value(value)?])));
    if let Some((key, value)) = part.split_once("!=") {
        return one(key, value).map(|(key, values)| Requirement::NotIn(key, values));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return one(key, value).map(|(key, values)| Requirement::In(key, values));
    }
    label_key(part).map(Requirement::Exists)
}

fn parse_set(part: &str, word: &str) -> Option<(String, BTreeSet<String>)> {
    let spaced = part.replace('(', " (");
    let (key, list) = spaced.split_once(word)?;
    let inner = list.trim().strip_prefix('(')?.strip_suffix(')')?;
    let values = inner.split(',').map(label_value).collect::<Option<_>>()?;
    Some((label_key(key)?, values))
}

fn label_key(text: &str) -> Option<String> {
    let text = text.trim();
    is_label_key(text).then(|| text.to_owned())
}

fn label_value(text: &str) -> Option<String> {
    let text = text.trim();
    is_label_value(text).then(|| text.to_owned())
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match requirement {
                Requirement::Exists(key) => write!(f, "{comma}{key}")?,
                Requirement::Absent(key) => write!(f, "{comma}!{key}")?,
                Requirement::In(key, values) => write!(f, "{comma}{key} in ({})", join(values))?,
                Requirement::NotIn(key, values) => {
                    write!(f, "{comma}{key} notin ({})", join(values))?;
                }
            }
        }
        Ok(())
    }
}

fn join(values: &BTreeSet<String>) -> String {
    values
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(",")
}

impl Serialize for LabelSelector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl KeyValue for LabelSelector {
    const TYPE: &'static str = "label selector";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: SelectorError| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        selector.parse::<LabelSelector>().unwrap().matches(&labels)
    }

    #[test]
    fn every_operator_selects_what_kubernetes_selects() {
        let labels = [("pool", "web"), ("zone", "a")];
        for (selector, expected) in [
            ("", true),
            ("pool", true),
            ("gpu", false),
            ("!gpu", true),
            ("!pool", false),
            ("pool=web", true),
            ("pool == web", true),
            ("pool!=web", false),
            ("gpu!=yes", true),
            ("zone in (a, b)", true),
            ("zone in(a,b)", true),
            ("zone notin (a,b)", false),
            ("gpu notin (a)", true),
            ("gpu in (a)", false),
            ("pool=web,zone in (b,c)", false),
            ("pool=web, zone in (a,b), !gpu", true),
            ("gpu=", false),
        ] {
            assert_eq!(selects(selector, &labels), expected, "{selector:?}");
        }
        assert!(selects(
            "node.kubernetes.io/kind=x",
            &[("node.kubernetes.io/kind", "x")]
        ));
    }

    #[test]
    fn nonsense_is_refused_with_the_part_that_is_wrong() {
        for (text, part) in [
            ("a b", "a b"),
            ("pool=web,,x", ""),
            ("zone in a", "zone in a"),
            ("x=(", "x=("),
            ("=x", "=x"),
            ("/a", "/a"),
            ("-a", "-a"),
        ] {
            let error = text.parse::<LabelSelector>().unwrap_err();
            assert_eq!(error.part.trim(), part, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics_and_what_is_printed_is_read_back(text in "[a-c!=,() in]{0,24}") {
            if let Ok(selector) = text.parse::<LabelSelector>() {
                prop_assert_eq!(selector.to_string().parse::<LabelSelector>(), Ok(selector));
            }
        }
    }
}
