//! What can be known to be wrong before anything is connected to: reported all at once.

use std::collections::BTreeMap;
use std::ffi::OsString;

use cloudkeel_api::{FlagValues, ProviderFactory, ProviderInput, Registry};
use cloudkeel_controllers::ControllerSelection;
use futures::FutureExt as _;

use crate::client::connect_settings;
use crate::config::Setup;
use crate::options::Options;

/// What the process finds around it.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The environment, as far as it is text.
    pub env: BTreeMap<String, String>,
    /// `$KUBECONFIG`.
    pub kubeconfig: Option<OsString>,
}

impl Surroundings {
    /// Those of this process. A variable that is not text is none of ours.
    pub fn of_this_process() -> Self {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            env: std::env::vars_os().filter_map(text).collect(),
            kubeconfig: std::env::var_os("KUBECONFIG"),
        }
    }

    /// What is wrong with the settings of the clouds, each line with the name of its cloud.
    pub(super) fn wrong_with_clouds(
        &self,
        setup: &Setup,
        flags: &FlagValues,
        registry: &Registry,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        for entry in &setup.clouds {
            let Ok(factory) = registry.get(&entry.provider) else {
                continue;
            };
            let input = ProviderInput {
                config: entry.config.clone(),
                env: self.env.clone(),
                flags: flags.clone(),
            };
            if let Err(problems) = factory.check(&input) {
                let of_cloud = |problem| format!("cloud {}: {problem}", entry.name);
                wrong.extend(problems.iter().map(of_cloud));
            }
        }
        wrong
    }

    /// What is wrong with the way to the API server.
    pub(super) fn wrong_with_api_server(&self, options: &Options) -> Option<String> {
        let variable = self.kubeconfig.as_deref();
        // Only files are read, so there is nothing to wait for.
        let settings = connect_settings(&options.api_server, variable).now_or_never()?;
        settings.err().map(|error| error.to_string())
    }
}

/// What is wrong with `--controllers`, given the controllers that the clouds may bring along.
pub(super) fn wrong_with_controllers(
    options: &Options,
    setup: &Setup,
    registry: &Registry,
) -> Vec<String> {
    let clouds = setup.clouds.iter();
    let factories = clouds.filter_map(|entry| registry.get(&entry.provider).ok());
    let provided: Vec<&'static str> = factories
        .flat_map(ProviderFactory::controllers)
        .copied()
        .collect();
    let selected = ControllerSelection::new(&options.generic.controllers, &provided);
    let errors = selected.err().unwrap_or_default();
    errors
        .iter()
        .map(|error| format!("--controllers: {error}"))
        .collect()
}
