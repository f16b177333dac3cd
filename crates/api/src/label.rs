//! What Kubernetes accepts as the key and as the value of a label.

/// Why the API server would reject a label, and with it the whole write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LabelProblem {
    /// The key.
    #[error(
        "a label key has at most 63 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or a \
         digit; a lower-case DNS name and a `/` may stand before it"
    )]
    Key,
    /// The value.
    #[error(
        "a label value has at most 63 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or a \
         digit"
    )]
    Value,
}

/// Whether Kubernetes accepts this key with this value.
pub fn check_label(key: &str, value: &str) -> Result<(), LabelProblem> {
    if !is_label_key(key) {
        return Err(LabelProblem::Key);
    }
    if !is_label_value(value) {
        return Err(LabelProblem::Value);
    }
    Ok(())
}

/// Whether Kubernetes accepts this text as the key of a label: a name, with or without a domain before it.
pub fn is_label_key(text: &str) -> bool {
    let (is_domain, name) = match text.split_once('/') {
        Some((domain, name)) => (is_dns_subdomain(domain), name),
        None => (true, text),
    };
    is_domain && !name.is_empty() && is_label_value(name)
}

/// Whether Kubernetes accepts this text as the value of a label. It may be empty.
pub fn is_label_value(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() <= 63
        && text.chars().all(inner)
        && !text.starts_with(['-', '_', '.'])
        && !text.ends_with(['-', '_', '.'])
}

/// Whether Kubernetes accepts this text as a DNS name, which is in lower case.
pub fn is_dns_subdomain(text: &str) -> bool {
    let is_part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty()
            && part.bytes().all(inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_validated_as_the_api_server_does() {
        let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
        for (value, is_good) in [
            ("", true),
            ("a", true),
            ("Zone_1.a-b", true),
            (longest.as_str(), true),
            (too_long.as_str(), false),
            ("a b", false),
            ("zürich", false),
            ("a/b", false),
            ("-a", false),
            ("a.", false),
            ("_", false),
            ("a\n", false),
        ] {
            assert_eq!(is_label_value(value), is_good, "{value:?}");
            let expected = if is_good {
                Ok(())
            } else {
                Err(LabelProblem::Value)
            };
            assert_eq!(check_label("k", value), expected, "{value:?}");
        }
    }

    #[test]
    fn keys_are_validated_as_the_api_server_does() {
        let longest_domain = format!("{}a/k", "a.".repeat(126));
        let too_long_domain = format!("{}ab/k", "a.".repeat(126));
        let too_long_name = format!("example.com/{}", "a".repeat(64));
        for (key, is_good) in [
            ("k", true),
            ("K_1.a", true),
            ("example.com/K_1.a", true),
            (longest_domain.as_str(), true),
            (too_long_domain.as_str(), false),
            (too_long_name.as_str(), false),
            ("", false),
            ("/k", false),
            ("example.com/", false),
            ("a/b/c", false),
            ("Example.com/k", false),
            ("example..com/k", false),
            ("-example.com/k", false),
            ("example.com/-k", false),
            ("a b", false),
        ] {
            assert_eq!(is_label_key(key), is_good, "{key:?}");
            let expected = if is_good {
                Ok(())
            } else {
                Err(LabelProblem::Key)
            };
            assert_eq!(check_label(key, "v"), expected, "{key:?}");
        }
    }
}
