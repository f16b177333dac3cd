//! The table of providers: the one place to change when a cloud is added.

use cloudkeel_api::{Registry, RegistryError};

/// Kubernetes had a provider of this name until 1.15.
const PHOTON: &str = "VMware ended Photon Controller, and no API of it is left to talk to; name the cloud that \
                      the machines are in now";

/// The Go CCM for vSphere has two providers in one program.
const PARAVIRTUAL: &str = "clusters of a vSphere supervisor get their Nodes from its API, which is not spoken here; \
                           clusters on virtual machines of a vCenter use `vsphere`";

/// Every cloud that was compiled in.
pub(crate) fn registry() -> Result<Registry, RegistryError> {
    let registry = Registry::new().refusing("photon", PHOTON);
    let registry = registry.refusing("vsphere-paravirtual", PARAVIRTUAL);
    #[cfg(feature = "aws")]
    let registry = registry.with(cloudkeel_provider_aws::AwsFactory::default())?;
    #[cfg(feature = "digitalocean")]
    let registry =
        registry.with(cloudkeel_provider_digitalocean::DigitalOceanFactory::default())?;
    #[cfg(feature = "hetzner")]
    let registry = registry.with(cloudkeel_provider_hetzner::HetznerFactory::default())?;
    #[cfg(feature = "local")]
    let registry = registry.with(local())?;
    #[cfg(feature = "openstack")]
    let registry = registry.with(cloudkeel_provider_openstack::OpenStackFactory::default())?;
    #[cfg(feature = "vsphere")]
    let registry = registry.with(cloudkeel_provider_vsphere::VSphereFactory::default())?;
    Ok(registry)
}

/// With the server of the local cloud in the program, the provider starts one where none is configured.
#[cfg(feature = "local")]
fn local() -> cloudkeel_provider_local::LocalFactory {
    let factory = cloudkeel_provider_local::LocalFactory::default();
    #[cfg(feature = "local-cloud")]
    let factory = {
        let arguments = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        factory.with_launcher(cloudkeel_local_cloud::BackgroundCloud::beside(arguments))
    };
    factory
}
