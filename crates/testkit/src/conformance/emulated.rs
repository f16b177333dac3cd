//! The test cloud of an emulator in whose state everything can be read and changed at once: two functions, and what the provider
//! is built from.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, ConfigSource, ProviderContext, ProviderFactory, ProviderInput,
};
use cloudkeel_emulation::FaultInjector;
use serde_json::Value;

use super::actual::ActualState;
use super::adapter::{Change, Samples, Stop, TestCloud};

/// An emulated cloud as a [`TestCloud`].
pub struct EmulatedCloud<C> {
    /// The emulator.
    pub cloud: C,
    /// Builds providers that reach it.
    pub factory: Box<dyn ProviderFactory>,
    /// What they are built from, in our own form.
    pub config: Value,
    /// Makes a change. What it cannot play is [`Change::not_playable`].
    pub change: fn(&C, Change<'_>) -> Result<(), Stop>,
    /// Everything that is there.
    pub state: fn(&C) -> ActualState,
    /// What checks use of it.
    pub samples: Samples,
}

#[async_trait]
impl<C: FaultInjector> TestCloud for EmulatedCloud<C> {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let input = ProviderInput {
            config: ConfigSource::Own(self.config.clone()),
            ..ProviderInput::default()
        };
        self.factory.build(input, context).await
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.cloud
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        (self.change)(&self.cloud, change)
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        Ok((self.state)(&self.cloud))
    }

    fn samples(&self) -> Samples {
        self.samples.clone()
    }
}

/// Annotations under a prefix, for [`Samples::annotations`].
pub fn under(
    prefix: &str,
    annotations: &[(&str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    let annotations = annotations.iter().map(|(name, value)| {
        // A few short texts in the whole life of a test.
        let name: &'static str = format!("{prefix}{name}").leak();
        (name, *value)
    });
    annotations.collect()
}
