//! What stands in the files and Secrets that a cloud's settings come from. Only hashes are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cloudkeel_api::{CloudProvider, Descriptor, ErrorKind, KeyPlace};
use ring::digest::{SHA256, digest};

use super::secrets::{ClusterSecrets, SecretName};

/// Where settings are read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    File(PathBuf),
    Secret(SecretName),
}

/// What stands there, as a hash. `None`: nothing that can be read.
type Content = Option<Vec<u8>>;

/// What stands in every place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Contents(BTreeMap<Place, Content>);

/// The files that the environment names in place of a variable of these providers.
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

/// The places that the settings of a provider came from.
pub(super) fn places(
    provider: &dyn CloudProvider,
    secrets: &ClusterSecrets,
    named_files: &[PathBuf],
) -> BTreeSet<Place> {
    let files = named_files.iter().cloned();
    let files = files.chain(provider.files()).map(Place::File);
    let secrets = secrets.asked_for().into_iter().map(Place::Secret);
    files.chain(secrets).collect()
}

impl Contents {
    /// Looks at all places. A Secret that could not be looked at counts as it was `before`: that the API
    /// server does not answer is no news about a credential.
    pub(super) async fn read(
        places: &BTreeSet<Place>,
        secrets: &ClusterSecrets,
        before: &Self,
    ) -> Self {
        let mut contents = BTreeMap::new();
        for place in places {
            let content = match place {
                Place::File(path) => tokio::fs::read(path).await.ok().map(|bytes| hash(&bytes)),
                Place::Secret(secret) => match secrets.get(secret).await {
                    Ok(data) => Some(hash_of(&data)),
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(_no_answer) => before.0.get(place).cloned().flatten(),
                },
            };
            contents.insert(place.clone(), content);
        }
        Self(contents)
    }

    /// The same, with what stands in places that are not looked at here.
    pub(super) fn or(mut self, others: Self) -> Self {
        for (place, content) in others.0 {
            self.0.entry(place).or_insert(content);
        }
        self
    }

    /// The same, without other places than these.
    pub(super) fn only(mut self, places: &BTreeSet<Place>) -> Self {
        self.0.retain(|place, _| places.contains(place));
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
