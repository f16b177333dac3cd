//! Reads settings from one of their forms, and collects all problems.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cloudkeel_api::{
    ConfigKey, ConfigReader, EnvKey, EnvReader, KeyValue, Problem, Problems, ProviderInput,
};
use serde_json::Value;

use super::{Ini, Setting, Variable};

type Env = BTreeMap<String, String>;

/// Reads settings from YAML, from the environment or from the file of a Go CCM.
pub struct SettingsReader<'a> {
    form: Form<'a>,
    problems: Problems,
    files: Vec<PathBuf>,
}

enum Form<'a> {
    Yaml {
        config: ConfigReader<'a>,
        env: &'a Env,
        /// The file of a Go CCM: variables win over it, and unknown keys are only logged.
        is_go: bool,
    },
    Env(&'a Env),
    Ini {
        ini: &'a Ini,
        subsection: Option<String>,
        env: &'a Env,
        asked: BTreeSet<(&'static str, &'static str)>,
    },
}

impl<'a> SettingsReader<'a> {
    /// Reads the `config` of a cloud; `env` is where variables are found that it names.
    pub fn yaml(config: &'a Value, env: &'a Env) -> Self {
        Self::new(Form::Yaml {
            config: ConfigReader::new(config),
            env,
            is_go: false,
        })
    }

    /// Reads the YAML file of a Go CCM. Variables win over it where a setting has both.
    pub fn go_yaml(config: &'a Value, env: &'a Env) -> Self {
        Self::new(Form::Yaml {
            config: ConfigReader::new(config),
            env,
            is_go: true,
        })
    }

    /// Reads environment variables.
    pub fn env(env: &'a Env) -> Self {
        Self::new(Form::Env(env))
    }

    /// Reads the file of a Go CCM. Variables win over it where a setting has both.
    pub fn ini(ini: &'a Ini, env: &'a Env) -> Self {
        Self::ini_section(ini, None, env)
    }

    /// Reads from sections of this name alone: `[LoadBalancerClass "name"]`.
    pub fn ini_section(ini: &'a Ini, subsection: Option<&str>, env: &'a Env) -> Self {
        let asked = BTreeSet::new();
        let subsection = subsection.map(str::to_owned);
        Self::new(Form::Ini {
            ini,
            subsection,
            env,
            asked,
        })
    }

    /// Reads our own form if there is one, else the environment. A file of `--cloud-config` is left to the
    /// provider.
    pub fn of(input: &'a ProviderInput) -> Self {
        match &input.config {
            cloudkeel_api::ConfigSource::Own(config) => Self::yaml(config, &input.env),
            _ => Self::env(&input.env),
        }
    }

    fn new(form: Form<'a>) -> Self {
        Self {
            form,
            problems: Problems::new(),
            files: Vec::new(),
        }
    }

    /// The value, else the default, else `None`. What is missing or wrong is noted.
    pub fn get<T: KeyValue>(&mut self, setting: &Setting<T>) -> Option<T> {
        let before = self.problems.iter().len();
        let read = match self.form {
            Form::Yaml { .. } => self.get_yaml(setting),
            Form::Env(env) => match &setting.env {
                Some(variable) => self.get_env(setting, variable, env),
                None => default_of(setting),
            },
            Form::Ini { .. } => self.get_ini(setting),
        };
        let is_given = read.is_some();
        let read = read.filter(|value| !setting.is_unset.is_some_and(|is| is(value)));
        let is_fine = self.problems.iter().len() == before;
        match &read {
            None if setting.required && is_fine => self.note_missing(setting, is_given),
            Some(value) => {
                if let Some((_, expected)) = setting.valid.filter(|(is, _)| !is(value)) {
                    let problem = self.unexpected(setting, expected);
                    self.problems.push(problem);
                }
            }
            None => {}
        }
        read
    }

    /// Notes something that only shows when settings are seen together.
    pub fn problem<T: KeyValue>(&mut self, setting: &Setting<T>, message: impl Into<String>) {
        let problem = Problem::new(self.name(setting), message);
        self.problems.push(problem);
    }

    /// Notes a value that is not shown.
    pub fn unexpected_secret<T: KeyValue>(&mut self, setting: &Setting<T>, expected: &str) {
        let problem = Problem::unexpected_secret(self.name(setting), expected);
        self.problems.push(problem);
    }

    /// Two settings that need each other: both, or neither.
    pub fn both<A: KeyValue, B: KeyValue>(
        &mut self,
        (one, a): (&Setting<A>, Option<A>),
        (other, b): (&Setting<B>, Option<B>),
    ) -> Option<(A, B)> {
        let (one_name, other_name) = (self.name(one), self.name(other));
        match (a, b) {
            (Some(a), Some(b)) => return Some((a, b)),
            (Some(_), None) => self.problem(other, format!("is required with {one_name}")),
            (None, Some(_)) => self.problem(one, format!("is required with {other_name}")),
            (None, None) => {}
        }
        None
    }

