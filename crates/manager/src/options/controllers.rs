//! Options of the controllers.

use std::time::Duration;

use cloudkeel_api::{DriftPolicy, FlagKey, Problem};
use cloudkeel_controllers::route::RouteSettings;
use cloudkeel_controllers::service::spec::HealthCheckChoice;
use ipnet::IpNet;
use serde::Serialize;

use super::gates::FeatureGates;
use super::generic::cidrs;
use super::reader::OptionReader;
use crate::flags;

/// The node and the lifecycle controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOptions {
    /// `--concurrent-node-syncs`
    pub concurrent_syncs: u32,
    /// `--concurrent-node-status-updates`, worked out.
    pub concurrent_status_updates: u32,
    /// `--node-status-update-frequency`
    pub list_period: Duration,
    /// `--node-monitor-period`
    pub monitor_period: Duration,
    /// `--concurrent-node-lifecycle-syncs`
    pub concurrent_lifecycle_syncs: u32,
    /// `--follow-instance-type`
    pub follow_instance_type: bool,
    /// `--follow-topology`
    pub follow_topology: bool,
    /// The rules for deleting Nodes.
    pub deletion: DeletionOptions,
}

/// The rules for deleting Nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionOptions {
    /// `--node-deletion-grace-period`
    pub grace: Duration,
    /// `--node-deletion-proofs`
    pub proofs: u32,
    /// `--node-deletion-confirmation-period`
    pub confirmation: Duration,
    /// `--node-deletion-burst`
    pub burst: u32,
    /// `--node-deletion-interval`
    pub interval: Duration,
}

impl DeletionOptions {
    fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let grace = reader.value(&flags::NODE_DELETION_GRACE);
        let proofs = at_least_one(reader, &flags::NODE_DELETION_PROOFS);
        let confirmation = reader.value(&flags::NODE_DELETION_CONFIRMATION);
        let burst = at_least_one(reader, &flags::NODE_DELETION_BURST);
        let interval = period(reader, &flags::NODE_DELETION_INTERVAL);
        Some(Self {
            grace: grace?,
            proofs: proofs?,
            confirmation: confirmation?,
            burst: burst?,
            interval: interval?,
        })
    }
}

impl NodeOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let concurrent_syncs = at_least_one(reader, &flags::CONCURRENT_NODE_SYNCS);
        let status_updates = reader.value(&flags::CONCURRENT_NODE_STATUS_UPDATES);
        let list_period = period(reader, &flags::NODE_STATUS_UPDATE_FREQUENCY);
        let monitor_period = period(reader, &flags::NODE_MONITOR_PERIOD);
        let lifecycle = at_least_one(reader, &flags::CONCURRENT_NODE_LIFECYCLE_SYNCS);
        let follow_instance_type = reader.value(&flags::FOLLOW_INSTANCE_TYPE);
        let follow_topology = reader.value(&flags::FOLLOW_TOPOLOGY);
        let deletion = DeletionOptions::read(reader);
        let concurrent_syncs = concurrent_syncs?;
        Some(Self {
            concurrent_syncs,
            concurrent_status_updates: match status_updates? {
                0 => concurrent_syncs,
                given => given,
            },
            list_period: list_period?,
            monitor_period: monitor_period?,
            concurrent_lifecycle_syncs: lifecycle?,
            follow_instance_type: follow_instance_type?,
            follow_topology: follow_topology?,
            deletion: deletion?,
        })
    }
}

/// The service controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceOptions {
    /// `--concurrent-service-syncs`
    pub concurrent_syncs: u32,
    /// `--load-balancer-drift`
    pub drift: DriftPolicy,
    /// `--load-balancer-conditions`
    pub conditions: bool,
    /// `--load-balancer-health-checks`
    pub health_checks: HealthCheckChoice,
    /// `--load-balancer-drift-check-period`
    pub list_period: Duration,
}

impl ServiceOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let concurrent_syncs = at_least_one(reader, &flags::CONCURRENT_SERVICE_SYNCS);
        let drift = reader.value(&flags::LOAD_BALANCER_DRIFT);
        let conditions = reader.value(&flags::LOAD_BALANCER_CONDITIONS);
        let health_checks = reader.value(&flags::LOAD_BALANCER_HEALTH_CHECKS);
        let current = &flags::LOAD_BALANCER_DRIFT_CHECK_PERIOD;
        let former = &flags::FORMER_LOAD_BALANCER_DRIFT_CHECK_PERIOD;
        let only_former = reader.is_given(former.name()) && !reader.is_given(current.name());
        let list_period = period(reader, if only_former { former } else { current });
        Some(Self {
            concurrent_syncs: concurrent_syncs?,
            drift: drift?,
            conditions: conditions?,
            health_checks: health_checks?.0,
            list_period: list_period?,
        })
    }
}

