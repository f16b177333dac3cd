//! The configuration files of Go CCMs: INI in the form of gcfg, which is that of git.

use std::collections::BTreeSet;

use cloudkeel_api::{Problem, Problems};

/// A file: sections with keys. Names of sections and keys are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ini {
    sections: Vec<Section>,
}

/// A section: `[Global]`, or `[VirtualCenter "10.0.0.1"]` with a subsection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name, in lower case.
    pub name: String,
    /// The name between quotes, as it is written.
    pub subsection: Option<String>,
    /// Keys in lower case and their values, in their order. A key without a value is `true`.
    pub entries: Vec<(String, String)>,
}

impl Ini {
    /// Reads a file; everything that cannot be read is reported with its line.
    pub fn parse(text: &str) -> Result<Self, Problems> {
        let mut ini = Self::default();
        let mut problems = Problems::new();
        for (number, line) in logical_lines(text) {
            let place = format!("line {number}");
            if let Err(message) = ini.read_line(&line) {
                problems.push(Problem::new(place, message));
            }
        }
        problems.into_result()?;
        Ok(ini)
    }

    /// The sections of this name.
    pub fn sections<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Section> {
        let sections = self.sections.iter();
        sections.filter(move |section| section.name.eq_ignore_ascii_case(name))
    }

    /// The names of subsections, in their order.
    pub fn subsections(&self, name: &str) -> Vec<&str> {
        let mut names = Vec::new();
        let given = self.sections(name).filter_map(|s| s.subsection.as_deref());
        for subsection in given {
            if !names.contains(&subsection) {
                names.push(subsection);
            }
        }
        names
    }

    /// All values of a key, in their order.
    pub fn values(&self, section: &str, subsection: Option<&str>, key: &str) -> Vec<&str> {
        let sections = self.sections(section);
        let sections = sections.filter(|s| s.subsection.as_deref() == subsection);
        let entries = sections.flat_map(|section| &section.entries);
        let entries = entries.filter(|(name, _)| name.eq_ignore_ascii_case(key));
        entries.map(|(_, value)| value.as_str()).collect()
    }

    /// The last value of a key, which is the one that counts.
    pub fn last(&self, section: &str, subsection: Option<&str>, key: &str) -> Option<String> {
        let values = self.values(section, subsection, key);
        values.last().map(|value| (*value).to_owned())
    }

    /// gcfg's spellings of booleans in Go's.
    pub(super) fn go_bool(text: &str) -> &str {
        match text.to_ascii_lowercase().as_str() {
            "yes" | "on" => "true",
            "no" | "off" => "false",
            _ => text,
        }
    }

    /// Sections and keys that are in the file and not among these.
    pub fn unknown(&self, asked: &BTreeSet<(&'static str, &'static str)>) -> Vec<(&str, &str)> {
        unknown_among(self.sections.iter(), asked)
    }

    /// The same for the reader of one subsection, or of what is in none. Other sections have readers of their own.
    pub(super) fn unknown_in(
        &self,
        subsection: Option<&str>,
        asked: &BTreeSet<(&'static str, &'static str)>,
    ) -> Vec<(&str, &str)> {
        let is_asked = |section: &Section| {
            let mut asked = asked.iter();
            asked.any(|(name, _)| name.eq_ignore_ascii_case(&section.name))
        };
        let own = self.sections.iter().filter(|section| {
            let is_own = section.subsection.as_deref() == subsection;
            is_own && (subsection.is_none() || is_asked(section))
        });
        unknown_among(own, asked)
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Ok(());
        }
        if let Some(head) = line.strip_prefix('[') {
            self.sections.push(section(head)?);
            return Ok(());
        }
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim(), unquote(value.trim())?),
            None => (line, "true".to_owned()),
        };
        if key.is_empty()
            || !key
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.".contains(c))
        {
            return Err(format!("{key:?}: expected `key = value` or `[section]`"));
        }
        let Some(section) = self.sections.last_mut() else {
            return Err(format!("{key:?}: expected a `[section]` before it"));
        };
        section.entries.push((key.to_ascii_lowercase(), value));
        Ok(())
    }
}

fn unknown_among<'a>(
    sections: impl Iterator<Item = &'a Section>,
    asked: &BTreeSet<(&'static str, &'static str)>,
) -> Vec<(&'a str, &'a str)> {
    let is_known = |section: &str, key: &str| {
        let mut asked = asked.iter();
        asked.any(|(s, k)| s.eq_ignore_ascii_case(section) && k.eq_ignore_ascii_case(key))
    };
    let entries = sections.flat_map(|section| {
        let entries = section.entries.iter();
        entries.map(|(key, _)| (section.name.as_str(), key.as_str()))
    });
    entries
        .filter(|(section, key)| !is_known(section, key))
        .collect()
}

/// Lines with the number that they begin at; one that ends in a backslash goes on in the next.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let (line, continues) = match line.strip_suffix('\\') {
            Some(begin) if !line.ends_with("\\\\") => (begin, true),
            _ => (line, false),
        };
        match lines.last_mut() {
            Some((_, last)) if goes_on => last.push_str(line),
            _ => lines.push((index + 1, line.to_owned())),
        }
        goes_on = continues;
    }
    lines
}

