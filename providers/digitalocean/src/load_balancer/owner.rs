//! Whose load balancer it is.

use std::net::IpAddr;

use cloudkeel_toolkit::{CloudBalancer, OwnerTag, SharedRead, TaggedBalancer, TaggedBalancers};

use crate::annotations::{DISOWN, LOAD_BALANCER_ID};
use crate::wire::LoadBalancer;

pub(super) const TAG: OwnerTag = OwnerTag::new("cloudkeel:");

/// The load balancers of an account, as this cluster sees them.
pub(crate) fn balancers(cluster: Option<&String>) -> TaggedBalancers<LoadBalancer> {
    TaggedBalancers {
        tag: TAG,
        id_annotation: LOAD_BALANCER_ID.name(),
        cluster: cluster.cloned(),
        list: SharedRead::default(),
    }
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
