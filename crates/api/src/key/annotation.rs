//! Annotations of a Service or a Node.

use std::collections::BTreeMap;

use super::named::Named;
use super::{Documented, KeyDoc, KeyPlace, KeyValue, Problem, nearest};

/// An annotation: its name, its type, its default and what it does.
///
/// ```
/// use std::collections::BTreeMap;
/// use cloudkeel_api::AnnotationKey;
///
/// const PROXY: AnnotationKey<bool> =
///     AnnotationKey::new("example.com/proxy-protocol", "Send PROXY v2 to the targets.")
///         .with_default("false");
///
/// let mut annotations = BTreeMap::new();
/// assert_eq!(PROXY.get(&annotations), Ok(Some(false)));
/// annotations.insert("example.com/proxy-protocol".to_owned(), "yes".to_owned());
/// assert_eq!(
///     PROXY.get(&annotations).unwrap_err().to_string(),
///     "example.com/proxy-protocol: \"yes\": expected `true` or `false`",
/// );
/// ```
#[derive(Debug)]
pub struct AnnotationKey<T> {
    named: Named<T>,
    unset: Option<&'static str>,
    choices: &'static [&'static str],
    range: Option<(u64, u64)>,
}

impl<T: KeyValue> AnnotationKey<T> {
    /// A key without a default.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            named: Named::new(name, help),
            unset: None,
            choices: T::CHOICES,
            range: None,
        }
    }

    /// The value if the annotation is absent.
    #[must_use]
    pub const fn with_default(self, default: &'static str) -> Self {
        Self {
            named: self.named.with_default(default),
            ..self
        }
    }

    /// A text that counts as no annotation, such as an empty one.
    #[must_use]
    pub const fn with_unset(mut self, text: &'static str) -> Self {
        self.unset = Some(text);
        self
    }

    /// The values that make sense, for its documentation, where it is read as any text.
    #[must_use]
    pub const fn with_choices(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
        self
    }

    /// The lowest and the highest number that the cloud takes, for its documentation.
    #[must_use]
    pub const fn with_range(mut self, lowest: u64, highest: u64) -> Self {
        self.range = Some((lowest, highest));
        self
    }

    /// The full name.
    pub const fn name(&self) -> &'static str {
        self.named.name
    }

    /// The value, else the default, else `None`. An invalid value is a problem, never the default.
    pub fn get(&self, annotations: &BTreeMap<String, String>) -> Result<Option<T>, Problem> {
        let given = annotations.get(self.name()).map(String::as_str);
        let given = given.filter(|text| self.unset != Some(*text));
        self.named.read(given, self.name())
    }
}

impl<T: KeyValue> AnnotationKey<T> {
    /// The value, where one that cannot be read counts as absent: another reader reports it.
    pub fn readable(&self, annotations: &BTreeMap<String, String>) -> Option<T> {
        self.get(annotations).ok().flatten()
    }
}

impl<T: KeyValue> Documented for AnnotationKey<T> {
    fn doc(&self) -> KeyDoc {
        KeyDoc {
            choices: self.choices,
            range: self.range,
            ..self.named.doc(KeyPlace::Annotation, false)
        }
    }
}

/// An annotation under a provider's prefix that the provider does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownAnnotation {
    /// As it is written.
    pub name: String,
    /// What was probably meant.
    pub nearest: Option<&'static str>,
}

/// Annotations that start with `prefix` but are not in the table: typos that would otherwise be ignored silently.
///
/// Some in the table may stand under another prefix, which others use too. Under those only what is spelt nearly like
/// one in the table counts.
pub fn unknown_annotations(
    prefix: &str,
    table: &[KeyDoc],
    annotations: &BTreeMap<String, String>,
) -> Vec<UnknownAnnotation> {
    let unknown = annotations.keys().filter(|name| {
        let mut known = table.iter().map(|doc| doc.name);
        !known.any(|known| known == name.as_str())
    });
    let reported = unknown.filter_map(|name| {
        let is_ours = name.starts_with(prefix);
        let nearest = if is_ours {
            nearest_annotation(prefix, name, table)
        } else {
            let (domain, _) = name.split_once('/')?;
            nearest_annotation(&format!("{domain}/"), name, table)
        };
        (is_ours || nearest.is_some()).then(|| UnknownAnnotation {
            name: name.clone(),
            nearest,
        })
    });
    reported.collect()
}

/// Compares the part after the prefix, because the prefix alone would make all of them similar.
fn nearest_annotation(prefix: &str, name: &str, table: &[KeyDoc]) -> Option<&'static str> {
    let tail = |full: &'static str| full.strip_prefix(prefix);
    let meant = nearest(
        name.strip_prefix(prefix)?,
        table.iter().filter_map(|doc| tail(doc.name)),
    )?;
    table
        .iter()
        .map(|doc| doc.name)
        .find(|full| tail(full) == Some(meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: AnnotationKey<String> = AnnotationKey::new("lb.example.com/type", "Size.");
    const PORT: AnnotationKey<u16> =
        AnnotationKey::new("lb.example.com/health-check-port", "Port.").with_default("80");

    fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn absent_is_the_default_and_wrong_is_a_problem() {
        assert_eq!(TYPE.get(&annotations(&[])), Ok(None));
        assert_eq!(PORT.get(&annotations(&[])), Ok(Some(80)));
        assert_eq!(
            PORT.get(&annotations(&[(PORT.name(), "8080")])),
            Ok(Some(8080))
        );
        assert!(PORT.get(&annotations(&[(PORT.name(), "")])).is_err());
    }

    #[test]
    fn under_a_prefix_of_others_only_what_is_nearly_ours_is_found() {
        const ELSEWHERE: AnnotationKey<bool> =
            AnnotationKey::new("service.example.org/lb-internal", "Internal.");
        let table = [TYPE.doc(), ELSEWHERE.doc()];
        let given = annotations(&[
            ("service.example.org/lb-internel", "true"),
            ("service.example.org/something-else", "true"),
            ("lb-internel", "true"),
        ]);
        let found = UnknownAnnotation {
            name: "service.example.org/lb-internel".into(),
            nearest: Some("service.example.org/lb-internal"),
        };
        assert_eq!(
            unknown_annotations("lb.example.com/", &table, &given),
            [found]
        );
    }

    #[test]
    fn typos_under_our_prefix_are_found_and_others_left_alone() {
        let table = [TYPE.doc(), PORT.doc()];
        let given = annotations(&[
            ("lb.example.com/type", "x"),
            ("lb.example.com/healthcheck-port", "1"),
            ("lb.example.com/zzz", "1"),
            ("other.io/anything", "1"),
        ]);
        assert_eq!(
            unknown_annotations("lb.example.com/", &table, &given),
            [
                UnknownAnnotation {
                    name: "lb.example.com/healthcheck-port".into(),
                    nearest: Some("lb.example.com/health-check-port"),
                },
                UnknownAnnotation {
                    name: "lb.example.com/zzz".into(),
                    nearest: None,
                },
            ]
        );
    }
}
