//! What labels may look like.

use super::super::refusal::Refusal;
use super::super::world::Labels;

const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 253;

/// Refuses labels that the API does not take.
pub(super) fn check(labels: &Labels) -> Result<(), Refusal> {
    for (key, value) in labels {
        if !is_key(key) {
            return Err(Refusal::invalid(
                "labels",
                format!("invalid label key {key:?}"),
            ));
        }
        if key.starts_with("hetzner.cloud/") {
            return Err(Refusal::invalid(
                "labels",
                format!("label key {key:?} is reserved"),
            ));
        }
        if !is_value(value) {
            return Err(Refusal::invalid(
                "labels",
                format!("invalid label value {value:?}"),
            ));
        }
    }
    Ok(())
}

/// A name, perhaps behind a prefix and a slash.
pub(super) fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_word(prefix, LONGEST_PREFIX) && is_word(name, LONGEST_NAME),
        None => is_word(key, LONGEST_NAME),
    }
}

pub(super) fn is_value(value: &str) -> bool {
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
    fn labels_are_words_of_some_length() {
        for (key, value, good) in [
            ("env", "prod", true),
            ("hcloud-ccm/service-uid", "0b1c-2d", true),
            ("a.b_c-d", "", true),
            ("", "x", false),
            ("-a", "x", false),
            ("a/b/c", "x", false),
            ("a", "x y", false),
            ("a", "-x", false),
            ("hetzner.cloud/x", "y", false),
        ] {
            let labels = Labels::from([(key.to_owned(), value.to_owned())]);
            assert_eq!(check(&labels).is_ok(), good, "{key}={value}");
        }
        assert!(is_key(&"k".repeat(63)) && !is_key(&"k".repeat(64)));
        assert!(is_value(&"v".repeat(63)) && !is_value(&"v".repeat(64)));
    }
}
