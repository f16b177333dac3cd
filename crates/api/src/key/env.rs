//! Environment variables, as the Go CCMs read them.

use std::collections::BTreeMap;

use super::named::Named;
use super::{Documented, KeyDoc, KeyPlace, KeyValue, Problem, Problems};

/// An environment variable. What "set but empty" means differs from variable to variable in the Go
/// CCMs, so it is part of the key.
#[derive(Debug)]
pub struct EnvKey<T> {
    named: Named<T>,
    empty_is_unset: bool,
    or_file: bool,
}

impl<T: KeyValue> EnvKey<T> {
    /// A variable that is used as it is, even if it is empty.
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            named: Named::new(name, help),
            empty_is_unset: false,
            or_file: false,
        }
    }

    /// The value if the variable is not set.
    #[must_use]
    pub const fn with_default(self, default: &'static str) -> Self {
        Self {
            named: self.named.with_default(default),
            ..self
        }
    }

    /// Treats an empty value as not set.
    #[must_use]
    pub const fn empty_is_unset(mut self) -> Self {
        self.empty_is_unset = true;
        self
    }

    /// If the variable is not set at all, `<NAME>_FILE` may name a file with the value.
    #[must_use]
    pub const fn or_file(mut self) -> Self {
        self.or_file = true;
        self
    }

    /// The variable's name.
    pub const fn name(&self) -> &'static str {
        self.named.name
    }
}

impl<T: KeyValue> Documented for EnvKey<T> {
    fn doc(&self) -> KeyDoc {
        self.named.doc(KeyPlace::Env, false)
    }
}

/// Reads variables from a map, so that tests need not touch the real environment, and collects all problems.
#[derive(Debug)]
pub struct EnvReader<'a> {
    variables: &'a BTreeMap<String, String>,
    problems: Problems,
}

impl<'a> EnvReader<'a> {
    /// Reads from these variables.
    pub const fn new(variables: &'a BTreeMap<String, String>) -> Self {
        Self {
            variables,
            problems: Problems::new(),
        }
    }

    /// The value, else the default, else `None`. Problems are recorded.
    pub fn get<T: KeyValue>(&mut self, key: &EnvKey<T>) -> Option<T> {
        let read = self
            .text_of(key)
            .and_then(|text| key.named.read(text.as_deref(), key.name()));
        self.problems.note(read)?
    }

    /// Records a problem that concerns several variables.
    pub fn note(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// All problems.
    pub fn into_problems(self) -> Problems {
        self.problems
    }

    fn text_of<T: KeyValue>(&self, key: &EnvKey<T>) -> Result<Option<String>, Problem> {
        match self.variables.get(key.name()) {
            Some(text) if text.is_empty() && key.empty_is_unset => {}
            Some(text) => return Ok(Some(text.clone())),
            None => {}
        }
        let file_variable = format!("{}_FILE", key.name());
        match self.variables.get(&file_variable) {
            Some(path) if key.or_file && !self.variables.contains_key(key.name()) => {
                std::fs::read_to_string(path)
                    .map(|text| Some(text.trim().to_owned()))
                    .map_err(|error| {
                        let expected = format!("a readable file: {error}");
                        Problem::unexpected(file_variable, path, expected)
                    })
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    const TOKEN: EnvKey<Secret> = EnvKey::new("TOKEN", "Credential.").or_file();
    const ZONE: EnvKey<String> = EnvKey::new("ZONE", "Zone.")
        .empty_is_unset()
        .with_default("z1");
    const DEBUG: EnvKey<bool> = EnvKey::new("DEBUG", "Chatty.").with_default("false");

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn get<T: KeyValue>(key: &EnvKey<T>, pairs: &[(&str, &str)]) -> (Option<T>, String) {
        let variables = variables(pairs);
        let mut reader = EnvReader::new(&variables);
        let value = reader.get(key);
        (value, reader.into_problems().to_string())
    }

    #[test]
    fn set_but_empty_means_what_the_key_says() {
        assert_eq!(get(&ZONE, &[("ZONE", "")]).0.as_deref(), Some("z1"));
        let (value, problems) = get(&DEBUG, &[("DEBUG", "")]);
        assert_eq!(value, None);
        assert_eq!(problems, "DEBUG: \"\": expected `true` or `false`");
    }

    #[test]
    fn the_plain_variable_wins_over_its_file_even_when_empty() {
        let directory = std::env::temp_dir().join(format!("cloudkeel-env-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("token");
        std::fs::write(&file, " from-file\n").unwrap();
        let path = file.to_str().unwrap();

        let (token, _) = get(&TOKEN, &[("TOKEN_FILE", path)]);
        assert_eq!(token.unwrap().expose(), "from-file");
        let (token, _) = get(&TOKEN, &[("TOKEN_FILE", path), ("TOKEN", "plain")]);
        assert_eq!(token.unwrap().expose(), "plain");
        let (token, _) = get(&TOKEN, &[("TOKEN_FILE", path), ("TOKEN", "")]);
        assert_eq!(token.unwrap().expose(), "");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn an_unreadable_file_is_named() {
        let (_, problems) = get(&TOKEN, &[("TOKEN_FILE", "/does/not/exist")]);
        assert!(
            problems.starts_with("TOKEN_FILE: \"/does/not/exist\": expected a readable file"),
            "{problems}"
        );
        let (value, problems) = get(&ZONE, &[("ZONE_FILE", "/does/not/exist")]);
        assert_eq!((value.as_deref(), problems.as_str()), (Some("z1"), ""));
    }
}
