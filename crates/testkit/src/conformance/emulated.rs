//! The test cloud of an emulator in whose state everything can be read and changed at once: two functions, and what the provider
//! is built from.

use std::sync::Arc;
use std::time::Duration;

use super::actual::ActualState;
use super::adapter::{Change, Samples, Stop, TestCloud};
use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, ConfigSource, ProviderContext, ProviderFactory, ProviderInput,
};
use cloudkeel_emulation::FaultInjector;

/// In this time a balancer is built that another client adds.
const BUILD_TIME: Duration = Duration::from_secs(10);

/// An emulated cloud as a [`TestCloud`].
pub struct EmulatedCloud<C> {
    /// The emulator.
    pub cloud: C,
    /// Builds providers that reach it.
    pub factory: Box<dyn ProviderFactory>,
    /// What they are built from.
    pub config: ConfigSource,
    /// Makes a change to the instance of this ID, if it happens to one. What it cannot play is [`Change::not_playable`].
    pub change: fn(&C, Change<'_>, &str) -> Result<(), Stop>,
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
            config: self.config.clone(),
            ..ProviderInput::default()
        };
        self.factory.build(input, context).await
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.cloud
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let state = (self.state)(&self.cloud);
        let instance = change.instance().map(|name| {
            let found = state.id_of(name);
            found.ok_or_else(|| Stop::not_playable(format!("there is no instance {name}")))
        });
        let instance = instance.transpose()?.unwrap_or_default();
        (self.change)(&self.cloud, change, instance)?;
        if let Change::AddBalancer(..) = change {
            self.wait(BUILD_TIME).await;
        }
        Ok(())
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
