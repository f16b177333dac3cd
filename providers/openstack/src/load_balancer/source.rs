//! Where parts of load balancers are read: one by one, or from lists of all of them.

use cloudkeel_api::{CloudError, Priority, ServiceRef};
use cloudkeel_http::Request;
use cloudkeel_toolkit::json;

use super::owner::{SERVICE_UID, labels_of, tag};
use crate::client::{Api, Service};
use crate::wire::balancer::{Listener, LoadBalancer, Member, Monitor, Pool};
use crate::wire::network::FloatingIp;

/// Everything of a project that load balancers consist of, but for their targets.
pub(super) struct Listing {
    balancers: Vec<LoadBalancer>,
    listeners: Vec<Listener>,
    pools: Vec<Pool>,
    monitors: Vec<Monitor>,
    floating_ips: Vec<FloatingIp>,
}

impl Listing {
    /// Five lists, whatever the number of Services.
    pub(super) async fn read(api: &Api) -> Result<Self, CloudError> {
        let background = Priority::Background;
        Ok(Self {
            balancers: api.all_with(&[], background).await?,
            listeners: api.all_with(&[], background).await?,
            pools: api.all_with(&[], background).await?,
            monitors: api.all_with(&[], background).await?,
            floating_ips: api.all_with(&[], background).await?,
        })
    }
}

/// Reads parts of load balancers.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) api: &'a Api,
    pub(super) listing: Option<&'a Listing>,
}

/// One that is being deleted is as good as gone.
fn is_there(balancer: &LoadBalancer) -> bool {
    !matches!(
        balancer.provisioning_status.as_str(),
        "DELETED" | "PENDING_DELETE"
    )
}

impl Source<'_> {
    /// Those with the tag of a Service's UID, also those that are being deleted.
    pub(super) async fn labelled(
        &self,
        service: &ServiceRef,
    ) -> Result<Vec<LoadBalancer>, CloudError> {
        if let Some(listing) = self.listing {
            let is_tagged = |balancer: &&LoadBalancer| {
                labels_of(&balancer.tags).get(SERVICE_UID) == Some(&service.uid)
            };
            return Ok(listing
                .balancers
                .iter()
                .filter(is_tagged)
                .cloned()
                .collect());
        }
        self.api
            .all(&[("tags", &tag(SERVICE_UID, &service.uid))])
            .await
    }

    pub(super) async fn with_id(&self, id: &str) -> Result<LoadBalancer, CloudError> {
        let listed = self
            .listing
            .and_then(|listing| listing.balancers.iter().find(|b| b.id == id));
        match listed {
            Some(balancer) => Ok(balancer.clone()),
            None => self.api.get(id, Priority::Normal).await,
        }
    }

    /// Those of one of these names, of which the first that fits any counts.
    pub(super) async fn named(&self, names: &[&str]) -> Result<Vec<LoadBalancer>, CloudError> {
        for name in names {
            let mut found: Vec<LoadBalancer> = match self.listing {
                Some(listing) => listing
                    .balancers
                    .iter()
                    .filter(|b| b.name == *name)
                    .cloned()
                    .collect(),
                None => self.api.all(&[("name", name)]).await?,
            };
            found.retain(is_there);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    pub(super) async fn listeners(&self, balancer: &str) -> Result<Vec<Listener>, CloudError> {
        let is_its =
            |listener: &&Listener| listener.loadbalancers.iter().any(|lb| lb.id == balancer);
        match self.listing {
            Some(listing) => Ok(listing.listeners.iter().filter(is_its).cloned().collect()),
            None => self.api.all(&[("loadbalancer_id", balancer)]).await,
        }
    }

    pub(super) async fn pools(&self, balancer: &str) -> Result<Vec<Pool>, CloudError> {
        let is_its = |pool: &&Pool| pool.loadbalancers.iter().any(|lb| lb.id == balancer);
        match self.listing {
            Some(listing) => Ok(listing.pools.iter().filter(is_its).cloned().collect()),
            None => self.api.all(&[("loadbalancer_id", balancer)]).await,
        }
    }

    pub(super) async fn members(&self, pool: &str) -> Result<Vec<Member>, CloudError> {
        let request = Request::get("/lbaas/pools/{pool}/members").param("pool", pool);
        let response = self.api.client(Service::Balancers)?.send(request).await?;
        json::field(&response, "members")
    }

    pub(super) async fn monitor(&self, id: &str) -> Result<Monitor, CloudError> {
        let listed = self
            .listing
            .and_then(|listing| listing.monitors.iter().find(|m| m.id == id));
        match listed {
            Some(monitor) => Ok(monitor.clone()),
            None => self.api.get(id, Priority::Normal).await,
        }
    }

    /// The floating IP of a port.
    pub(super) async fn floating_ip(
        &self,
        port: Option<&String>,
    ) -> Result<Option<FloatingIp>, CloudError> {
        let Some(port) = port else {
            return Ok(None);
        };
        let found: Vec<FloatingIp> = match self.listing {
            Some(listing) => listing.floating_ips.clone(),
            None => self.api.all(&[("port_id", port)]).await?,
        };
        Ok(found
            .into_iter()
            .find(|ip| ip.port_id.as_ref() == Some(port)))
    }
}
