//! Field selectors: `metadata.name=a,spec.type!=b`.

use crate::refusal::Refusal;

#[derive(Debug, Clone, Default)]
pub(super) struct FieldSelector(Vec<Term>);

#[derive(Debug, Clone)]
struct Term {
    key: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let terms = text.split(',').filter(|term| !term.is_empty());
        terms.map(term).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|term| term.key.as_str())
    }

    pub(super) fn and_equal(mut self, key: &str, value: &str) -> Self {
        self.0.push(Term {
            key: key.to_owned(),
            value: value.to_owned(),
            equal: true,
        });
        self
    }

    pub(super) fn matches(&self, fields: &[(&'static str, String)]) -> bool {
        self.0.iter().all(|term| {
            let field = fields.iter().find(|(key, _)| *key == term.key);
            let value = field.map_or("", |(_, value)| value);
            (value == term.value) == term.equal
        })
    }
}

fn term(text: &str) -> Result<Term, Refusal> {
    let split = |separator, equal| {
        text.split_once(separator)
            .map(|(key, value)| (key, value, equal))
    };
    let found = split("!=", false)
        .or_else(|| split("==", true))
        .or_else(|| split("=", true));
    let (key, value, equal) = found.ok_or_else(|| {
        let why = format!("invalid selector: '{text}'; can't understand '{text}'");
        Refusal::bad_request(why)
    })?;
    Ok(Term {
        key: key.to_owned(),
        value: value.to_owned(),
        equal,
    })
}
