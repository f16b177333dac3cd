//! Builds providers from a name and a configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

use crate::{
    Capability, CloudError, CloudProvider, FlagValues, KeyDoc, Problems, ProvidedController,
    ProvidedWebhook, ProviderContext, ProviderId, REDACTED, Recognition, nearest,
};

/// Where the settings of a cloud come from. They may contain credentials, so they are never printed.
#[derive(Clone, PartialEq, Default)]
pub enum ConfigSource {
    /// Nothing but environment and flags.
    #[default]
    None,
    /// The `config` of a cloud in cloudkeel's own file.
    Own(Value),
    /// A file in the form of the Go CCM, from `--cloud-config`.
    File {
        /// Where it was read from, for messages.
        path: PathBuf,
        /// Its content.
        text: String,
    },
}

impl fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Own(_) => write!(f, "Own({REDACTED})"),
            Self::File { path, .. } => write!(f, "File({path:?}, {REDACTED})"),
        }
    }
}

/// Everything a provider may read its settings from. Values, so that tests touch no globals. Printing shows names
/// only, because a variable or a flag may contain a credential.
#[derive(Clone, Default)]
pub struct ProviderInput {
    /// The configuration.
    pub config: ConfigSource,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The provider's own flags.
    pub flags: FlagValues,
}

impl fmt::Debug for ProviderInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables: Vec<_> = self.env.keys().collect();
        let flags: Vec<_> = self.flags.keys().collect();
        f.debug_struct("ProviderInput")
            .field("config", &self.config)
            .field("env", &variables)
            .field("flags", &flags)
            .finish()
    }
}

/// The description of a provider before it is built: the source of its reference page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// As in `--cloud-provider`.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Names of the Go binaries that this provider replaces, as in `argv[0]`.
    pub replaces: &'static [&'static str],
    /// Its capabilities, if it is configured for them.
    pub capabilities: Vec<Capability>,
    /// All its keys: configuration, environment, flags, annotations.
    pub keys: Vec<KeyDoc>,
}

/// Why a provider could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Settings are missing or wrong; all of them are listed.
    #[error("its settings are wrong:\n{0}")]
    Settings(#[from] Problems),
    /// The settings are valid, but the cloud returned an error.
    #[error(transparent)]
    Cloud(#[from] CloudError),
}

/// Builds providers of one kind. Each cloud's crate exports one.
#[async_trait]
pub trait ProviderFactory: Send + Sync {
    /// The description.
    fn descriptor(&self) -> Descriptor;

    /// Whether the CCM that it replaces allocates Pod CIDRs itself with `--allocate-node-cidrs`. Charts of the
    /// others pass that flag while kube-controller-manager allocates, and two allocators would assign the same range
    /// twice.
    fn allocates_pod_cidrs(&self) -> bool {
        false
    }

    /// Which cloud a provider ID belongs to, as far as that is known before a provider is built: `Ours` for every ID
    /// that one of its providers could recognize. While a cloud is unavailable, its Nodes are found by this. By default
    /// the scheme decides.
    fn recognize(&self, id: &ProviderId) -> Recognition {
        if id.scheme() == Some(self.descriptor().name) {
            Recognition::Ours
        } else {
            Recognition::Foreign
        }
    }

    /// Files that these settings name, so that a cloud that could not be built is tried again when one of them changes.
    fn files(&self, _input: &ProviderInput) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The background controllers that its providers may have, so that they can be selected before any of them is
    /// built.
    fn controllers(&self) -> &'static [ProvidedController] {
        &[]
    }

    /// The webhooks that its providers may have, so that they can be served before any of them is built.
    fn webhooks(&self) -> &'static [ProvidedWebhook] {
        &[]
    }

    /// The flags that the Go binary gives itself, such as `--authentication-skip-lookup`. They hold where the program is
    /// started under its name, unless the command line says otherwise.
    fn preset_flags(&self) -> &'static [&'static str] {
        &[]
    }

    /// More for its reference page, in Markdown: such as the permissions that its credential needs.
    fn reference(&self) -> Option<String> {
        None
    }

    /// All problems in the settings that can be found without a network. Called before anything is connected to, so
    /// that the problems of all clouds are reported at once.
    fn check(&self, _input: &ProviderInput) -> Result<(), Problems> {
        Ok(())
    }

    /// Reads the settings, reports all problems at once, and connects. May be called again with new settings while
    /// an earlier provider is still in use.
    async fn build(
        &self,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError>;
}

