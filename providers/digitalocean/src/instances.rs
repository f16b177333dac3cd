//! Droplets.

use cloudkeel_api::{Instance, InstanceState, NodeAddress, ProviderId};
use cloudkeel_toolkit::{IdError, ListedResources, RestInstance};

use crate::client::Api;
use crate::id::{droplet_id, provider_id};
use crate::wire::Droplet;

/// The droplets as they were last listed, for instances and targets.
pub(crate) type Droplets = ListedResources<Api, Droplet>;

/// Droplets as instances.
pub(crate) struct DropletRules;

impl RestInstance for DropletRules {
    type Id = u64;
    type Item = Droplet;

    fn parse_id(&self, id: &ProviderId) -> Result<u64, IdError> {
        droplet_id(id)
    }

    /// Addresses in the Go CCM's order.
    fn instance(&self, droplet: &Droplet) -> Instance {
        let private = droplet.networks.private_v4();
        let hostname = std::iter::once(NodeAddress::hostname(&droplet.name));
        let addresses = hostname.chain(private.map(NodeAddress::internal));
        let public = droplet.networks.public();
        let ips = private.into_iter().chain(droplet.networks.public());
        let why = || "the droplet has no private IPv4 address".to_owned();
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
            not_ready: private.is_none().then(why),
            ..Instance::new(provider_id(droplet.id), &droplet.name)
        }
    }
}
