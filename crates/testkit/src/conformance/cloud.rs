//! A cloud as checks change and observe it.

use std::ops::Deref;

use ipnet::IpNet;

use super::actual::{ActualBalancer, ActualInstance, ActualRoute, ActualState, ActualVolume};
use super::adapter::{Change, OwnerLabels, Stop, TestCloud};
use super::check::Done;

/// The adapter's cloud, with what checks ask of it in their own words.
pub(super) struct Cloud(pub(super) Box<dyn TestCloud>);

impl Deref for Cloud {
    type Target = dyn TestCloud;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Cloud {
    /// Everything that is there, with instances by their names.
    pub(super) async fn state(&self) -> Result<ActualState, Stop> {
        Ok(self.0.state().await?.by_names())
    }

    /// Adds a running instance, and says what it is.
    pub(super) async fn add_instance(&self, name: &str) -> Result<ActualInstance, Stop> {
        self.change(Change::AddInstance(name)).await?;
        self.instance(name).await
    }

    pub(super) async fn destroy_instance(&self, name: &str) -> Done {
        self.change(Change::DestroyInstance(name)).await
    }

    /// The youngest instance of this name.
    pub(super) async fn instance(&self, name: &str) -> Result<ActualInstance, Stop> {
        let all = self.state().await?.instances.into_iter();
        let found = all.rev().find(|instance| instance.node.name == name);
        found.ok_or_else(|| Stop::not_playable(format!("there is no instance {name}")))
    }

    /// How many calls a list of so many instances takes.
    pub(super) fn list_calls(&self, instances: usize) -> Result<u64, Stop> {
        let size = self.samples().page_size;
        let size = size.ok_or_else(|| Stop::not_playable("its lists have no pages"))?;
        Ok(instances.div_ceil(size).max(1) as u64)
    }

    pub(super) async fn balancers(&self) -> Result<Vec<ActualBalancer>, Stop> {
        Ok(self.state().await?.balancers)
    }

    /// Adds a balancer, and says which ID it has.
    pub(super) async fn add_balancer(
        &self,
        name: &str,
        owner: OwnerLabels,
    ) -> Result<String, Stop> {
        self.change(Change::AddBalancer(name, owner)).await?;
        let mut all = self.balancers().await?.into_iter();
        let found = all.find(|balancer| balancer.name == name);
        let found =
            found.ok_or_else(|| Stop::not_playable(format!("there is no balancer {name}")))?;
        Ok(found.id)
    }

    pub(super) async fn routes(&self) -> Result<Vec<ActualRoute>, Stop> {
        Ok(self.state().await?.routes)
    }

    pub(super) async fn add_route(&self, destination: IpNet) -> Done {
        self.change(Change::AddRoute(destination)).await
    }

    /// Adds a disk, and says what it is.
    pub(super) async fn add_volume(&self) -> Result<ActualVolume, Stop> {
        self.change(Change::AddVolume).await?;
        let volume = self.state().await?.volumes.pop();
        volume.ok_or_else(|| Stop::not_playable("there is no disk"))
    }
}