/// Why the registry cannot provide a provider.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No provider of that name is compiled in.
    #[error("{}", unknown_text(name, *nearest, known))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// What was probably meant.
        nearest: Option<&'static str>,
        /// Everything there is.
        known: Vec<&'static str>,
    },
    /// A cloud that is known and not supported.
    #[error("cloud provider {name:?} is not supported: {why}")]
    Refused {
        /// Its name.
        name: &'static str,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The provider is there but could not be built.
    #[error("could not init cloud provider {name:?}: {source}")]
    Build {
        /// Its name.
        name: String,
        /// Why.
        source: BuildError,
    },
    /// Two factories have the same name: a programming error, reported at startup.
    #[error("two cloud providers are called {name:?}")]
    Duplicate {
        /// The name.
        name: &'static str,
    },
}

impl RegistryError {
    /// Why the cloud itself did not let the provider be built. `None` if the settings are wrong, which no answer of a
    /// cloud can change.
    pub const fn cloud_error(&self) -> Option<&CloudError> {
        match self {
            Self::Build {
                source: BuildError::Cloud(error),
                ..
            } => Some(error),
            _ => None,
        }
    }
}

fn unknown_text(name: &str, nearest: Option<&str>, known: &[&str]) -> String {
    let hint = nearest.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    let known = match known {
        [] => "none is compiled in".to_owned(),
        known => format!("compiled in: {}", known.join(", ")),
    };
    format!("unknown cloud provider {name:?}{hint} ({known})")
}

/// The providers that are compiled in.
#[derive(Default)]
pub struct Registry {
    factories: BTreeMap<&'static str, Arc<dyn ProviderFactory>>,
    refused: BTreeMap<&'static str, &'static str>,
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more provider. Names are unique.
    pub fn with(mut self, factory: impl ProviderFactory + 'static) -> Result<Self, RegistryError> {
        let name = factory.descriptor().name;
        if self.factories.contains_key(name) {
            return Err(RegistryError::Duplicate { name });
        }
        self.factories.insert(name, Arc::new(factory));
        Ok(self)
    }

    /// The same with a name that is rejected with this reason.
    #[must_use]
    pub fn refusing(mut self, name: &'static str, why: &'static str) -> Self {
        self.refused.insert(name, why);
        self
    }

    /// The names of all that are compiled in, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.factories.keys().copied()
    }

    /// What is known of each, sorted by name.
    pub fn descriptors(&self) -> Vec<Descriptor> {
        self.factories
            .values()
            .map(|factory| factory.descriptor())
            .collect()
    }

    /// The provider that replaces a Go binary of this name.
    pub fn replacing(&self, binary: &str) -> Option<&'static str> {
        self.descriptors()
            .into_iter()
            .find(|descriptor| descriptor.replaces.contains(&binary))
            .map(|descriptor| descriptor.name)
    }

    /// The factory of this name, or an error that names the nearest one.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn ProviderFactory>, RegistryError> {
        if let Some((name, why)) = self.refused.get_key_value(name) {
            return Err(RegistryError::Refused { name, why });
        }
        self.factories
            .get(name)
            .ok_or_else(|| RegistryError::Unknown {
                name: name.to_owned(),
                nearest: nearest(name, self.names()),
                known: self.names().collect(),
            })
    }

    /// The flags that the Go binary of this provider gives itself.
    pub fn preset_flags(&self, name: &str) -> &'static [&'static str] {
        let factory = self.factories.get(name);
        factory.map_or(&[], |factory| factory.preset_flags())
    }

    /// Whether the CCM that one of these providers replaces allocates Pod CIDRs itself.
    pub fn any_allocates_pod_cidrs<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        names
            .into_iter()
            .filter_map(|name| self.factories.get(name))
            .any(|factory| factory.allocates_pod_cidrs())
    }

    /// Builds the provider of this name.
    pub async fn build(
        &self,
        name: &str,
        input: ProviderInput,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, RegistryError> {
        let built = self.get(name)?.build(input, context).await;
        built.map_err(|source| RegistryError::Build {
            name: name.to_owned(),
            source,
        })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests;
