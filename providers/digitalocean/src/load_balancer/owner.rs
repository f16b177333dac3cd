//! Whose load balancer it is.

use std::net::IpAddr;

use cloudkeel_toolkit::{
    CloudBalancer, HasListenerKey, ListenerKey, OwnerTag, SHARED_TAG, ShareableBalancer,
    TaggedBalancer, TaggedBalancers,
};

use crate::annotations::{DISOWN, LOAD_BALANCER_ID};
use crate::wire::LoadBalancer;

pub(super) const TAG: OwnerTag = OwnerTag::new("cloudkeel:");

/// The load balancers of an account, as this cluster sees them.
pub(crate) fn balancers(cluster: Option<&String>) -> TaggedBalancers<LoadBalancer> {
    TaggedBalancers::new(TAG, LOAD_BALANCER_ID.name(), cluster.cloned())
}

impl CloudBalancer for LoadBalancer {
    const DISOWNED_BY: Option<&'static str> = Some(DISOWN.name());

    fn id(&self) -> String {
        self.id.clone()
    }

    fn name(&self) -> &str {
        &self.settings.name
    }

    /// Empty until it has one.
    fn addresses(&self) -> Vec<IpAddr> {
        let both = [&self.ip, &self.ipv6].into_iter().flatten();
        both.filter_map(|text| text.parse().ok()).collect()
    }
}

impl TaggedBalancer for LoadBalancer {
    fn tags(&self) -> &[String] {
        &self.settings.tags
    }
}

impl ShareableBalancer for LoadBalancer {
    type Target = u64;

    fn is_marked_shared(&self) -> bool {
        self.settings.tags.iter().any(|tag| tag == SHARED_TAG)
    }

    fn listener_keys(&self) -> impl Iterator<Item = ListenerKey> {
        let rules = self.settings.forwarding_rules.iter();
        rules.map(HasListenerKey::listener_key)
    }

    fn targets(&self) -> impl Iterator<Item = u64> {
        self.settings.droplet_ids.iter().copied()
    }
}
