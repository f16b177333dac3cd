//! Annotations of Services: declared once, and read with all problems reported together.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use cloudkeel_api::{AnnotationKey, CloudError, Failures, KeyValue, Problem};

/// Declares every annotation of a cloud once: its constant, its type, its name and its meaning. Names stand under
/// `PREFIX`; those in square brackets are whole.
///
/// ```
/// cloudkeel_toolkit::annotations! {
///     /// The prefix of most of them.
///     pub const PREFIX = "lb.example.com/";
///
///     NAME: String = "name", "The name of the load balancer.";
///     #[unset("")]
///     SIZE: u32 = "size", "How many nodes it has.";
///     #[default("tcp")]
///     PROTOCOL: String = "protocol", "The protocol of every port.";
///     INTERNAL: bool = ["service.beta.kubernetes.io/internal"], "Whether it is only reachable inside.";
/// }
///
/// # fn main() {
/// assert_eq!(NAME.name(), "lb.example.com/name");
/// assert_eq!(INTERNAL.name(), "service.beta.kubernetes.io/internal");
/// assert_eq!(docs().len(), 4);
/// assert_eq!(SIZE.get(&[(SIZE.name().to_owned(), String::new())].into()), Ok(None));
/// let given = [("lb.example.com/nmae".to_owned(), "x".to_owned())].into();
/// assert_eq!(unknown(&given)[0].nearest, Some("lb.example.com/name"));
/// # }
/// ```
#[macro_export]
macro_rules! annotations {
    (
        $(#[$meta:meta])*
        $vis:vis const $prefix_name:ident = $prefix:literal;
        $($(#[default($default:literal)])? $(#[unset($unset:literal)])?
            $(#[choices($($choice:literal),+)])? $(#[range($lowest:literal, $highest:literal)])? $key:ident: $type:ty = $name:tt, $help:literal;)+
    ) => {
        $(#[$meta])*
        $vis const $prefix_name: &str = $prefix;

        $(
            #[doc = concat!("Service annotation `", $crate::annotation_name!($prefix, $name), "`.")]
            $vis const $key: $crate::reexport::cloudkeel_api::AnnotationKey<$type> =
                $crate::reexport::cloudkeel_api::AnnotationKey::new(
                    $crate::annotation_name!($prefix, $name),
                    $help,
                )$(.with_default($default))?$(.with_unset($unset))?$(.with_choices(&[$($choice),+]))?$(.with_range($lowest, $highest))?;
        )+

        /// Every annotation, for the reference page and for finding typos.
        pub(crate) fn docs() -> ::std::vec::Vec<$crate::reexport::cloudkeel_api::KeyDoc> {
            use $crate::reexport::cloudkeel_api::Documented as _;
            ::std::vec![$($key.doc()),+]
        }

        /// Annotations under the prefix that are not in the table.
        pub(crate) fn unknown(
            given: &::std::collections::BTreeMap<String, String>,
        ) -> ::std::vec::Vec<$crate::reexport::cloudkeel_api::UnknownAnnotation> {
            $crate::reexport::cloudkeel_api::unknown_annotations($prefix, &docs(), given)
        }
    };
}

/// The whole name of an annotation.
#[doc(hidden)]
#[macro_export]
macro_rules! annotation_name {
    ($prefix:literal, [$name:literal]) => {
        $name
    };
    ($prefix:literal, $name:literal) => {
        concat!($prefix, $name)
    };
}

/// Reads annotations and gathers everything that is wrong. `P` is the part of a balancer that an annotation is
/// about, so that what cannot be read leaves only that part as it is.
///
/// A value that cannot be read is never the default. Where a Go CCM ignores such a value, [`lenient`](Self::lenient)
/// does the same and notes it.
#[derive(Debug)]
pub struct AnnotationReader<'a, P> {
    annotations: &'a BTreeMap<String, String>,
    part: P,
    unread: Vec<(P, Problem)>,
    /// What is asked for and cannot be done, for people.
    pub unsupported: Vec<String>,
    /// What is asked for and cannot change any more.
    pub fixed: Vec<Failures>,
    /// What is wrong although it can be read, such as two annotations that exclude each other.
    pub problems: Vec<String>,
}

impl<'a, P: Copy + PartialEq> AnnotationReader<'a, P> {
    /// Reads these annotations, beginning with this part.
    pub const fn new(annotations: &'a BTreeMap<String, String>, part: P) -> Self {
        Self {
            annotations,
            part,
            unread: Vec::new(),
            unsupported: Vec::new(),
            fixed: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// What is read from here on is about this part.
    pub const fn about(&mut self, part: P) -> &mut Self {
        self.part = part;
        self
    }

    /// The value, else the annotation's default.
    pub fn get<T: KeyValue>(&mut self, key: &AnnotationKey<T>) -> Option<T> {
        key.get(self.annotations).unwrap_or_else(|problem| {
            self.unread.push((self.part, problem));
            None
        })
    }

    /// Whether a switch is on. Without the annotation it is off.
    pub fn is_on(&mut self, key: &AnnotationKey<bool>) -> bool {
        self.get(key).unwrap_or(false)
    }

    /// A text that is not empty.
    pub fn text(&mut self, key: &AnnotationKey<String>) -> Option<String> {
        self.get(key).filter(|text| !text.is_empty())
    }

    /// A text without the spaces around it, if that is not empty.
    pub fn trimmed(&mut self, key: &AnnotationKey<String>) -> Option<String> {
        let text = self.get(key).map(|text| text.trim().to_owned());
        text.filter(|text| !text.is_empty())
    }

    /// A text, else the configured default, which an empty text takes away.
    pub fn text_or(
        &mut self,
        key: &AnnotationKey<String>,
        default: Option<&String>,
    ) -> Option<String> {
        match self.get(key) {
            Some(text) => Some(text).filter(|text| !text.is_empty()),
            None => default.cloned(),
        }
    }

    /// The value, or `None` for one that cannot be read, which is only noted.
    pub fn lenient<T: KeyValue>(&mut self, key: &AnnotationKey<T>) -> Option<T> {
        key.get(self.annotations).unwrap_or_else(|problem| {
            self.unsupported
                .push(format!("read {problem}: it is ignored"));
            None
        })
    }

    /// Whole seconds, the rest of which is cut off; less than one is the least that the cloud takes, which is
    /// noted.
    pub fn seconds(&mut self, key: &AnnotationKey<Duration>, least: u64) -> Option<u64> {
        let asked = self.get(key)?;
        if asked.as_secs() > 0 {
            return Some(asked.as_secs());
        }
        let (name, asked) = (key.name(), cloudkeel_api::format_go_duration(asked));
        let used = format!("do {name}: {asked}, so {least}s is used");
        self.unsupported.push(used);
        Some(least)
    }

    /// What a thing is that cannot change: what it is `now`, if it is there, else what is asked for, else the default. If
    /// something else is asked for than it is, that is [noted](Self::fixed).
    pub fn keep<T: KeyValue + AsRef<str> + Copy>(
        &mut self,
        key: &AnnotationKey<T>,
        asked: Option<T>,
        default: T,
        now: &str,
    ) -> String {
        let asked = asked.as_ref().map(AsRef::as_ref);
        let kept = match now {
            "" => asked.unwrap_or(default.as_ref()),
            now => now,
        };
        if let Some(asked) = asked.filter(|asked| *asked != kept) {
            let name = key.name();
            let fixed = format!("{name}: {asked:?}: it is {kept}, which cannot change");
            self.fixed.push(Failures::invalid(fixed));
        }
        kept.to_owned()
    }

    /// Notes what is wrong with an annotation although it can be read.
    pub fn problem<T: KeyValue>(&mut self, key: &AnnotationKey<T>, why: impl fmt::Display) {
        self.problems.push(format!("{}: {why}", key.name()));
    }

    /// Notes that an annotation is required with another one, in words, if it is not given.
    pub fn require<T: KeyValue>(
        &mut self,
        key: &AnnotationKey<T>,
        given: Option<T>,
        with: &str,
    ) -> Option<T> {
        if given.is_none() {
            self.problem(key, format_args!("is required with {with}"));
        }
        given
    }

    /// Everything that is wrong, in words: what was read and is wrong, then what could not be read.
    pub fn into_problems(mut self) -> Vec<String> {
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(self.into_unread().messages());
        problems
    }

    /// The same, to be reported.
    pub fn into_failures(self) -> Vec<Failures> {
        let problems = self.into_problems().into_iter();
        problems.map(Failures::invalid).collect()
    }

    /// What could not be read, and which part it is about.
    pub fn into_unread(self) -> Unread<P> {
        Unread(self.unread)
    }
}

/// Annotations that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unread<P>(Vec<(P, Problem)>);

impl<P: Copy + PartialEq> Unread<P> {
    /// Whether one of them is about this part.
    pub fn concerns(&self, part: P) -> bool {
        self.0.iter().any(|(unread, _)| *unread == part)
    }

    /// Each of them in words.
    pub fn messages(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(_, problem)| problem.to_string())
    }

    /// All of them as one error: nothing is created by guessing.
    pub fn check(&self) -> Result<(), CloudError> {
        let problems: Vec<_> = self.messages().collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(CloudError::invalid("read annotations", problems.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::annotations! {
        /// The prefix.
        pub(crate) const PREFIX = "x/";

        NAME: String = "name", "A name.";
        #[default("80")]
        PORT: u16 = "port", "A port.";
        ON: bool = ["y/on"], "A switch.";
        PAUSE: Duration = "pause", "A pause.";
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Part {
        Whole,
        Ports,
    }

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn values_defaults_and_empty_texts() {
        let default = Some("usual".to_owned());
        for (case, pairs, text, or_default) in [
            ("nothing", &[][..], None, Some("usual")),
            ("empty", &[("x/name", "")], None, None),
            ("a name", &[("x/name", "n")], Some("n"), Some("n")),
        ] {
            let annotations = given(pairs);
            let mut reader = AnnotationReader::new(&annotations, Part::Whole);
            assert_eq!(reader.text(&NAME).as_deref(), text, "{case}");
            let found = reader.text_or(&NAME, default.as_ref());
            assert_eq!(found.as_deref(), or_default, "{case}");
            assert_eq!(reader.get(&PORT), Some(80), "{case}");
        }
    }

    #[test]
    fn everything_that_cannot_be_read_is_reported_with_its_part() {
        let annotations = given(&[("x/port", "many"), ("y/on", "perhaps"), ("x/pause", "1ms")]);
        let mut reader = AnnotationReader::new(&annotations, Part::Whole);
        assert_eq!(reader.lenient(&ON), None);
        assert_eq!(reader.seconds(&PAUSE, 3), Some(3));
        assert_eq!(reader.unsupported.len(), 2);
        assert_eq!(reader.about(Part::Ports).get(&PORT), None);
        let unread = reader.into_unread();
        assert!(unread.concerns(Part::Ports) && !unread.concerns(Part::Whole));
        let error = unread.check().unwrap_err();
        assert!(error.message().contains("x/port"), "{error}");
    }

    #[test]
    fn what_is_wrong_comes_before_what_cannot_be_read() {
        let annotations = given(&[("x/port", "many"), ("y/on", "true")]);
        let mut reader = AnnotationReader::new(&annotations, Part::Whole);
        assert!(reader.is_on(&ON));
        assert_eq!(reader.get(&PORT), None);
        reader.problems.push("x/name: is required".to_owned());
        let problems = reader.into_problems();
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[0], "x/name: is required");
        assert!(problems[1].starts_with("x/port: "), "{problems:?}");
    }

    #[test]
    fn what_cannot_change_is_as_it_is_and_what_else_is_asked_for_is_noted() {
        crate::keywords! {
            enum Size (exact) {
                Small = "small",
                Large = "large",
            }
        }
        const SIZE: AnnotationKey<Size> = AnnotationKey::new("x/size", "A size.");
        let noted = Failures::invalid("x/size: \"large\": it is small, which cannot change");
        for (case, asked, now, kept, noted) in [
            ("nothing", None, "", "small", vec![]),
            ("a new one", Some(Size::Large), "", "large", vec![]),
            ("as it is", Some(Size::Large), "large", "large", vec![]),
            ("nothing, and it is there", None, "large", "large", vec![]),
            ("another", Some(Size::Large), "small", "small", vec![noted]),
        ] {
            let annotations = BTreeMap::new();
            let mut reader = AnnotationReader::new(&annotations, Part::Whole);
            let found = reader.keep(&SIZE, asked, Size::Small, now);
            assert_eq!((found.as_str(), reader.fixed), (kept, noted), "{case}");
        }
    }

    #[test]
    fn what_another_annotation_needs_is_required() {
        let annotations = given(&[("x/name", " ")]);
        let mut reader = AnnotationReader::new(&annotations, Part::Whole);
        let name = reader.trimmed(&NAME);
        assert_eq!(reader.require(&NAME, name, "y/on: true"), None);
        assert_eq!(reader.require(&PORT, Some(80), "y/on: true"), Some(80));
        reader.problem(&ON, "not with x/port");
        let expected = [
            "x/name: is required with y/on: true",
            "y/on: not with x/port",
        ];
        assert_eq!(reader.into_problems(), expected);
    }

    #[test]
    fn typos_are_found_under_the_prefix_only() {
        let found = unknown(&given(&[("x/prot", "1"), ("y/no", "1"), ("z/name", "1")]));
        let found: Vec<_> = found.iter().map(|a| (a.name.as_str(), a.nearest)).collect();
        assert_eq!(found, [("x/prot", Some("x/port"))]);
        assert_eq!(docs().len(), 4);
        assert_eq!(PREFIX, "x/");
    }
}
