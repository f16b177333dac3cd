//! The one trait that a cloud implements, and its optional capabilities.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;

use crate::{
    BackgroundController, CloudError, Clusters, Instances, LoadBalancers, NodeFacts, ProviderId,
    Routes, ScopeFingerprint, Volumes, Webhook,
};

/// Which cloud a provider ID belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recognition {
    /// An instance of this cloud and this account.
    Ours,
    /// Well-formed, but another account, project or region of the same kind of cloud.
    OtherAccount {
        /// How that was recognized.
        why: String,
    },
    /// This kind of cloud, but an ID that cannot be parsed.
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// Another kind of cloud, or a Node that this cloud is configured to leave alone.
    Foreign,
}

/// An optional capability of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Capability {
    /// Instances: node initialization and lifecycle.
    Instances,
    /// Services of type LoadBalancer.
    LoadBalancers,
    /// Routes for Pod networks.
    Routes,
    /// Managed clusters.
    Clusters,
    /// Topology labels of disks.
    Volumes,
    /// Admission webhooks.
    Webhooks,
    /// Controllers of its own.
    BackgroundControllers,
}

impl Capability {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Instances,
        Self::LoadBalancers,
        Self::Routes,
        Self::Clusters,
        Self::Volumes,
        Self::Webhooks,
        Self::BackgroundControllers,
    ];

    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instances => "instances",
            Self::LoadBalancers => "load balancers",
            Self::Routes => "routes",
            Self::Clusters => "clusters",
            Self::Volumes => "volumes",
            Self::Webhooks => "webhooks",
            Self::BackgroundControllers => "background controllers",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A cloud. Only the name is required; every capability is optional, and a controller without its capability reports
/// that once and stays off.
#[async_trait]
pub trait CloudProvider: Send + Sync {
    /// The provider's name, as in `--cloud-provider`.
    fn name(&self) -> &str;

    /// Which cloud this ID belongs to. Pure. By default this one if the scheme is the provider's name.
    ///
    /// A Node whose ID is not `Ours` gets no write and causes no call.
    fn recognize(&self, id: &ProviderId) -> Recognition {
        if id.scheme() == Some(self.name()) {
            Recognition::Ours
        } else {
            Recognition::Foreign
        }
    }

    /// Which cloud a Node belongs to, by everything that is known about it. `None`: unknown, so the cloud has to be
    /// asked. Pure. By default the provider ID decides.
    ///
    /// Override where a label or another fact excludes Nodes from this cloud, or where the ID alone does not decide.
    fn recognize_node(&self, node: &NodeFacts) -> Option<Recognition> {
        node.provider_id.as_ref().map(|id| self.recognize(id))
    }

    /// Whether the cloud's resources are labelled with the cluster. Upstream refuses to start if not, unless
    /// `--allow-untagged-cloud` is given.
    fn has_cluster_id(&self) -> bool {
        true
    }

    /// Tests with one cheap read that the credential works, and returns its scope.
    ///
    /// Called at startup, by `doctor`, and before new credentials replace old ones. Idempotent. Errors:
    /// `Unauthenticated`, `Denied`, or whatever keeps the cloud from answering.
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        Ok(ScopeFingerprint::new(self.name()))
    }

    /// Files that its settings were read from, besides the one of `--cloud-config` and those named by variables
    /// ending in `_FILE`, which are known already. When one of them changes, a new provider is built, tested by
    /// [`check`](Self::check), and replaces this one.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Machines.
    fn instances(&self) -> Option<&dyn Instances> {
        None
    }

    /// Load balancers.
    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        None
    }

    /// Routes.
    fn routes(&self) -> Option<&dyn Routes> {
        None
    }

    /// Managed clusters.
    fn clusters(&self) -> Option<&dyn Clusters> {
        None
    }

    /// Disks.
    fn volumes(&self) -> Option<&dyn Volumes> {
        None
    }

    /// Admission webhooks.
    fn webhooks(&self) -> Vec<Arc<dyn Webhook>> {
        Vec::new()
    }

    /// Controllers of its own.
    fn background_controllers(&self) -> Vec<Arc<dyn BackgroundController>> {
        Vec::new()
    }

    /// Closes sessions as the cloud expects it. Called once, when the process stops or a new provider has replaced
    /// this one.
    async fn close(&self) {}

    /// The capabilities of this provider, as it is configured.
    fn capabilities(&self) -> Vec<Capability> {
        Capability::ALL
            .into_iter()
            .filter(|capability| match capability {
                Capability::Instances => self.instances().is_some(),
                Capability::LoadBalancers => self.load_balancers().is_some(),
                Capability::Routes => self.routes().is_some(),
                Capability::Clusters => self.clusters().is_some(),
                Capability::Volumes => self.volumes().is_some(),
                Capability::Webhooks => !self.webhooks().is_empty(),
                Capability::BackgroundControllers => !self.background_controllers().is_empty(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OnlyAName;

    impl CloudProvider for OnlyAName {
        fn name(&self) -> &'static str {
            "plain"
        }
    }

    #[tokio::test]
    async fn a_name_is_enough_to_be_a_cloud() {
        let cloud: &dyn CloudProvider = &OnlyAName;
        assert_eq!(cloud.capabilities(), []);
        assert_eq!(cloud.check().await.unwrap().as_str(), "plain");
        assert!(cloud.has_cluster_id());
    }

    #[test]
    fn an_id_is_ours_by_its_scheme() {
        for (id, expected) in [
            ("plain://1", Recognition::Ours),
            ("plains://1", Recognition::Foreign),
            ("plain", Recognition::Foreign),
        ] {
            assert_eq!(OnlyAName.recognize(&id.parse().unwrap()), expected, "{id}");
        }
    }
}
