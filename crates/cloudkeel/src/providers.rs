//! The table of providers: the one place to change when a cloud is added.

use cloudkeel_api::{Registry, RegistryError};

/// Every cloud that was compiled in.
pub(crate) fn registry() -> Result<Registry, RegistryError> {
    let registry = Registry::new();
    #[cfg(feature = "hetzner")]
    let registry = registry.with(cloudkeel_provider_hetzner::HetznerFactory::default())?;
    #[cfg(feature = "local")]
    let registry = {
        let arguments = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let launcher = cloudkeel_local_cloud::BackgroundCloud::beside(arguments);
        let factory = cloudkeel_provider_local::LocalFactory::default();
        registry.with(factory.with_launcher(launcher))?
    };
    Ok(registry)
}