    /// What a setting is called in the form that is read.
    pub fn name<T: KeyValue>(&self, setting: &Setting<T>) -> String {
        let name = match &self.form {
            Form::Yaml { .. } => setting.key,
            Form::Env(_) => setting.env.map(|env| env.name),
            Form::Ini { .. } => setting.section_and_key().map(|(_, key)| key),
        };
        let name = name.or(setting.key).unwrap_or_default();
        name.to_owned()
    }

    /// The files that values were read from, besides those that variables name.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// What was read, if nothing is wrong, else everything that is. Unknown keys of our own form are wrong;
    /// those of a Go CCM's file are only logged.
    pub fn finish<C>(self, read: C) -> Result<C, Problems> {
        let Self {
            form, mut problems, ..
        } = self;
        match form {
            Form::Yaml { config, is_go, .. } => {
                let others = config.finish(|| Some(())).err().unwrap_or_default();
                for other in others.iter() {
                    if is_go {
                        tracing::warn!(
                            key = other.key,
                            "unknown key in the file of --cloud-config"
                        );
                    } else {
                        problems.push(other.clone());
                    }
                }
            }
            Form::Env(_) => {}
            Form::Ini {
                ini,
                subsection,
                asked,
                ..
            } => {
                for (section, key) in ini.unknown_in(subsection.as_deref(), &asked) {
                    tracing::warn!(section, key, "unknown key in the --cloud-config file");
                }
            }
        }
        problems.into_result()?;
        Ok(read)
    }

    fn note_missing<T: KeyValue>(&mut self, setting: &Setting<T>, is_given: bool) {
        let message = match (&self.form, setting.file) {
            (Form::Yaml { .. }, _) if is_given => "is empty".to_owned(),
            (Form::Yaml { .. }, Some(file)) => format!("is required, or `{file}`"),
            _ => "is required".to_owned(),
        };
        self.problem(setting, message);
    }

    fn unexpected<T: KeyValue>(&mut self, setting: &Setting<T>, expected: &str) -> Problem {
        let name = self.name(setting);
        match self.text(setting) {
            Some(text) if !T::SECRET => Problem::unexpected(name, text, expected),
            _ => Problem::unexpected_secret(name, expected),
        }
    }

    /// The text of a setting as it is written.
    fn text<T: KeyValue>(&mut self, setting: &Setting<T>) -> Option<String> {
        match &mut self.form {
            Form::Yaml { config, .. } => match raw(config, setting.key?)? {
                Value::String(text) => Some(text),
                other => Some(other.to_string()),
            },
            Form::Env(env) => env.get(setting.env?.name).cloned(),
            Form::Ini {
                ini, subsection, ..
            } => {
                let (section, key) = setting.section_and_key()?;
                ini.last(section, subsection.as_deref(), key)
            }
        }
    }

    fn get_yaml<T: KeyValue>(&mut self, setting: &Setting<T>) -> Option<T> {
        let (Form::Yaml { config, env, is_go }, Some(key)) = (&mut self.form, setting.key) else {
            return default_of(setting);
        };
        let env = *env;
        let wins = setting.env.filter(|it| *is_go && is_set(it, env));
        let mut given = |key: Option<&'static str>| Some((key?, raw(config, key?)?));
        let (plain, file, variable) = (
            given(Some(key)),
            given(setting.file),
            given(setting.variable),
        );
        if let Some(wins) = wins {
            return self.get_env(setting, &wins, env);
        }
        match (plain, file, variable) {
            (None, None, None) => default_of(setting),
            (Some((key, value)), None, None) => self.read_json(key, &value),
            (None, Some((key, path)), None) => {
                let path = self.read_json(key, &path)?;
                match self.read_file(key, path) {
                    Ok(text) => self.parse(key, &text),
                    Err(problem) => self.none(problem),
                }
            }
            (None, None, Some((key, name))) => {
                let name: String = self.read_json(key, &name)?;
                match env.get(&name) {
                    Some(text) if !text.is_empty() => self.parse(key, text.trim()),
                    _ => self.none(Problem::unexpected(key, name, "a variable that is set")),
                }
            }
            (_, file, _) => {
                // What is no text is wrong whatever else is given.
                if let Some((key, path)) = file {
                    let _: String = self.read_json(key, &path)?;
                }
                self.none(several(setting, key))
            }
        }
    }

    fn read_json<T: KeyValue>(&mut self, key: &str, value: &Value) -> Option<T> {
        let expected = match T::from_json(value) {
            Ok(value) => return Some(value),
            Err(expected) => expected,
        };
        let shown = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.none(if T::SECRET {
            Problem::unexpected_secret(key, expected)
        } else {
            Problem::unexpected(key, shown, expected)
        })
    }

