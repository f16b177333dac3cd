//! The settings of the local cloud.

use std::path::PathBuf;
use std::time::Duration;

use cloudkeel_api::{
    ConfigKey, ConfigReader, ConfigSource, Documented, KeyDoc, Problem, Problems, Secret,
};

use crate::Launched;

const ENDPOINT: ConfigKey<String> = ConfigKey::new(
    "endpoint",
    "The address of the cloud's REST API, such as `http://127.0.0.1:8000`. Without it and a \
     credential, the local cloud of this machine is found, or started in the background.",
);
const TOKEN: ConfigKey<Secret> = ConfigKey::new("token", "The credential.");
const TOKEN_FILE: ConfigKey<String> = ConfigKey::new(
    "tokenFile",
    "A file that holds the credential, in place of `token`.",
);
const PROJECT: ConfigKey<String> = ConfigKey::new(
    "project",
    "The project that the credential must belong to. Without it, whichever it belongs to.",
);
const CLUSTER_MARK: ConfigKey<String> = ConfigKey::new(
    "clusterMark",
    "What tells this cluster's load balancers from others', in place of the cluster's UID.",
);
const TIMEOUT: ConfigKey<Duration> =
    ConfigKey::new("timeout", "How long one answer may take.").with_default("10s");
const POLL_INTERVAL: ConfigKey<Duration> = ConfigKey::new(
    "pollInterval",
    "How often to look at a load balancer that is being built.",
)
.with_default("2s");

/// The settings of the local cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The address of the REST API.
    pub endpoint: String,
    /// The credential.
    pub token: Secret,
    /// The file that it was read from.
    pub token_file: Option<PathBuf>,
    /// The project that the credential must belong to.
    pub project: Option<String>,
    /// What tells this cluster's balancers from others', in place of the cluster's UID.
    pub cluster_mark: Option<String>,
    /// How long one answer may take.
    pub timeout: Duration,
    /// How often to look at a balancer that is being built.
    pub poll_interval: Duration,
}

impl Config {
    /// The settings with their defaults.
    pub fn new(endpoint: impl Into<String>, token: impl Into<Secret>) -> Self {
        Self {
            endpoint: endpoint.into(),
            token: token.into(),
            token_file: None,
            project: None,
            cluster_mark: None,
            timeout: Duration::from_secs(10),
            poll_interval: Duration::from_secs(2),
        }
    }

    /// Whether the settings leave it open which cloud is meant.
    pub(crate) fn names_no_cloud(source: &ConfigSource) -> bool {
        let names = |key: &str| match source {
            ConfigSource::None => false,
            ConfigSource::Own(config) => config.get(key).is_some(),
            // Whatever it says, it is refused.
            ConfigSource::File { .. } => true,
        };
        ![ENDPOINT.path(), TOKEN.path(), TOKEN_FILE.path()]
            .into_iter()
            .any(names)
    }

    /// Reads the settings and tells everything that is wrong with them.
    pub fn read(source: &ConfigSource) -> Result<Self, Problems> {
        Self::read_with(source, None)
    }

    /// The same, with the cloud that was found or started for settings that name none.
    pub(crate) fn read_launched(
        source: &ConfigSource,
        launched: &Launched,
    ) -> Result<Self, Problems> {
        Self::read_with(source, Some(launched))
    }

    fn read_with(source: &ConfigSource, launched: Option<&Launched>) -> Result<Self, Problems> {
        let nothing = serde_json::Value::Null;
        let config = match source {
            ConfigSource::Own(config) => config,
            ConfigSource::None => &nothing,
            ConfigSource::File { path, .. } => {
                let message = format!(
                    "{} cannot be read: the local cloud is set up in cloudkeel's own configuration",
                    path.display()
                );
                return Err(Problem::new("--cloud-config", message).into());
            }
        };
        let mut reader = ConfigReader::new(config);
        let (endpoint, token) = match launched {
            Some(launched) => (
                Some(launched.endpoint.clone()),
                Some((launched.token.clone(), None)),
            ),
            None => (endpoint(&mut reader), token(&mut reader)),
        };
        let project = reader.get(&PROJECT);
        let cluster_mark = reader.get(&CLUSTER_MARK);
        let timeout = positive(&mut reader, &TIMEOUT);
        let poll_interval = positive(&mut reader, &POLL_INTERVAL);
        reader.finish(|| {
            let (token, token_file) = token?;
            Some(Self {
                endpoint: endpoint?,
                token,
                token_file,
                project,
                cluster_mark,
                timeout: timeout?,
                poll_interval: poll_interval?,
            })
        })
    }

    /// Every key, for the reference page.
    pub fn docs() -> Vec<KeyDoc> {
        let keys: [&dyn Documented; 7] = [
            &ENDPOINT,
            &TOKEN,
            &TOKEN_FILE,
            &PROJECT,
            &CLUSTER_MARK,
            &TIMEOUT,
            &POLL_INTERVAL,
        ];
        keys.into_iter().map(Documented::doc).collect()
    }
}

fn endpoint(reader: &mut ConfigReader<'_>) -> Option<String> {
    let endpoint = reader.get(&ENDPOINT);
    if endpoint.is_none() {
        reader.note(Problem::new(ENDPOINT.path(), "is required"));
    }
    endpoint
}

