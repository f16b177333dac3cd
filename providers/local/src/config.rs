//! The settings of the local cloud.

use std::path::PathBuf;
use std::time::Duration;

use cloudkeel_api::{ConfigSource, Problem, Problems, Secret};
use cloudkeel_toolkit::{Setting, Settings as _, SettingsReader, settings};

use crate::Launched;

settings! {
    /// The settings of the local cloud.
    pub struct Config {
        /// The address of the cloud's REST API, such as `http://127.0.0.1:8000`. Without it and a credential,
        /// the local cloud of this machine is found, or started in the background.
        pub endpoint: String = Setting::key("endpoint").required(),
        /// The credential.
        pub token: Secret = Setting::key("token").file("tokenFile").non_empty().required(),
        /// The project that the credential must belong to. Without it, any project.
        pub project: Option<String> = Setting::key("project"),
        /// The value of the label that marks this cluster's load balancers, in place of the cluster's UID.
        pub cluster_mark: Option<String> = Setting::key("clusterMark"),
        /// The timeout of one request.
        pub timeout: Duration = Setting::key("timeout").default("10s").valid(is_positive, POSITIVE),
        /// How often to check a load balancer that is being built.
        pub poll_interval: Duration = Setting::key("pollInterval").default("2s").valid(is_positive, POSITIVE),
    }
    rest {
        /// The files that the credential was read from.
        pub files: Vec<PathBuf>,
    }
}

const POSITIVE: &str = "more than nothing";

const fn is_positive(duration: &Duration) -> bool {
    !duration.is_zero()
}

impl Config {
    /// The settings with their defaults.
    pub fn new(endpoint: impl Into<String>, token: impl Into<Secret>) -> Self {
        Self {
            endpoint: endpoint.into(),
            token: token.into(),
            ..Self::default()
        }
    }

    /// Whether the settings leave it open which cloud is meant.
    pub(crate) fn names_no_cloud(source: &ConfigSource) -> bool {
        match source {
            ConfigSource::None => true,
            ConfigSource::Own(config) => {
                let mut keys = ["endpoint", "token", "tokenFile"].into_iter();
                !keys.any(|key| config.get(key).is_some())
            }
            // Whatever it says, it is refused.
            ConfigSource::File { .. } => false,
        }
    }

    /// Reads the settings and reports everything that is wrong with them.
    pub fn read(source: &ConfigSource) -> Result<Self, Problems> {
        let (nothing, env) = Default::default();
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
        let mut reader = SettingsReader::yaml(config, &env);
        let config = Self::load(&mut reader);
        let files = reader.files();
        reader.finish(Self { files, ..config })
    }

    /// The same for settings that name no cloud, with the one that was found or started.
    pub(crate) fn read_launched(
        source: &ConfigSource,
        launched: &Launched,
    ) -> Result<Self, Problems> {
        let mut config = match source {
            ConfigSource::Own(config) => config.clone(),
            ConfigSource::None | ConfigSource::File { .. } => serde_json::json!({}),
        };
        if let Some(keys) = config.as_object_mut() {
            let token = launched.token.expose();
            keys.insert("endpoint".to_owned(), launched.endpoint.as_str().into());
            keys.insert("token".to_owned(), token.into());
        }
        Self::read(&ConfigSource::Own(config))
    }
}

#[cfg(test)]
mod tests;
