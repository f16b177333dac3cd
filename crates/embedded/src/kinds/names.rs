//! How objects, labels and values may be called.

/// Which names a kind of objects may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// `node-1.example.com`
    Subdomain,
    /// `kube-system`
    Label,
    /// A label that starts with a letter.
    Label1035,
    /// Anything that fits between two slashes.
    PathSegment,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

impl NameRule {
    /// What is wrong with a name, if anything.
    pub(crate) fn refuses(self, name: &str) -> Option<String> {
        let (limit, fits, why) = match self {
            Self::Subdomain => (253, name.split('.').all(is_label), SUBDOMAIN),
            Self::Label => (63, is_label(name), LABEL),
            Self::Label1035 => (
                63,
                is_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase()),
                LABEL_1035,
            ),
            Self::PathSegment => return refused_in_a_path(name),
        };
        if name.len() > limit {
            return Some(format!("must be no more than {limit} bytes"));
        }
        let has_only_dots = self == Self::Label && Self::Subdomain.refuses(name).is_none();
        (!fits).then(|| {
            if has_only_dots {
                "must not contain dots"
            } else {
                why
            }
            .to_owned()
        })
    }
}

fn refused_in_a_path(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        _ => name
            .chars()
            .find(|sign| matches!(sign, '/' | '%'))
            .map(|sign| format!("may not contain '{sign}'")),
    }
}

fn is_label(text: &str) -> bool {
    let inside = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    !text.is_empty() && text.chars().all(inside) && !text.starts_with('-') && !text.ends_with('-')
}

/// The names and values of labels.
pub(crate) struct LabelName;

const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const WITH_PREFIX: &str =
    "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const LONGEST: usize = 63;

impl LabelName {
    /// What is wrong with `name` or `prefix/name`, in words.
    pub(crate) fn refuses(key: &str) -> Vec<String> {
        let mut reported = Vec::new();
        let name = match key.split_once('/') {
            None => key,
            Some((_, rest)) if rest.contains('/') => {
                return vec![format!("a valid label key {NAME_PART} {WITH_PREFIX}")];
            }
            Some(("", name)) => {
                reported.push("prefix part must be non-empty".to_owned());
                name
            }
            Some((prefix, name)) => {
                let why = NameRule::Subdomain.refuses(prefix);
                reported.extend(why.map(|why| format!("prefix part {why}")));
                name
            }
        };
        if name.is_empty() {
            reported.push("name part must be non-empty".to_owned());
        } else if name.len() > LONGEST {
            reported.push(format!("name part must be no more than {LONGEST} bytes"));
        }
        if name.is_empty() || !Self::has_the_signs_of_a_name(name) {
            reported.push(format!("name part {NAME_PART}"));
        }
        reported
    }

    /// Whether this is `name` or `prefix/name` as labels, annotations and taints have it.
    pub(crate) fn is_key(key: &str) -> bool {
        Self::refuses(key).is_empty()
    }

    /// Whether this may be the value of a label; empty is one.
    pub(crate) fn is_value(value: &str) -> bool {
        value.is_empty() || (value.len() <= LONGEST && Self::has_the_signs_of_a_name(value))
    }

    fn has_the_signs_of_a_name(text: &str) -> bool {
        let ends = |sign: char| sign.is_ascii_alphanumeric();
        let inside = |sign: char| ends(sign) || matches!(sign, '-' | '_' | '.');
        text.chars().all(inside) && text.starts_with(ends) && text.ends_with(ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_of_their_kind() {
        for (rule, name, fits) in [
            (NameRule::Subdomain, "node-1.example.com", true),
            (NameRule::Subdomain, "Node", false),
            (NameRule::Subdomain, "a..b", false),
            (NameRule::Label, "kube-system", true),
            (NameRule::Label, "a.b", false),
            (NameRule::Label, "-a", false),
            (NameRule::Label1035, "web", true),
            (NameRule::Label1035, "1web", false),
            (NameRule::PathSegment, "system:node", true),
            (NameRule::PathSegment, "a/b", false),
        ] {
            assert_eq!(rule.refuses(name).is_none(), fits, "{rule:?} {name}");
        }
    }

    #[test]
    fn label_keys_have_an_optional_prefix() {
        for (key, fits) in [
            ("app", true),
            ("example.com/app", true),
            ("example.com/", false),
            ("-app", false),
            ("Ex/app", false),
            ("/app", false),
            ("example.com/app/more", false),
            ("", false),
        ] {
            assert_eq!(LabelName::is_key(key), fits, "{key:?}");
        }
    }
}
