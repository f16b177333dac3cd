//! Droplets.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, Doubt, Instance, InstanceState, NodeAddress, NodeFacts, Priority, ProviderId,
    ScopeFingerprint,
};
use cloudkeel_toolkit::{
    EventRecorder, InstanceSource, Listed, ListedResources, LookupError, Search,
};

use crate::client::Api;
use crate::id::{droplet_id, provider_id};
use crate::wire::Droplet;

/// The reason of the event about a Node that several droplets could be.
const LOOKUP_FAILED: &str = "InstanceLookupFailed";

/// The droplets as they were last listed, for instances and targets.
pub(crate) type Droplets = ListedResources<Api, Droplet>;

/// Droplets as instances.
pub(crate) struct DropletInstances {
    pub(crate) droplets: Arc<Droplets>,
    pub(crate) scope: ScopeFingerprint,
    pub(crate) events: Arc<EventRecorder>,
}

#[async_trait]
impl InstanceSource for DropletInstances {
    type Id = u64;
    type Item = Droplet;

    fn scope(&self) -> ScopeFingerprint {
        self.scope.clone()
    }

    fn parse_id(&self, id: &ProviderId) -> Result<u64, String> {
        droplet_id(id).map_err(|error| error.to_string())
    }

    /// Addresses in the Go CCM's order.
    fn instance(&self, droplet: &Droplet) -> Instance {
        let private = droplet.networks.private_v4();
        let hostname = std::iter::once(NodeAddress::hostname(&droplet.name));
        let addresses = hostname.chain(private.map(NodeAddress::internal));
        let public = droplet.networks.public();
        let ips = private.into_iter().chain(droplet.networks.public());
        Instance {
            state: match droplet.status.as_str() {
                "active" => InstanceState::Running,
                "off" => InstanceState::ShutDown,
                "new" => InstanceState::Changing,
                _ => InstanceState::Unknown,
            },
            instance_type: Some(droplet.size_slug.clone()),
            region: Some(droplet.region.slug.clone()),
            addresses: addresses.chain(public.map(NodeAddress::external)).collect(),
            // A Node may be called by an address.
            aliases: ips.map(|ip| ip.to_string()).collect(),
            not_ready: private
                .is_none()
                .then(|| "the droplet has no private IPv4 address".to_owned()),
            ..Instance::new(provider_id(droplet.id), &droplet.name)
        }
    }

    async fn list(&self) -> Result<Listed<Droplet>, CloudError> {
        let items = self.droplets.fresh().await?.to_vec();
        let scope = self.scope.clone();
        Ok(Listed { scope, items })
    }

    async fn get(&self, id: &u64) -> Result<Droplet, LookupError> {
        let droplet: Droplet = self.droplets.api.get(id, Priority::Urgent).await?;
        self.droplets.record(std::slice::from_ref(&droplet));
        Ok(droplet)
    }

    async fn search(&self, node: &NodeFacts) -> Result<Search<Droplet>, CloudError> {
        let api = &self.droplets.api;
        let mut request = api.list::<Droplet>().priority(Priority::Urgent);
        // An address is found in no name.
        if node.name.parse::<std::net::IpAddr>().is_err() {
            request = request.query("name", &node.name);
        }
        let mut droplets: Vec<Droplet> = api.all(request).await?;
        droplets.retain(|droplet| self.instance(droplet).answers_to(&node.name));
        self.droplets.record(&droplets);
        Ok(Search::by_name(node, droplets))
    }

    fn ambiguous(&self, node: &NodeFacts, doubt: &Doubt) {
        self.events.warn(node, LOOKUP_FAILED, doubt.to_string());
    }
}
