//! What a provider is given when it is built.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Clock, CloudError, ClusterIdentity, ErrorKind, NoEvents, NoObserver, Secret, SharedEvents,
    SharedObserver, SystemClock,
};

/// Kubernetes Secrets, for clouds whose credentials live in one (vSphere, Azure).
#[async_trait]
pub trait SecretStore: Send + Sync {
    /// The data of a Secret. `NotFound` if there is none, `Denied` if it may not be read.
    async fn read(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BTreeMap<String, Secret>, CloudError>;
}

/// A store without Secrets, where there is no cluster to read from.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSecrets;

#[async_trait]
impl SecretStore for NoSecrets {
    async fn read(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BTreeMap<String, Secret>, CloudError> {
        Err(CloudError::new(
            "read secret",
            ErrorKind::NotFound,
            format!("there is no cluster to read the Secret {namespace}/{name} from"),
        ))
    }
}

/// What a provider shares with the rest of the program.
#[derive(Clone)]
pub struct ProviderContext {
    /// The name of this cloud in the configuration; also its metric label.
    pub cloud: String,
    /// The cluster.
    pub cluster: ClusterIdentity,
    /// Where events go.
    pub events: SharedEvents,
    /// Where calls are reported; pass it to the HTTP client.
    pub observer: SharedObserver,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Kubernetes Secrets.
    pub secrets: Arc<dyn SecretStore>,
}

impl ProviderContext {
    /// A context without a cluster behind it: events and calls go nowhere, the clock is real.
    pub fn detached(cloud: impl Into<String>) -> Self {
        Self {
            cloud: cloud.into(),
            cluster: ClusterIdentity {
                name: "kubernetes".to_owned(),
                uid: None,
                pod_cidrs: Vec::new(),
            },
            events: Arc::new(NoEvents),
            observer: Arc::new(NoObserver),
            clock: Arc::new(SystemClock),
            secrets: Arc::new(NoSecrets),
        }
    }
}
