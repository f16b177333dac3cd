//! vSphere: virtual machines of one or several vCenters as Nodes, with zones from tags.
//!
//! Stands in for `vsphere-cloud-controller-manager`: it reads the same `vsphere.conf` and Secrets. Load balancers and
//! routes of NSX-T are not supported.

mod client;
mod config;
mod error;
mod id;
mod instances;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    Capability, CloudError, Descriptor, Problems, ProviderContext, ProviderId, ProviderInput,
    Recognition, ScopeFingerprint,
};
pub use cloudkeel_toolkit::Wiring;
use cloudkeel_toolkit::{Cloud, CloudFactory, IdError, Provider, Session};
use futures::future::join_all;

use self::client::Api;
pub use self::config::{Config, Family, LabelSettings, NodeNetworks, SecretSource, VCenterConfig};
pub use self::id::{SCHEME, VmUuid};
use self::instances::instances;

/// vSphere.
pub struct VSphere;

/// The virtual machines of some vCenters.
pub type VSphereProvider = Provider<VSphere>;

/// Builds providers of vSphere.
pub type VSphereFactory = CloudFactory<VSphere>;

/// The logins to all vCenters.
struct Logins {
    vcenters: Vec<(String, Arc<Api>)>,
    scope: ScopeFingerprint,
}

#[async_trait]
impl Session for Logins {
    /// One vCenter that does not answer must not keep the others' Nodes waiting.
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        let checks = self.vcenters.iter().map(|(_, api)| api.check());
        let mut failure = None;
        let mut is_any_good = false;
        for ((vcenter, _), answer) in self.vcenters.iter().zip(join_all(checks).await) {
            match answer {
                Ok(()) => is_any_good = true,
                Err(error) => {
                    tracing::warn!(vcenter, err = %error, "a vCenter cannot be used");
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            Some(error) if !is_any_good => Err(error),
            _ => Ok(self.scope.clone()),
        }
    }

    async fn close(&self) {
        join_all(self.vcenters.iter().map(|(_, api)| api.close())).await;
    }
}

#[async_trait]
impl Cloud for VSphere {
    type Config = Config;

    fn descriptor() -> Descriptor {
        Descriptor {
            name: SCHEME,
            summary: "Virtual machines of one or several vCenters, with zones from tags.",
            replaces: &["vsphere-cloud-controller-manager"],
            capabilities: vec![Capability::Instances],
            keys: Config::docs(),
        }
    }

    fn read(input: &ProviderInput) -> Result<Config, Problems> {
        Config::read(input)
    }

    fn recognize(id: &ProviderId) -> Recognition {
        IdError::recognition(VmUuid::read(id))
    }

    fn files(config: &Config) -> Vec<PathBuf> {
        config.files.clone()
    }

    /// Logs in to all vCenters, of which one has to answer.
    async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: Wiring,
    ) -> Result<VSphereProvider, CloudError> {
        let vcenters = config.vcenters.iter();
        let vcenters = vcenters.map(|vcenter| Api::new(vcenter, context, &wiring).map(Arc::new));
        let vcenters: Vec<_> = vcenters.collect::<Result<_, _>>()?;
        let scope = scope_of(config);
        let instances = instances(config, &vcenters, &scope, context);
        let names = config.vcenters.iter().map(VCenterConfig::name);
        let logins = Logins {
            vcenters: names.zip(vcenters).collect(),
            scope,
        };
        if let Err(error) = logins.check().await {
            logins.close().await;
            return Err(error);
        }
        Ok(Provider::new(SCHEME, logins).with_instances(instances))
    }
}

/// What is seen: vCenters, and the datacenters in them.
fn scope_of(config: &Config) -> ScopeFingerprint {
    let vcenter = |vcenter: &VCenterConfig| {
        let mut datacenters = vcenter.datacenters.clone();
        datacenters.sort();
        let name = vcenter.name();
        match datacenters.as_slice() {
            [] => name,
            some => format!("{name} ({})", some.join(", ")),
        }
    };
    let mut parts: Vec<_> = config.vcenters.iter().map(vcenter).collect();
    parts.sort();
    ScopeFingerprint::new(parts.join(", "))
}
