//! Keys in the configuration of a cloud.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::named::Named;
use super::{Documented, KeyDoc, KeyPlace, KeyValue, Problem, Problems, nearest};

/// A configuration key: its path (`loadBalancer.subnet`), its type, its default, what it does.
#[derive(Debug)]
pub struct ConfigKey<T> {
    named: Named<T>,
    required: bool,
}

impl<T: KeyValue> ConfigKey<T> {
    /// An optional key without a default.
    pub const fn new(path: &'static str, help: &'static str) -> Self {
        Self {
            named: Named::new(path, help),
            required: false,
        }
    }

    /// The value if the key is absent.
    #[must_use]
    pub const fn with_default(self, default: &'static str) -> Self {
        Self {
            named: self.named.with_default(default),
            ..self
        }
    }

    /// The key must be given.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The path from the top of the cloud's `config`.
    pub const fn path(&self) -> &'static str {
        self.named.name
    }
}

impl<T: KeyValue> Documented for ConfigKey<T> {
    fn doc(&self) -> KeyDoc {
        self.named.doc(KeyPlace::Config, self.required)
    }
}

/// Reads a configuration key by key, collects all problems, and rejects unknown keys.
///
/// ```
/// use cloudkeel_api::{ConfigKey, ConfigReader};
/// use serde_json::json;
///
/// const NETWORK: ConfigKey<String> = ConfigKey::new("network", "Private network.").required();
/// const RETRIES: ConfigKey<u32> = ConfigKey::new("retries", "Attempts.").with_default("3");
///
/// let config = json!({"retries": "many", "netwrok": "kube"});
/// let mut reader = ConfigReader::new(&config);
/// let network = reader.get(&NETWORK);
/// let retries = reader.get(&RETRIES);
/// let problems = reader.finish(|| Some((network?, retries?))).unwrap_err();
/// assert_eq!(
///     problems.to_string(),
///     "network: is required\n\
///      retries: \"many\": expected a whole number from 0 to 4294967295\n\
///      netwrok: is not a known key: did you mean `network`?"
/// );
/// ```
#[derive(Debug)]
pub struct ConfigReader<'a> {
    config: &'a Value,
    asked: BTreeSet<&'static str>,
    problems: Problems,
}

impl<'a> ConfigReader<'a> {
    /// Reads from a JSON or YAML object; `null` is an empty one.
    pub fn new(config: &'a Value) -> Self {
        let mut problems = Problems::new();
        if !matches!(config, Value::Null | Value::Object(_)) {
            problems.push(Problem::new("config", "expected a map of keys"));
        }
        Self {
            config,
            asked: BTreeSet::new(),
            problems,
        }
    }

    /// The value, else the default, else `None`. A missing or invalid value is recorded as a problem.
    pub fn get<T: KeyValue>(&mut self, key: &ConfigKey<T>) -> Option<T> {
        let path = key.path();
        self.asked.insert(path);
        let read = match self.find(path) {
            Some(Value::Null) | None if key.required => Err(Problem::new(path, "is required")),
            Some(Value::Null) | None => key.named.read(None, path),
            Some(value) => T::from_json(value)
                .map(Some)
                .map_err(|expected| unexpected::<T>(path, value, &expected)),
        };
        self.problems.note(read)?
    }

    /// Records a problem that concerns several keys.
    pub fn note(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Builds the configuration if there are no problems, else returns all of them.
    pub fn finish<C>(mut self, build: impl FnOnce() -> Option<C>) -> Result<C, Problems> {
        if let Value::Object(fields) = self.config {
            self.note_unknown("", fields);
        }
        let Self { problems, .. } = self;
        problems.into_result()?;
        build().ok_or_else(|| Problem::new("config", "is incomplete").into())
    }

    fn find(&self, path: &str) -> Option<&'a Value> {
        path.split('.')
            .try_fold(self.config, |value, part| value.get(part))
    }