/// The credential, given directly or in a file, and that file.
fn token(reader: &mut ConfigReader<'_>) -> Option<(Secret, Option<PathBuf>)> {
    let problem = match (reader.get(&TOKEN), reader.get(&TOKEN_FILE)) {
        (Some(token), None) if !token.is_empty() => return Some((token, None)),
        (Some(_), None) => Problem::new(TOKEN.path(), "is empty"),
        (None, Some(path)) => match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => {
                return Some((Secret::new(text.trim()), Some(path.into())));
            }
            Ok(_) => Problem::unexpected(TOKEN_FILE.path(), path, "a file that is not empty"),
            Err(error) => Problem::unexpected(
                TOKEN_FILE.path(),
                path,
                format_args!("a readable file: {error}"),
            ),
        },
        (Some(_), Some(_)) => {
            Problem::new(TOKEN_FILE.path(), "give either this or `token`, not both")
        }
        (None, None) => Problem::new(TOKEN.path(), "is required, or `tokenFile`"),
    };
    reader.note(problem);
    None
}

fn positive(reader: &mut ConfigReader<'_>, key: &ConfigKey<Duration>) -> Option<Duration> {
    let value = reader.get(key)?;
    if value.is_zero() {
        reader.note(Problem::unexpected(key.path(), "0s", "more than nothing"));
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(config: Value) -> Result<Config, String> {
        Config::read(&ConfigSource::Own(config)).map_err(|problems| problems.to_string())
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let config = read(json!({"endpoint": "http://127.0.0.1:1", "token": "t"})).unwrap();
        assert_eq!(config, Config::new("http://127.0.0.1:1", "t"));
    }

    #[test]
    fn settings_that_name_no_cloud_mean_the_one_that_was_found() {
        let launched = Launched {
            endpoint: "http://127.0.0.1:7".to_owned(),
            token: Secret::new("t"),
        };
        for (case, config, names_none) in [
            ("nothing", json!({}), true),
            ("something else", json!({"timeout": "3s"}), true),
            (
                "an endpoint",
                json!({"endpoint": "http://127.0.0.1:1"}),
                false,
            ),
            ("a token", json!({"token": "t"}), false),
            ("a file", json!({"tokenFile": "/t"}), false),
        ] {
            let source = ConfigSource::Own(config);
            assert_eq!(Config::names_no_cloud(&source), names_none, "{case}");
        }
        assert!(Config::names_no_cloud(&ConfigSource::None));
        let source = ConfigSource::Own(json!({"timeout": "3s"}));
        let config = Config::read_launched(&source, &launched).unwrap();
        assert_eq!(config.endpoint, launched.endpoint);
        assert_eq!(config.timeout, Duration::from_secs(3));
        let source = ConfigSource::Own(json!({"timeout": "0s"}));
        assert!(Config::read_launched(&source, &launched).is_err());
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let problems = read(json!({"timeout": "0s", "pollInterval": 5, "tokn": "t"})).unwrap_err();
        assert_eq!(
            problems,
            "endpoint: is required\n\
             token: is required, or `tokenFile`\n\
             timeout: \"0s\": expected more than nothing\n\
             pollInterval: \"5\": expected a duration such as `10s`, `1m30s` or `500ms`\n\
             tokn: is not a known key: did you mean `token`?"
        );
    }

    #[test]
    fn the_credential_comes_from_one_place_and_is_not_empty() {
        let folder = std::env::temp_dir().join(format!("cloudkeel-local-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (good, empty) = (folder.join("good"), folder.join("empty"));
        std::fs::write(&good, " from-file\n").unwrap();
        std::fs::write(&empty, "\n").unwrap();
        let with = |keys: Value| {
            let mut config = json!({"endpoint": "http://127.0.0.1:1"});
            for (key, value) in keys.as_object().unwrap() {
                config[key] = value.clone();
            }
            read(config)
        };
        let config = with(json!({"tokenFile": good})).unwrap();
        assert_eq!(config.token.expose(), "from-file");
        assert_eq!(config.token_file, Some(good.clone()));
        for (case, keys, problem) in [
            ("both", json!({"token": "t", "tokenFile": good}), "not both"),
            ("empty", json!({"token": ""}), "token: is empty"),
            (
                "empty file",
                json!({"tokenFile": empty}),
                "a file that is not empty",
            ),
            (
                "no file",
                json!({"tokenFile": "/no/such"}),
                "a readable file",
            ),
            (
                "no text",
                json!({"token": "t", "tokenFile": []}),
                "a single text",
            ),
        ] {
            let problems = with(keys).unwrap_err();
            assert!(problems.contains(problem), "{case}: {problems}");
            assert_eq!(problems.lines().count(), 1, "{case}: {problems}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_foreign_file_is_refused_by_name() {
        let source = ConfigSource::File {
            path: "/etc/cloud.conf".into(),
            text: String::new(),
        };
        let problems = Config::read(&source).unwrap_err().to_string();
        assert!(problems.contains("/etc/cloud.conf"), "{problems}");
    }

    #[test]
    fn the_credential_is_never_printed() {
        let config = Config::new("http://127.0.0.1:1", "hunter2");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
