//! Label selectors: `zone in (a,b),!spare,app=web`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::LabelName;
use crate::refusal::Refusal;

#[derive(Debug, Clone, Default)]
pub(super) struct LabelSelector(Vec<Term>);

#[derive(Debug, Clone)]
enum Term {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    Absent(String),
}

impl LabelSelector {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let terms = split(text).into_iter().filter(|term| !term.is_empty());
        terms
            .map(|text| {
                term(text).ok_or_else(|| {
                    let why = format!("unable to parse requirement: {text:?} is no requirement");
                    Refusal::bad_request(why)
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn matches(&self, labels: &Value) -> bool {
        let value = |key: &String| labels.get(key).and_then(Value::as_str);
        self.0.iter().all(|term| match term {
            Term::In(key, values) => value(key).is_some_and(|value| values.contains(value)),
            Term::NotIn(key, values) => value(key).is_none_or(|value| !values.contains(value)),
            Term::Exists(key) => value(key).is_some(),
            Term::Absent(key) => value(key).is_none(),
        })
    }
}

/// Splits at the commas that are not between parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut inside = false;
    text.split(|sign| {
        match sign {
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        sign == ',' && !inside
    })
    .map(str::trim)
    .collect()
}

fn term(text: &str) -> Option<Term> {
    if let Some((key, values)) = text.split_once("!=") {
        return Some(Term::NotIn(key_of(key)?, one(values)?));
    }
    if let Some((key, values)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(Term::In(key_of(key)?, one(values)?));
    }
    if let Some(key) = text.strip_prefix('!') {
        return Some(Term::Absent(key_of(key)?));
    }
    if let Some((key, values)) = text.split_once(" notin ") {
        return Some(Term::NotIn(key_of(key)?, many(values)?));
    }
    if let Some((key, values)) = text.split_once(" in ") {
        return Some(Term::In(key_of(key)?, many(values)?));
    }
    Some(Term::Exists(key_of(text)?))
}

fn key_of(text: &str) -> Option<String> {
    let text = text.trim();
    LabelName::is_key(text).then(|| text.to_owned())
}

fn one(text: &str) -> Option<BTreeSet<String>> {
    let text = text.trim();
    LabelName::is_value(text).then(|| BTreeSet::from([text.to_owned()]))
}

fn many(text: &str) -> Option<BTreeSet<String>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let values: BTreeSet<_> = inner
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    values
        .iter()
        .all(|value| LabelName::is_value(value))
        .then_some(values)
}