    fn note_unknown(&mut self, place: &str, fields: &'a Map<String, Value>) {
        for (name, value) in fields {
            let path = if place.is_empty() {
                name.clone()
            } else {
                format!("{place}.{name}")
            };
            if self.asked.contains(path.as_str()) {
                continue;
            }
            let inside = format!("{path}.");
            match value {
                Value::Object(fields) if self.asked.iter().any(|k| k.starts_with(&inside)) => {
                    self.note_unknown(&path, fields);
                }
                _ => {
                    let depth = path.split('.').count();
                    let known = self.asked.iter().map(|key| cut(key, depth));
                    let hint = nearest(&path, known)
                        .map_or_else(String::new, |near| format!(": did you mean `{near}`?"));
                    let message = format!("is not a known key{hint}");
                    self.problems.push(Problem::new(path, message));
                }
            }
        }
    }
}

/// The first parts of a key.
fn cut(key: &str, parts: usize) -> &str {
    let end = key.match_indices('.').nth(parts.saturating_sub(1));
    end.and_then(|(end, _)| key.get(..end)).unwrap_or(key)
}

fn unexpected<T: KeyValue>(path: &str, value: &Value, expected: &str) -> Problem {
    if T::SECRET {
        return Problem::unexpected_secret(path, expected);
    }
    let shown = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Problem::unexpected(path, shown, expected)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::Secret;

    const TOKEN: ConfigKey<Secret> = ConfigKey::new("token", "Credential.").required();
    const SUBNET: ConfigKey<String> = ConfigKey::new("loadBalancer.subnet", "Subnet.");
    const WAIT: ConfigKey<Duration> = ConfigKey::new("wait", "Pause.").with_default("10s");

    type Read = (Secret, Option<String>, Duration);

    fn read(config: &Value) -> Result<Read, Problems> {
        let mut reader = ConfigReader::new(config);
        let token = reader.get(&TOKEN);
        let subnet = reader.get(&SUBNET);
        let wait = reader.get(&WAIT);
        reader.finish(|| Some((token?, subnet, wait?)))
    }

    #[test]
    fn a_good_configuration_is_read_with_its_defaults() {
        let config = json!({"token": "t", "loadBalancer": {"subnet": "s"}});
        let (token, subnet, wait) = read(&config).unwrap();
        assert_eq!(token.expose(), "t");
        assert_eq!(subnet.as_deref(), Some("s"));
        assert_eq!(wait, Duration::from_secs(10));
    }

    #[test]
    fn everything_wrong_is_reported_at_once() {
        let config =
            json!({"wait": 5, "loadBalancer": {"subnt": "s"}, "extra": {"a": 1}, "loadBalancr": 1});
        assert_eq!(
            read(&config).unwrap_err().to_string(),
            "token: is required\n\
             wait: \"5\": expected a duration such as `10s`, `1m30s` or `500ms`\n\
             extra: is not a known key\n\
             loadBalancer.subnt: is not a known key: did you mean `loadBalancer.subnet`?\n\
             loadBalancr: is not a known key: did you mean `loadBalancer`?"
        );
    }

    #[test]
    fn a_secret_of_the_wrong_shape_is_not_shown() {
        let problems = read(&json!({"token": ["hunter2"]}))
            .unwrap_err()
            .to_string();
        assert!(!problems.contains("hunter2"), "{problems}");
        assert!(problems.contains("token"), "{problems}");
    }

    #[test]
    fn a_configuration_that_is_no_map_is_refused() {
        let problems = read(&json!([1])).unwrap_err().to_string();
        assert!(
            problems.contains("config: expected a map of keys"),
            "{problems}"
        );
    }

    #[test]
    fn null_counts_as_absent() {
        assert_eq!(
            read(&Value::Null).unwrap_err().to_string(),
            "token: is required"
        );
        assert!(read(&json!({"token": null})).is_err());
    }
}