/// The route controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteOptions {
    /// `--configure-cloud-routes`
    pub enabled: bool,
    /// `--route-reconciliation-period`
    pub period: Duration,
    /// Whether the flag was given.
    #[serde(skip)]
    period_is_given: bool,
}

impl RouteOptions {
    /// How often all routes are checked although no Node has changed. Upstream uses its period unless the gate for
    /// watch-based routes is on, and charts set both; so the period counts only if the gate is unset or off.
    pub fn resync(&self, gates: &FeatureGates) -> Duration {
        let is_watched = gates.watched_routes();
        if is_watched.map_or(self.period_is_given, |is_watched| !is_watched) {
            self.period
        } else {
            RouteSettings::RESYNC
        }
    }

    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let enabled = reader.value(&flags::CONFIGURE_CLOUD_ROUTES);
        let period = period(reader, &flags::ROUTE_RECONCILIATION_PERIOD);
        Some(Self {
            enabled: enabled?,
            period: period?,
            period_is_given: reader.is_given(flags::ROUTE_RECONCILIATION_PERIOD.name()),
        })
    }
}

/// The node IPAM controller. Masks are as given; which applies depends on the cluster's families.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IpamOptions {
    /// `--allocate-node-cidrs`
    pub enabled: bool,
    /// `--service-cluster-ip-range`
    pub service_cidrs: Vec<IpNet>,
    /// `--node-cidr-mask-size`
    pub mask_size: Option<u8>,
    /// `--node-cidr-mask-size-ipv4`
    pub mask_size_v4: Option<u8>,
    /// `--node-cidr-mask-size-ipv6`
    pub mask_size_v6: Option<u8>,
}

impl IpamOptions {
    pub(super) fn read(reader: &mut OptionReader<'_>) -> Option<Self> {
        let enabled = reader.value(&flags::ALLOCATE_NODE_CIDRS);
        let allocator = reader.value(&flags::CIDR_ALLOCATOR_TYPE);
        let service_cidrs = cidrs(reader, &flags::SERVICE_CLUSTER_IP_RANGE);
        let plain = mask(reader, &flags::NODE_CIDR_MASK_SIZE, 128);
        let v4 = mask(reader, &flags::NODE_CIDR_MASK_SIZE_IPV4, 32);
        let v6 = mask(reader, &flags::NODE_CIDR_MASK_SIZE_IPV6, 128);
        if enabled == Some(true) && allocator.as_deref() != Some("RangeAllocator") {
            let given = allocator.unwrap_or_default();
            reader.refuse("--cidr-allocator-type", given, "RangeAllocator");
        }
        let (mask_size, mask_size_v4, mask_size_v6) = (plain?, v4?, v6?);
        if mask_size.is_some() && (mask_size_v4.is_some() || mask_size_v6.is_some()) {
            reader.note(Problem::new(
                "--node-cidr-mask-size",
                "excludes --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6",
            ));
        }
        Some(Self {
            enabled: enabled?,
            service_cidrs: service_cidrs?,
            mask_size,
            mask_size_v4,
            mask_size_v6,
        })
    }
}

/// A mask size; zero means that it was not set.
#[expect(
    clippy::option_option,
    reason = "wrong and absent are different, and both go on"
)]
fn mask(reader: &mut OptionReader<'_>, key: &FlagKey<u16>, most: u8) -> Option<Option<u8>> {
    let given = reader.value(key)?;
    match u8::try_from(given) {
        Ok(mask) if mask <= most => Some((mask != 0).then_some(mask)),
        _ => {
            let expected = format!("a mask from 0 to {most}");
            reader.refuse(&format!("--{}", key.name()), given.to_string(), &expected);
            None
        }
    }
}

/// A count that must not be zero: zero workers would silently do nothing.
fn at_least_one(reader: &mut OptionReader<'_>, key: &FlagKey<u32>) -> Option<u32> {
    let count = reader.value(key)?;
    if count == 0 {
        reader.refuse(&format!("--{}", key.name()), "0", "1 or more");
    }
    Some(count)
}

fn period(reader: &mut OptionReader<'_>, key: &FlagKey<Duration>) -> Option<Duration> {
    let period = reader.value(key)?;
    if period.is_zero() {
        reader.refuse(&format!("--{}", key.name()), "0", "more than nothing");
    }
    Some(period)
}