    fn get_env<T: KeyValue>(
        &mut self,
        setting: &Setting<T>,
        variable: &Variable,
        env: &Env,
    ) -> Option<T> {
        let is_ignored = variable.only_with.is_some_and(|other| {
            let other = env.get(other);
            other.is_none_or(String::is_empty)
        });
        if is_ignored {
            return default_of(setting);
        }
        let mut reader = EnvReader::new(env);
        let mut key = EnvKey::<T>::new(variable.name, "");
        if !variable.is_strict && setting.file.is_none() && T::TYPE != bool::TYPE {
            key = key.empty_is_unset();
        }
        if setting.file.is_some() {
            key = key.or_file();
        }
        if let Some(default) = setting.env_default_of(variable) {
            key = key.with_default(default);
        }
        let read = reader.get(&key);
        let problems = reader.into_problems();
        if variable.is_lenient && !problems.is_empty() {
            let default = setting.env_default_of(variable);
            let used = default.unwrap_or("nothing");
            tracing::warn!("{problems}; {used} is used");
            return default.and_then(|default| T::parse(default).ok());
        }
        problems.iter().for_each(|p| self.problems.push(p.clone()));
        if variable.is_inverted {
            let on = read.is_some() && env.get(variable.name).is_some_and(|text| is_true(text));
            let contrary = if on { "false" } else { "true" };
            return read.and_then(|_| T::parse(contrary).ok());
        }
        read
    }

    fn get_ini<T: KeyValue>(&mut self, setting: &Setting<T>) -> Option<T> {
        let Form::Ini {
            ini,
            subsection,
            env,
            asked,
        } = &mut self.form
        else {
            return None;
        };
        let (ini, env, subsection) = (*ini, *env, subsection.clone());
        asked.extend(setting.section_and_key());
        if let Some(variable) = setting.env.filter(|it| is_set(it, env)) {
            return self.get_env(setting, &variable, env);
        }
        let Some((section, key)) = setting.section_and_key() else {
            return default_of(setting);
        };
        let values = ini.values(section, subsection.as_deref(), key);
        let Some(last) = values.last() else {
            return default_of(setting);
        };
        let text = match T::TYPE {
            list if list == Vec::<String>::TYPE => values.join(","),
            bool if bool == <bool as KeyValue>::TYPE => Ini::go_bool(last).to_owned(),
            // In Go they are texts: an empty one is the default.
            _ if last.is_empty() && !T::CHOICES.is_empty() => return default_of(setting),
            _ => (*last).to_owned(),
        };
        self.parse(key, &text)
    }

    fn parse<T: KeyValue>(&mut self, name: &str, text: &str) -> Option<T> {
        match T::parse(text) {
            Ok(value) => Some(value),
            Err(expected) if T::SECRET => self.none(Problem::unexpected_secret(name, expected)),
            Err(expected) => self.none(Problem::unexpected(name, text, expected)),
        }
    }

    fn none<T>(&mut self, problem: Problem) -> Option<T> {
        self.problems.push(problem);
        None
    }

    /// What stands in a file, which is one of those to watch from now on.
    fn read_file(&mut self, key: &str, path: String) -> Result<String, Problem> {
        match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => {
                self.files.push(path.into());
                Ok(text.trim().to_owned())
            }
            Ok(_) => Err(Problem::unexpected(key, path, "a file that is not empty")),
            Err(error) => {
                let expected = format!("a readable file: {error}");
                Err(Problem::unexpected(key, path, expected))
            }
        }
    }
}

/// A value of any shape.
struct Raw(Value);

impl KeyValue for Raw {
    const TYPE: &'static str = "value";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.into()))
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        Ok(Self(value.clone()))
    }
}

/// What stands at a path, if anything does.
fn raw(config: &mut ConfigReader<'_>, path: &'static str) -> Option<Value> {
    config
        .get(&ConfigKey::<Raw>::new(path, ""))
        .map(|raw| raw.0)
}

fn default_of<T: KeyValue>(setting: &Setting<T>) -> Option<T> {
    T::parse(setting.default?).ok()
}

fn is_set(variable: &Variable, env: &Env) -> bool {
    env.get(variable.name).is_some_and(|text| !text.is_empty())
}

fn is_true(text: &str) -> bool {
    bool::parse(text).unwrap_or_default()
}

/// The value was given in several places.
fn several<T: KeyValue>(setting: &Setting<T>, key: &str) -> Problem {
    match (setting.file, setting.variable) {
        (Some(file), Some(variable)) => {
            let message = format!("give one of `{key}`, `{file}` and `{variable}`, not several");
            Problem::new(key, message)
        }
        (file, variable) => {
            let other = file.or(variable).unwrap_or(key);
            Problem::new(other, format!("give either this or `{key}`, not both"))
        }
    }
}
