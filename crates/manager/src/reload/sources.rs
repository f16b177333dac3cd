//! The files and Secrets that a cloud's settings come from. Only hashes of their content are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cloudkeel_api::{CloudProvider, Descriptor, ErrorKind, KeyPlace};
use ring::digest::{SHA256, digest};

use super::secrets::{ClusterSecrets, SecretName};

/// Where settings are read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SettingsSource {
    File(PathBuf),
    Secret(SecretName),
}

/// The hash of the content; `None` if it cannot be read.
type ContentHash = Option<Vec<u8>>;

/// The hashes of all sources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SourceHashes(BTreeMap<SettingsSource, ContentHash>);

/// The files that the environment names in place of a provider's variable.
pub(crate) fn files_named_by(
    env: &BTreeMap<String, String>,
    providers: &[Descriptor],
) -> Vec<PathBuf> {
    let keys = providers.iter().flat_map(|provider| &provider.keys);
    let variables = keys.filter(|key| key.place == KeyPlace::Env);
    let unset = variables.filter(|key| !env.contains_key(key.name));
    let named = unset.filter_map(|key| env.get(&format!("{}_FILE", key.name)));
    named.map(PathBuf::from).collect()
}

/// The sources of a provider's settings.
pub(super) fn sources(
    provider: &dyn CloudProvider,
    secrets: &ClusterSecrets,
    named_files: &[PathBuf],
) -> BTreeSet<SettingsSource> {
    let files = named_files.iter().cloned();
    let files = files.chain(provider.files()).map(SettingsSource::File);
    let secrets = secrets.asked_for().into_iter().map(SettingsSource::Secret);
    files.chain(secrets).collect()
}

impl SourceHashes {
    /// Reads all sources. A Secret that could not be read counts as it was `before`: an unavailable API server says
    /// nothing about a credential.
    pub(super) async fn read(
        sources: &BTreeSet<SettingsSource>,
        secrets: &ClusterSecrets,
        before: &Self,
    ) -> Self {
        let mut hashes = BTreeMap::new();
        for source in sources {
            let content = match source {
                SettingsSource::File(path) => {
                    tokio::fs::read(path).await.ok().map(|bytes| hash(&bytes))
                }
                SettingsSource::Secret(secret) => match secrets.get(secret).await {
                    Ok(data) => Some(hash_of(&data)),
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(_no_answer) => before.0.get(source).cloned().flatten(),
                },
            };
            hashes.insert(source.clone(), content);
        }
        Self(hashes)
    }

    /// The same, with the hashes of sources that are not in it.
    pub(super) fn or(mut self, others: Self) -> Self {
        for (source, content) in others.0 {
            self.0.entry(source).or_insert(content);
        }
        self
    }

    /// The same, with these sources only.
    pub(super) fn only(mut self, sources: &BTreeSet<SettingsSource>) -> Self {
        self.0.retain(|source, _| sources.contains(source));
        self
    }
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA256, bytes).as_ref().to_vec()
}

fn hash_of(data: &BTreeMap<String, cloudkeel_api::Secret>) -> Vec<u8> {
    let mut all = ring::digest::Context::new(&SHA256);
    for (key, value) in data {
        all.update(&hash(key.as_bytes()));
        all.update(&hash(value.expose().as_bytes()));
    }
    all.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{ConfigKey, Documented as _, EnvKey, Secret};

    use super::*;

    #[test]
    fn a_variable_names_a_file_if_a_provider_knows_it_and_it_is_not_set_itself() {
        let descriptor = Descriptor {
            name: "cloud",
            summary: "",
            replaces: &[],
            capabilities: vec![],
            keys: vec![
                EnvKey::<Secret>::new("TOKEN", "").doc(),
                ConfigKey::<String>::new("PLACE", "").doc(),
            ],
        };
        for (case, env, expected) in [
            ("named", &[("TOKEN_FILE", "/t")][..], &["/t"][..]),
            ("not read", &[("TOKEN_FILE", "/t"), ("TOKEN", "")], &[]),
            ("not a variable", &[("PLACE_FILE", "/p")], &[]),
            ("not a provider's", &[("SSL_CERT_FILE", "/c")], &[]),
        ] {
            let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            let files = files_named_by(&env.collect(), std::slice::from_ref(&descriptor));
            let expected: Vec<_> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(files, expected, "{case}");
        }
    }
}