fn section(head: &str) -> Result<Section, String> {
    let wrong = || format!("\"[{head}\": expected `[name]` or `[name \"subsection\"]`");
    let (head, rest) = head.rsplit_once(']').ok_or_else(wrong)?;
    if !rest.trim().is_empty() && !rest.trim().starts_with(['#', ';']) {
        return Err(wrong());
    }
    let (name, subsection) = match head.split_once('"') {
        Some((name, quoted)) => {
            let inner = quoted.trim_end().strip_suffix('"').ok_or_else(wrong)?;
            let inner = inner.replace("\\\"", "\"").replace("\\\\", "\\");
            (name.trim(), Some(inner))
        }
        None => (head.trim(), None),
    };
    if name.is_empty() {
        return Err(wrong());
    }
    Ok(Section {
        name: name.to_ascii_lowercase(),
        subsection,
        entries: Vec::new(),
    })
}

/// A value without quotes, escapes and trailing comment.
fn unquote(value: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut kept = 0;
    let mut is_quoted = false;
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                is_quoted = !is_quoted;
                kept = text.len();
            }
            '\\' => {
                text.push(match characters.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('b') => '\u{8}',
                    Some(escaped @ ('"' | '\\')) => escaped,
                    _ => return Err("expected one of \\\\ \\\" \\n \\t after a backslash".to_owned()),
                });
                kept = text.len();
            }
            '#' | ';' if !is_quoted => break,
            _ => {
                text.push(character);
                if is_quoted || !character.is_whitespace() {
                    kept = text.len();
                }
            }
        }
    }
    if is_quoted {
        return Err("expected a closing quote".to_owned());
    }
    text.truncate(kept);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = r#"
# the cloud
[Global]
auth-url = "https://cloud/v3"   ; a comment
Username=demo
password = " p#ss;word "
list = a
list = b
use-clouds
path = one\
two

[LoadBalancerClass "Internal LB"]
subnet-id = s-1 # here
[loadbalancerclass "x\"y"]
[GLOBAL]
username = last
"#;

    #[test]
    fn a_file_is_read_as_gcfg_reads_it() {
        let ini = Ini::parse(FILE).unwrap();
        for (case, section, subsection, key, expected) in [
            (
                "quotes and a comment",
                "global",
                None,
                "auth-url",
                vec!["https://cloud/v3"],
            ),
            (
                "any case, sections of one name",
                "Global",
                None,
                "UserName",
                vec!["demo", "last"],
            ),
            (
                "quoted spaces and comment signs",
                "Global",
                None,
                "password",
                vec![" p#ss;word "],
            ),
            ("repeated", "Global", None, "list", vec!["a", "b"]),
            ("no value", "Global", None, "use-clouds", vec!["true"]),
            ("over two lines", "Global", None, "path", vec!["onetwo"]),
            (
                "in a subsection",
                "LoadBalancerClass",
                Some("Internal LB"),
                "subnet-id",
                vec!["s-1"],
            ),
            (
                "not in another",
                "LoadBalancerClass",
                None,
                "subnet-id",
                vec![],
            ),
        ] {
            assert_eq!(ini.values(section, subsection, key), expected, "{case}");
        }
        assert_eq!(
            ini.subsections("LoadBalancerClass"),
            ["Internal LB", "x\"y"]
        );
        assert_eq!(
            ini.last("Global", None, "username").as_deref(),
            Some("last")
        );
    }

    #[test]
    fn everything_that_cannot_be_read_is_reported_with_its_line() {
        let problems = Ini::parse("a = 1\n[x\n[y]\nb = \"c\n= 2\nd = \\q\n").unwrap_err();
        let problems = problems.to_string();
        let lines: Vec<_> = problems
            .lines()
            .map(|l| l.split(':').next().unwrap())
            .collect();
        assert_eq!(
            lines,
            ["line 1", "line 2", "line 4", "line 5", "line 6"],
            "{problems}"
        );
    }

    #[test]
    fn unknown_keys_are_found_and_subsections_are_of_their_section() {
        let ini = Ini::parse(FILE).unwrap();
        let asked = BTreeSet::from([
            ("Global", "auth-url"),
            ("Global", "username"),
            ("Global", "password"),
            ("Global", "list"),
            ("Global", "path"),
            ("LoadBalancerClass", "subnet-id"),
        ]);
        assert_eq!(ini.unknown(&asked), [("global", "use-clouds")]);
    }

    #[test]
    fn readers_of_several_sections_find_only_unknown_keys_of_their_own() {
        let file = "[Global]\nuser = a\ntypo = b\n[VirtualCenter \"10.0.0.1\"]\nport = 1\nprot = 2\n\
                    [Labels \"10.0.0.1\"]\nzone = z\n[VirtualCenter \"10.0.0.2\"]\nother = 3\n";
        let ini = Ini::parse(file).unwrap();
        let global = BTreeSet::from([("Global", "user")]);
        assert_eq!(ini.unknown_in(None, &global), [("global", "typo")]);
        let center = BTreeSet::from([("VirtualCenter", "port")]);
        let unknown = ini.unknown_in(Some("10.0.0.1"), &center);
        assert_eq!(unknown, [("virtualcenter", "prot")]);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[\\[\\]\"\\\\=#; a\n]{0,60}") {
            let _ = Ini::parse(&text);
        }
    }
}
