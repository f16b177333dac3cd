//! The account that a provider works in: its region, its network, its cluster, and what was last read of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudError, ErrorKind, Priority, ProviderContext, ScopeFingerprint};
use cloudkeel_toolkit::{Inventory, Session, SharedRead, Wiring};

use crate::client::{Api, Call, Metadata, list_at};
use crate::config::Config;
use crate::tags::ClusterTag;
use crate::wire::{Ec2Instance, Subnet, Zone};

/// How long the zones of a region are kept; an unknown one is looked up at once.
const ZONES_FRESH: Duration = Duration::from_hours(24);

/// An account in one region.
pub(crate) struct Account {
    pub(crate) api: Api,
    pub(crate) region: String,
    pub(crate) vpc: String,
    /// Where load balancers go in a VPC without tagged subnets.
    pub(crate) own_subnet: Option<String>,
    pub(crate) cluster: ClusterTag,
    pub(crate) inventory: Inventory<Ec2Instance>,
    zones: SharedRead<Vec<Zone>>,
}

impl Account {
    /// Finds region, network and cluster, by the settings or by the instance that this runs on.
    pub(crate) async fn connect(
        config: &Config,
        context: &ProviderContext,
        wiring: &Wiring,
    ) -> Result<Self, CloudError> {
        let configured = config.configured_region();
        let identity = if config.is_off_instance() && configured.is_some() {
            None
        } else {
            let metadata = Metadata::new(config.metadata_endpoint(), wiring)?;
            let identity = metadata.identity().await;
            Some(identity.map_err(|error| not_on_an_instance(&error))?)
        };
        let region = configured.or_else(|| identity.as_ref().map(|own| own.region.clone()));
        let region = region.unwrap_or_default();
        let api = Api::new(config, &region, context, wiring).await?;
        let own = match identity.filter(|_| !config.is_off_instance()) {
            Some(own) => Some(find_instance(&api, &own.instance).await?),
            None => None,
        };
        let vpc = config.vpc.clone();
        let vpc = vpc.or_else(|| own.as_ref().and_then(|own| own.vpc.clone()));
        let vpc = vpc.ok_or_else(|| {
            CloudError::invalid("find VPC", "the own instance is in no VPC: set VPC (vpc)")
        })?;
        let subnet = config.subnet_id.clone();
        Ok(Self {
            own_subnet: subnet.or_else(|| own.as_ref().and_then(|own| own.subnet.clone())),
            cluster: ClusterTag::find(config, own.as_ref().map(|own| &own.tags))?,
            api,
            region,
            vpc,
            inventory: Inventory::default(),
            zones: SharedRead::default(),
        })
    }

    /// A VPC is in one region of one account.
    pub(crate) fn scope(&self) -> ScopeFingerprint {
        ScopeFingerprint::new(format!("{} in {}", self.vpc, self.region))
    }

    /// All instances with the cluster's tag, terminated ones too.
    pub(crate) async fn list(&self) -> Result<Vec<Ec2Instance>, CloudError> {
        let call = Call::ec2("DescribeInstances").filter("tag-key", self.cluster.keys());
        let all = self.api.all_of_ec2(call, INSTANCES, Priority::Background);
        let mut all: Vec<Ec2Instance> = all.await?;
        all.retain(|instance| self.cluster.is_tagged(&instance.tags));
        Ok(all)
    }

    /// The instances of the cluster, as they were at most this long ago.
    pub(crate) async fn no_older_than(
        &self,
        age: Duration,
    ) -> Result<Arc<Vec<Ec2Instance>>, CloudError> {
        self.inventory.no_older_than(age, || self.list()).await
    }

    /// The subnets of the VPC.
    pub(crate) async fn subnets(&self) -> Result<Vec<Subnet>, CloudError> {
        let call = Call::ec2("DescribeSubnets").filter("vpc-id", [&self.vpc]);
        let all = self
            .api
            .all_of_ec2(call, "subnetSet/item", Priority::Normal);
        all.await
    }

    /// The zones of the region, read again if this one is not among them.
    pub(crate) async fn zones(&self, needed: Option<&str>) -> Result<Arc<Vec<Zone>>, CloudError> {
        let read = || async {
            let call = Call::ec2("DescribeAvailabilityZones");
            let answer = self.api.send(&call).await?;
            let zones = list_at(&answer, "availabilityZoneInfo/item");
            zones.map_err(|why| CloudError::new(call.action, ErrorKind::Malformed, why))
        };
        let known = self.zones.no_older_than(ZONES_FRESH, read).await?;
        let has = |needed: &str| known.iter().any(|zone| zone.name == needed);
        if needed.is_none_or(has) {
            return Ok(known);
        }
        self.zones.fresh(read).await
    }
}

#[async_trait]
impl Session for Account {
    /// Only the right account shows the subnets of the VPC.
    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        if self.subnets().await?.is_empty() {
            let message = format!(
                "this credential shows no subnet of {} in {}",
                self.vpc, self.region
            );
            return Err(CloudError::invalid("check account", message));
        }
        Ok(self.scope())
    }
}

pub(crate) const INSTANCES: &str = "reservationSet/item/instancesSet/item";

/// One instance by its ID. An answer without it proves nothing.
pub(crate) async fn find_instance(api: &Api, id: &str) -> Result<Ec2Instance, CloudError> {
    let call = Call::ec2("DescribeInstances").list("InstanceId", [id]);
    let found: Vec<Ec2Instance> = api.all(&call, INSTANCES, Priority::Urgent).await?;
    let found = found.into_iter().find(|instance| instance.id == id);
    found.ok_or_else(|| {
        let message = format!("the answer does not show {id}");
        CloudError::new(call.action, ErrorKind::Incomplete, message)
    })
}

fn not_on_an_instance(error: &CloudError) -> CloudError {
    let message = format!(
        "the metadata service did not answer ({}): run on an instance of the cluster, or set Zone or Region, \
         VPC, KubernetesClusterID and either SubnetID or RoleARN",
        error.message()
    );
    CloudError::new("find own instance", error.kind(), message)
}
