//! Checks before the first connection; all problems are reported at once.

use std::collections::BTreeMap;
use std::ffi::OsString;

use cloudkeel_api::{FlagValues, ProviderInput, Registry};
use cloudkeel_controllers::ControllerSelection;
use futures::FutureExt as _;

use crate::client::connect_settings;
use crate::config::Setup;
use crate::options::Options;

/// The environment of the process.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The variables that are valid text.
    pub env: BTreeMap<String, String>,
    /// `$KUBECONFIG`.
    pub kubeconfig: Option<OsString>,
}

impl Environment {
    /// The environment of this process. Variables that are not valid text are ignored.
    pub fn current() -> Self {
        let text = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            env: std::env::vars_os().filter_map(text).collect(),
            kubeconfig: std::env::var_os("KUBECONFIG"),
        }
    }

    /// Problems in the clouds' settings, each with the name of its cloud.
    pub(super) fn cloud_problems(
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

    /// A problem with the access to the API server.
    pub(super) fn api_server_problem(&self, options: &Options) -> Option<String> {
        let variable = self.kubeconfig.as_deref();
        // Only files are read, so there is nothing to wait for.
        let settings = connect_settings(&options.api_server, variable).now_or_never()?;
        settings.err().map(|error| error.to_string())
    }
}

/// Problems in `--controllers`, given the controllers that the clouds' providers have.
pub(super) fn controller_problems(
    options: &Options,
    setup: &Setup,
    registry: &Registry,
) -> Vec<String> {
    let clouds = setup.clouds.iter();
    let factories = clouds.filter_map(|entry| registry.get(&entry.provider).ok());
    let provided: Vec<&'static str> = factories
        .flat_map(|factory| factory.controllers())
        .map(|controller| controller.name)
        .collect();
    let selected = ControllerSelection::new(&options.generic.controllers, &provided);
    let errors = selected.err().unwrap_or_default();
    errors
        .iter()
        .map(|error| format!("--controllers: {error}"))
        .collect()
}
