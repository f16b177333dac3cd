//! The grammar of a Go command line.

use std::collections::BTreeMap;

use cloudkeel_api::{FlagValues, Problem, Problems};

use super::{Effect, FlagTable};

/// A command line, split into flags and values but not interpreted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// Values by flag name.
    pub values: FlagValues,
    /// Warnings about flags that have no effect or are deprecated.
    pub notes: Vec<String>,
}

/// Reads arguments (without the program's name). All problems are reported at once.
pub fn parse<I, S>(table: &FlagTable, arguments: I) -> Result<CommandLine, Problems>
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let (line, problems) = parse_all(table, arguments);
    problems.into_result()?;
    Ok(line)
}

/// The same, with what could be read besides the problems.
pub fn parse_all<I, S>(table: &FlagTable, arguments: I) -> (CommandLine, Problems)
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let mut reader = Reader {
        table,
        values: BTreeMap::new(),
        problems: Problems::new(),
    };
    let mut arguments = arguments.into_iter().map(Into::into);
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            arguments
                .by_ref()
                .for_each(|rest| reader.refuse_positional(&rest));
        } else {
            reader.read(&argument, &mut arguments);
        }
    }
    let Reader {
        values, problems, ..
    } = reader;
    let notes = notes(table, &values);
    (CommandLine { values, notes }, problems)
}

struct Reader<'a> {
    table: &'a FlagTable,
    values: FlagValues,
    problems: Problems,
}

impl Reader<'_> {
    fn read(&mut self, argument: &str, rest: &mut impl Iterator<Item = String>) {
        match argument.strip_prefix("--") {
            Some(body) => self.read_long(body, rest),
            None => match argument.strip_prefix('-') {
                Some(body) if !body.is_empty() => self.read_short(body, rest),
                _ => self.refuse_positional(argument),
            },
        }
    }

    fn read_long(&mut self, body: &str, rest: &mut impl Iterator<Item = String>) {
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body, None),
        };
        self.take(&name.replace('_', "-"), value, rest);
    }

    /// `-h`, `-v 2`, `-v=2`, `-v2`.
    fn read_short(&mut self, body: &str, rest: &mut impl Iterator<Item = String>) {
        let mut characters = body.chars();
        let name = match characters.next() {
            Some('h') => "help",
            Some('v') => "v",
            _ => return self.refuse_unknown(&format!("-{body}"), None),
        };
        let tail = characters.as_str();
        let value = tail.strip_prefix('=').unwrap_or(tail);
        self.take(name, (!tail.is_empty()).then(|| value.to_owned()), rest);
    }

    fn take(&mut self, name: &str, value: Option<String>, rest: &mut impl Iterator<Item = String>) {
        let Some(row) = self.table.get(name) else {
            return self.refuse_unknown(&format!("--{name}"), self.table.nearest(name));
        };
        let value = match value {
            Some(value) => Some(value),
            None if row.is_switch() => Some("true".to_owned()),
            None => rest.next(),
        };
        match value {
            Some(value) => self.values.entry(name.to_owned()).or_default().push(value),
            None => self.problems.push(Problem::new(
                format!("--{name}"),
                format!("needs a value: expected a {}", row.doc.value_type),
            )),
        }
    }

    fn refuse_unknown(&mut self, name: &str, nearest: Option<&str>) {
        let hint = nearest.map_or_else(String::new, |near| format!(": did you mean --{near}?"));
        self.problems
            .push(Problem::new(name, format!("is not a known flag{hint}")));
    }

    fn refuse_positional(&mut self, argument: &str) {
        self.problems.push(Problem::new(
            argument,
            "is neither a flag nor a command: flags start with `--`",
        ));
    }
}

fn notes(table: &FlagTable, values: &FlagValues) -> Vec<String> {
    values
        .keys()
        .filter_map(|name| match table.get(name)?.effect {
            Effect::Works => None,
            Effect::None(why) => Some(format!("--{name} is accepted but has no effect: {why}")),
            Effect::Deprecated(why) => Some(format!("--{name} is deprecated: {why}")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CommandLine, String> {
        parse(&FlagTable::new(&[]), line.split_whitespace()).map_err(|p| p.to_string())
    }

    fn values(line: &str, name: &str) -> Vec<String> {
        let line = read(line).unwrap();
        line.values.get(name).cloned().unwrap_or_default()
    }

    #[test]
    fn every_spelling_of_pflag_is_read() {
        for (line, name, expected) in [
            ("--cluster-name=a", "cluster-name", "a"),
            ("--cluster-name a", "cluster-name", "a"),
            ("--cluster_name=a", "cluster-name", "a"),
            ("--cluster-name=", "cluster-name", ""),
            ("--cloud-config=/a=b", "cloud-config", "/a=b"),
            ("--leader-elect", "leader-elect", "true"),
            ("--leader-elect=false", "leader-elect", "false"),
            ("-v=4", "v", "4"),
            ("-v 4", "v", "4"),
            ("-v4", "v", "4"),
            ("--v=4", "v", "4"),
            ("-h", "help", "true"),
            ("--version", "version", "true"),
            ("--version=raw", "version", "raw"),
        ] {
            assert_eq!(values(line, name), [expected], "{line}");
        }
    }

    #[test]
    fn repeated_flags_keep_their_order() {
        let given = values(
            "--controllers=* --controllers=-route,service",
            "controllers",
        );
        assert_eq!(given, ["*", "-route,service"]);
    }

    #[test]
    fn a_switch_does_not_eat_what_follows() {
        let problems = read("--leader-elect false").unwrap_err();
        assert_eq!(
            problems,
            "false: is neither a flag nor a command: flags start with `--`"
        );
    }

    #[test]
    fn everything_wrong_is_reported_at_once() {
        let problems =
            read("--claster-name=x stray -q --qqq=1 -- more --cluster-name").unwrap_err();
        assert_eq!(
            problems,
            "--claster-name: is not a known flag: did you mean --cluster-name?\n\
             stray: is neither a flag nor a command: flags start with `--`\n\
             -q: is not a known flag\n\
             --qqq: is not a known flag\n\
             more: is neither a flag nor a command: flags start with `--`\n\
             --cluster-name: is neither a flag nor a command: flags start with `--`"
        );
        let problems = read("--cluster-name").unwrap_err();
        assert_eq!(problems, "--cluster-name: needs a value: expected a text");
    }

    #[test]
    fn flags_without_effect_say_so() {
        let line = read("--external-cloud-volume-plugin=x --cluster-name=c").unwrap();
        assert_eq!(line.notes.len(), 1);
        assert!(
            line.notes[0].contains("--external-cloud-volume-plugin is accepted"),
            "{:?}",
            line.notes
        );
    }
}
