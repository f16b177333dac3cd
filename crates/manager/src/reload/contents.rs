//! What stands in the files and Secrets that a cloud's settings come from. Only hashes are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cloudkeel_api::{CloudProvider, ErrorKind};
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

/// The places that the settings of a provider came from.
pub(super) fn places(
    provider: &dyn CloudProvider,
    secrets: &ClusterSecrets,
    env: &BTreeMap<String, String>,
) -> BTreeSet<Place> {
    let named = env.iter().filter(|(name, _)| {
        let plain = name.strip_suffix("_FILE");
        plain.is_some_and(|plain| !plain.is_empty() && !env.contains_key(plain))
    });
    let files = named.map(|(_, path)| PathBuf::from(path));
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
