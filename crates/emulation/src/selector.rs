//! Label selectors, as Kubernetes and the clouds that follow it write them.
//!
//! `k=v`, `k==v`, `k!=v`, `k`, `!k`, `k in (a,b)`, `k notin (a,b)`; a comma means "and".

use super::list::Labels;

const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 253;

/// A parsed selector. The default selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    rule: Rule,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl Selector {
    /// Reads a selector; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let parts = split(text).ok_or_else(|| format!("{text:?}: a bracket is not closed"))?;
        parts
            .into_iter()
            .map(requirement)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Selects what has all of these labels.
    pub fn exactly(labels: Labels) -> Self {
        let requirement = |(key, value)| Requirement {
            key,
            rule: Rule::In(vec![value]),
        };
        Self(labels.into_iter().map(requirement).collect())
    }

    /// Whether it selects something with these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match &requirement.rule {
                Rule::Exists => value.is_some(),
                Rule::Absent => value.is_none(),
                Rule::In(values) => value.is_some_and(|value| values.contains(value)),
                Rule::NotIn(values) => !value.is_some_and(|value| values.contains(value)),
            }
        })
    }
}

/// The parts between commas, except commas in brackets.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            '(' if inside => return None,
            '(' => inside = true,
            ')' if !inside => return None,
            ')' => inside = false,
            ',' if !inside => {
                parts.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..)?);
    (!inside).then_some(parts)
}

fn requirement(part: &str) -> Result<Requirement, String> {
    let part = part.trim();
    let (key, rule) = if let Some(key) = part.strip_prefix('!') {
        (key, Rule::Absent)
    } else if let Some((key, value)) = part.split_once("!=") {
        (key, Rule::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = part.split_once("==") {
        (key, Rule::In(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = part.split_once('=') {
        (key, Rule::In(vec![value.trim().to_owned()]))
    } else if let Some((key, values)) = set(part, " notin ") {
        (key, Rule::NotIn(values))
    } else if let Some((key, values)) = set(part, " in ") {
        (key, Rule::In(values))
    } else {
        (part, Rule::Exists)
    };
    let key = key.trim();
    let values = match &rule {
        Rule::In(values) | Rule::NotIn(values) => values.as_slice(),
        Rule::Exists | Rule::Absent => &[],
    };
    if !is_label_key(key) || !values.iter().all(|value| is_label_value(value)) {
        return Err(format!("{part:?} is not a requirement on labels"));
    }
    Ok(Requirement {
        key: key.to_owned(),
        rule,
    })
}

fn set<'a>(part: &'a str, word: &str) -> Option<(&'a str, Vec<String>)> {
    // `k in(a,b)` is understood as well.
    let (key, values) = part
        .split_once(word)
        .or_else(|| part.split_once(&format!("{}(", word.trim_end())))?;
    let values = values.trim().trim_start_matches('(').strip_suffix(')')?;
    let values = values.split(',').map(|value| value.trim().to_owned());
    Some((key, values.collect()))
}

/// A name, perhaps behind a prefix and a slash.
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_word(prefix, LONGEST_PREFIX) && is_word(name, LONGEST_NAME),
        None => is_word(key, LONGEST_NAME),
    }
}

/// Nothing, or a name.
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_word(value, LONGEST_NAME)
}

/// Letters, digits and, between them, dots, dashes and underscores.
fn is_word(text: &str, longest: usize) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= longest
        && outer(bytes.first())
        && outer(bytes.last())
        && bytes.iter().all(|byte| inner(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_selects_by_every_form_of_requirement() {
        let labels: Labels = [
            ("env", "prod"),
            ("hcloud-ccm/service-uid", "u-1"),
            ("empty", ""),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        for (selector, selected) in [
            ("", true),
            ("env=prod", true),
            ("env==prod", true),
            ("env=test", false),
            ("env!=test", true),
            ("env!=prod", false),
            ("other!=prod", true),
            ("env", true),
            ("other", false),
            ("!other", true),
            ("!env", false),
            ("env in (prod,test)", true),
            ("env in(prod,test)", true),
            ("env in ( test , stage )", false),
            ("env notin (test,stage)", true),
            ("env notin (test,prod)", false),
            ("other notin (a)", true),
            ("hcloud-ccm/service-uid=u-1", true),
            ("hcloud-ccm/service-uid=u-2", false),
            ("empty=", true),
            ("env in (prod,test),empty,!other", true),
            ("env=prod,other", false),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            assert_eq!(parsed.matches(&labels), selected, "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for selector in [
            "env in (a",
            "env in a)",
            ",",
            "a b",
            "=x",
            "k=a=b",
            "k=(a)",
            "!",
            "k in ((a))",
        ] {
            assert!(Selector::parse(selector).is_err(), "{selector}");
        }
    }

    #[test]
    fn keys_and_values_are_words_of_some_length() {
        for (key, value, good) in [
            ("env", "prod", true),
            ("hcloud-ccm/service-uid", "0b1c-2d", true),
            ("a.b_c-d", "", true),
            ("", "x", false),
            ("-a", "x", false),
            ("a/b/c", "x", false),
            ("a", "x y", false),
            ("a", "-x", false),
        ] {
            let is_good = is_label_key(key) && is_label_value(value);
            assert_eq!(is_good, good, "{key}={value}");
        }
        assert!(is_label_key(&"k".repeat(63)) && !is_label_key(&"k".repeat(64)));
        assert!(is_label_value(&"v".repeat(63)) && !is_label_value(&"v".repeat(64)));
    }
}
