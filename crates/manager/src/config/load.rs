//! From flags, environment and files to the list of clouds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cloudkeel_api::{ConfigSource, Problem, Problems, Registry, RegistryError};
use serde_json::Value;

use super::{BalancerScope, CloudEntry, CloudFile, NodeScope, TargetScope};
use crate::options::GenericOptions;

/// What to run: the clouds, and the file they were read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The clouds, in their order.
    pub clouds: Vec<CloudEntry>,
    /// The file to watch for changes.
    pub file: Option<PathBuf>,
}

/// Why the clouds cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Neither flag nor file nor program name selects a cloud.
    #[error(
        "--cloud-provider cannot be empty: name one of {known}, or give cloudkeel's own configuration file with \
         --cloud-config"
    )]
    NoProvider {
        /// What is compiled in.
        known: String,
    },
    /// No such provider.
    #[error(transparent)]
    Unknown(#[from] RegistryError),
    /// The file cannot be read.
    #[error("--cloud-config: {path:?}: expected a readable file: {source}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is cloudkeel's own, but wrong.
    #[error("{path:?} is wrong:\n{problems}")]
    Wrong {
        /// Which.
        path: PathBuf,
        /// All problems.
        problems: Problems,
    },
    /// The file is cloudkeel's own, and the flag names a provider too.
    #[error(
        "--cloud-provider={flag}: {path:?} already lists its clouds: omit the flag, or give the provider's own \
         file"
    )]
    Both {
        /// The flag.
        flag: String,
        /// The file.
        path: PathBuf,
    },
}

/// Determines which clouds to run. `implied` is the provider that the program's name selects.
pub fn load(
    options: &GenericOptions,
    implied: Option<&str>,
    registry: &Registry,
) -> Result<Setup, ConfigError> {
    let provider = options.cloud_provider.as_deref();
    load_named(provider, options.cloud_config.as_ref(), implied, registry)
}

/// The same for the values of `--cloud-provider` and `--cloud-config`.
pub fn load_named(
    provider: Option<&str>,
    cloud_config: Option<&PathBuf>,
    implied: Option<&str>,
    registry: &Registry,
) -> Result<Setup, ConfigError> {
    let text = cloud_config.map(|path| read(path)).transpose()?;
    let named = provider.filter(|name| *name != "external");
    if let (Some(path), Some(text)) = (cloud_config, &text)
        && let Some(value) = parse_as_ours(path, text)?
    {
        if let Some(flag) = named {
            let (flag, path) = (flag.to_owned(), path.clone());
            return Err(ConfigError::Both { flag, path });
        }
        return read_own(path, &value, registry);
    }
    let provider = named.or(implied).ok_or_else(|| ConfigError::NoProvider {
        known: registry.names().collect::<Vec<_>>().join(", "),
    })?;
    registry.get(provider)?;
    let config = match (cloud_config.cloned(), text) {
        (Some(path), Some(text)) => ConfigSource::File { path, text },
        _ => ConfigSource::None,
    };
    Ok(Setup {
        clouds: vec![only_cloud(provider, config)],
        file: cloud_config.cloned(),
    })
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// The file as a value, if it declares itself as cloudkeel's own. Files of Go CCMs are INI, JSON or YAML; that they
/// do not parse here means nothing.
fn parse_as_ours(path: &Path, text: &str) -> Result<Option<Value>, ConfigError> {
    match serde_saphyr::from_str::<Value>(text) {
        Ok(value) => Ok(CloudFile::is_ours(&value).then_some(value)),
        Err(error) if claims_to_be_ours(text) => Err(ConfigError::Wrong {
            path: path.to_owned(),
            problems: broken(&error).into(),
        }),
        Err(_) => Ok(None),
    }
}

/// Whether a file that cannot be parsed begins like cloudkeel's own.
fn claims_to_be_ours(text: &str) -> bool {
    let versions = text
        .lines()
        .filter_map(|line| line.strip_prefix("apiVersion:"));
    let mut versions = versions.map(|version| version.trim().trim_start_matches(['"', '\'']));
    versions.any(|version| version.starts_with("cloudkeel.dev/"))
}

/// Where the file is broken, but not its content: the parser quotes it, and it may be a secret.
fn broken(error: &serde_saphyr::Error) -> Problem {
    let place = error.location().map_or_else(
        || "the file".to_owned(),
        |at| format!("line {}, column {}", at.line(), at.column()),
    );
    let message = "is not YAML: look for a key that stands twice, a quote or bracket that is not closed, \
                   or lines that are not indented alike";
    Problem::new(place, message)
}

fn read_own(path: &Path, value: &Value, registry: &Registry) -> Result<Setup, ConfigError> {
    let known: Vec<_> = registry.names().collect();
    let file = CloudFile::read(value, &known).map_err(|problems| ConfigError::Wrong {
        path: path.to_owned(),
        problems,
    })?;
    Ok(Setup {
        clouds: file.clouds,
        file: Some(path.to_owned()),
    })
}

/// A cloud as a Go CCM has it: the only one, and the default for everything.
fn only_cloud(provider: &str, config: ConfigSource) -> CloudEntry {
    CloudEntry {
        name: provider.to_owned(),
        provider: provider.to_owned(),
        nodes: NodeScope::default(),
        load_balancers: BalancerScope {
            default: true,
            classes: BTreeSet::new(),
            targets: TargetScope::default(),
        },
        config,
    }
}

#[cfg(test)]
mod tests;
