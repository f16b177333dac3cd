//! Builds the controllers that run.

use std::sync::Arc;

use cloudkeel_api::{Clock, ClusterIdentity, ConfigSource, LoadBalancers, Problems, Registry};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::ipam::{self, IpamController, IpamParts, IpamSettings};
use cloudkeel_controllers::lifecycle::decide::Caution;
use cloudkeel_controllers::lifecycle::limiter::DeletionLimiter;
use cloudkeel_controllers::lifecycle::{
    LeaseHeartbeats, LifecycleController, LifecycleParts, LifecycleSettings,
};
use cloudkeel_controllers::node::plan::Refresh;
use cloudkeel_controllers::node::{NodeController, NodeParts, NodeSettings};
use cloudkeel_controllers::route::{self, RouteController, RouteParts, RouteSettings};
use cloudkeel_controllers::runtime::{Cache, EventRecorder, Listener, NodeWriter, ServiceWriter};
use cloudkeel_controllers::service::owner::{Classes, ServiceOwner};
use cloudkeel_controllers::service::{self, ServiceController, ServiceParts, ServiceSettings};
use cloudkeel_controllers::view::{NodeView, ServiceView};
use cloudkeel_controllers::{Controller, ControllerName, ControllerSelection};
use kube::Client;
use tracing::{info, warn};

use crate::background::Host;
use crate::config::{CloudEntry, Setup};
use crate::log_messages::{
    CLUSTER_CIDR_MISSING, INSTANCES_UNSUPPORTED, LOAD_BALANCERS_UNSUPPORTED, ROUTES_UNSUPPORTED,
};
use crate::metrics::Metrics;
use crate::options::Options;

/// The share of a cloud's Nodes that may be deleted in one burst.
const DELETION_BURST_SHARE: f64 = 0.2;

/// What controllers are built with.
pub(super) struct ControllerParts<'a> {
    pub(super) options: &'a Options,
    pub(super) is_dry_run: bool,
    pub(super) clouds: &'a [Arc<Cloud>],
    pub(super) service_scope: &'a ServiceScope,
    pub(super) metrics: &'a Metrics,
    pub(super) events: &'a EventRecorder,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) nodes: Arc<Cache<NodeView>>,
    pub(super) services: Arc<Cache<ServiceView>>,
    /// Reads with the manager's own account, as the watches do: with `--use-service-account-credentials` the roles
    /// of controllers do not allow it.
    pub(super) reader: Client,
    /// The seed of random choices.
    pub(super) seed: u64,
}

impl ControllerParts<'_> {
    /// A dry run reads what is written, and the other form of a write is made for the API server alone.
    fn node_writer(&self, client: Client) -> NodeWriter {
        let writer = NodeWriter::new(client);
        if self.is_dry_run {
            writer.with_patches_only()
        } else {
            writer
        }
    }

    fn observer(&self) -> Arc<Metrics> {
        Arc::new(self.metrics.clone())
    }

    /// What a controller of Nodes is made of. Its Events and its queue have these names.
    fn of_nodes<O: ?Sized>(
        &self,
        client: Client,
        source: &'static str,
        queue: &'static str,
        observer: Arc<O>,
    ) -> cloudkeel_controllers::ControllerParts<O> {
        cloudkeel_controllers::ControllerParts {
            nodes: Arc::clone(&self.nodes),
            clouds: self.clouds.to_vec(),
            writer: self.node_writer(client),
            events: self.events.sink(source),
            clock: Arc::clone(&self.clock),
            observer,
            queue_observer: self.metrics.queues.observer(queue),
        }
    }
}

/// The controllers that run, and their event listeners.
#[derive(Default)]
pub(super) struct BuiltControllers {
    pub(super) controllers: Vec<Arc<dyn Controller>>,
    pub(super) node_listeners: Vec<Listener<NodeView>>,
    pub(super) service_listeners: Vec<Listener<ServiceView>>,
}

/// Which controllers run: selected, and with a cloud that has the capability they need. A missing capability is
/// logged once.
pub(super) fn enabled(
    selection: &ControllerSelection,
    options: &Options,
    clouds: &[Arc<Cloud>],
    registry: &Registry,
) -> Vec<ControllerName> {
    let has_machines = clouds
        .iter()
        .any(|cloud| cloud.provider().instances().is_some());
    let has_balancers = clouds
        .iter()
        .any(|cloud| cloud.provider().load_balancers().is_some());
    ControllerName::ALL
        .into_iter()
        .filter(|name| selection.runs(*name))
        .filter(|name| match name {
            ControllerName::CloudNode | ControllerName::CloudNodeLifecycle => {
                if !has_machines {
                    warn!(controller = %name, "{INSTANCES_UNSUPPORTED}");
                }
                has_machines
            }
            // Most charts of Go CCMs pass --allocate-node-cidrs while kube-controller-manager allocates; two
            // allocators would assign the same range twice. So the controller has to be selected by name as well,
            // unless one of the clouds replaces a CCM that allocates itself.
            ControllerName::NodeIpam => {
                let providers: Vec<_> = clouds.iter().map(|cloud| cloud.provider()).collect();
                let providers = providers.iter().map(|provider| provider.name());
                options.ipam.enabled
                    && (selection.names(*name) || registry.any_allocates_pod_cidrs(providers))
            }
            ControllerName::Route => routes_enabled(selection.names(*name), options, clouds),
            ControllerName::Service => {
                if !has_balancers {
                    warn!(controller = %name, "{LOAD_BALANCERS_UNSUPPORTED}");
                }
                true
            }
        })
        .collect()
}

/// Whether the route controller runs. Upstream exits if the cluster CIDR is missing; but clusters whose Pod network
/// needs no routes do not set it, and `--configure-cloud-routes` is on by default.
fn routes_enabled(is_named: bool, options: &Options, clouds: &[Arc<Cloud>]) -> bool {
    let controller = ControllerName::Route;
    if !options.route.enabled {
        return false;
    }
    if !clouds
        .iter()
        .any(|cloud| cloud.provider().routes().is_some())
    {
        warn!(%controller, "{ROUTES_UNSUPPORTED}");
        return false;
    }
    let has_network = !options.generic.cluster_cidrs.is_empty();
    match (has_network, is_named) {
        (true, _) => {}
        (false, true) => warn!(%controller, "{CLUSTER_CIDR_MISSING}"),
        (false, false) => info!(%controller, "{CLUSTER_CIDR_MISSING}"),
    }
    has_network
}

impl BuiltControllers {
    /// Adds the controller of this name, which writes with this client.
    pub(super) fn add(
        &mut self,
        name: ControllerName,
        client: Client,
        parts: &ControllerParts<'_>,
    ) -> Result<(), Problems> {
        match name {
            ControllerName::CloudNode => self.add_node(client, parts),
            ControllerName::CloudNodeLifecycle => self.add_lifecycle(client, parts),
            ControllerName::NodeIpam => self.add_ipam(client, parts)?,
            ControllerName::Service => self.add_service(client, parts),
            ControllerName::Route => self.add_route(client, parts),
        }
        Ok(())
    }

    /// Registers the listeners of provider controllers.
    pub(super) fn listen_for(&mut self, hosts: &[Host]) {
        let nodes = hosts.iter().map(Host::node_listener);
        self.node_listeners.extend(nodes);
        let services = hosts.iter().filter_map(Host::service_listener);
        self.service_listeners.extend(services);
    }

    /// Whether a controller needs the Services.
    pub(super) fn services_are_watched(&self) -> bool {
        !self.service_listeners.is_empty()
    }

    fn add_service(&mut self, client: Client, parts: &ControllerParts<'_>) {
        let options = &parts.options.service;
        let settings = ServiceSettings {
            workers: usize::try_from(options.concurrent_syncs).unwrap_or(usize::MAX),
            drift: options.drift,
            conditions: options.conditions,
            health_checks: options.health_checks,
            list_period: options.list_period,
            seed: parts.seed,
            ..ServiceSettings::default()
        };
        let service_parts = ServiceParts {
            services: Arc::clone(&parts.services),
            nodes: Arc::clone(&parts.nodes),
            clouds: parts.clouds.to_vec(),
            classes: parts.service_scope.classes.clone(),
            cluster: parts.service_scope.cluster.clone(),
            writer: ServiceWriter::new(client),
            events: parts.events.sink(service::EVENT_SOURCE),
            clock: Arc::clone(&parts.clock),
            observer: Arc::new(parts.metrics.clone()),
            queue_observer: parts.metrics.queues.observer(service::QUEUE_NAME),
        };
        let controller = ServiceController::new(service_parts, settings);
        self.node_listeners.push(controller.node_listener());
        self.service_listeners.push(controller.service_listener());
        self.controllers.push(controller);
    }

    fn add_ipam(&mut self, client: Client, parts: &ControllerParts<'_>) -> Result<(), Problems> {
        let options = &parts.options.ipam;
        let settings = IpamSettings {
            service_cidrs: options.service_cidrs.clone(),
            mask_size: options.mask_size,
            mask_size_v4: options.mask_size_v4,
            mask_size_v6: options.mask_size_v6,
            ..IpamSettings::new(parts.options.generic.cluster_cidrs.clone())
        };
        let (source, queue) = (ipam::EVENT_SOURCE, ipam::QUEUE_NAME);
        let ipam_parts: IpamParts = parts.of_nodes(client, source, queue, parts.observer());
        let controller = IpamController::new(&settings, ipam_parts)?;
        self.node_listeners.push(controller.listener());
        self.controllers.push(Arc::new(controller));
        Ok(())
    }

    fn add_node(&mut self, client: Client, parts: &ControllerParts<'_>) {
        let options = &parts.options.node;
        let settings = NodeSettings {
            workers: usize::try_from(options.concurrent_syncs).unwrap_or(usize::MAX),
            refreshers: usize::try_from(options.concurrent_status_updates).unwrap_or(usize::MAX),
            list_period: options.list_period,
            follow: Refresh {
                instance_type: options.follow_instance_type,
                topology: options.follow_topology,
            },
            seed: parts.seed,
        };
        let (source, queue) = ("cloud-node-controller", "Nodes");
        let node_parts: NodeParts = parts.of_nodes(client, source, queue, parts.observer());
        let controller = NodeController::new(node_parts, settings);
        self.node_listeners.push(controller.listener());
        self.controllers.push(controller);
    }

    fn add_route(&mut self, client: Client, parts: &ControllerParts<'_>) {
        let options = parts.options;
        let settings = RouteSettings {
            cluster_cidrs: options.generic.cluster_cidrs.clone(),
            resync: options.route.resync(&options.gates),
            seed: parts.seed,
        };
        let (source, queue) = (route::EVENT_SOURCE, route::QUEUE_NAME);
        let route_parts: RouteParts = parts.of_nodes(client, source, queue, parts.observer());
        let controller = RouteController::new(route_parts, settings);
        self.node_listeners.push(controller.listener());
        self.controllers.push(controller);
    }

    fn add_lifecycle(&mut self, client: Client, parts: &ControllerParts<'_>) {
        let options = &parts.options.node;
        let settings = LifecycleSettings {
            workers: usize::try_from(options.concurrent_lifecycle_syncs).unwrap_or(usize::MAX),
            monitor_period: options.monitor_period,
            caution: Caution {
                grace: options.deletion.grace,
                proofs: options.deletion.proofs,
                over: options.deletion.confirmation,
            },
            limiter: DeletionLimiter::new(
                usize::try_from(options.deletion.burst).unwrap_or(usize::MAX),
                DELETION_BURST_SHARE,
                options.deletion.interval,
            ),
        };
        let heartbeats = LeaseHeartbeats::new(parts.reader.clone(), client.clone());
        let (source, queue) = ("cloud-node-lifecycle-controller", "NodeLifecycle");
        let lifecycle_parts: LifecycleParts =
            parts.of_nodes(client, source, queue, parts.observer());
        let controller = LifecycleController::new(lifecycle_parts, heartbeats, settings);
        self.node_listeners.push(controller.listener());
        self.controllers.push(controller);
    }
}

/// The part of the configuration that the service controller needs.
pub(crate) struct ServiceScope {
    pub(crate) classes: Classes,
    pub(super) cluster: ClusterIdentity,
}

impl ServiceScope {
    /// From the configuration, and from the classes that the providers serve by default.
    pub(super) fn of(setup: &Setup, clouds: &[Arc<Cloud>], cluster: ClusterIdentity) -> Self {
        let owners = setup.clouds.iter().zip(clouds);
        let owners = owners.map(|(entry, cloud)| owner(entry, cloud));
        Self {
            classes: Classes::new(owners.collect()),
            cluster,
        }
    }

    /// The same where some clouds could not be built: Services of these are served all the same.
    pub(crate) fn of_built(setup: &Setup, clouds: &[Arc<Cloud>], cluster: ClusterIdentity) -> Self {
        let owners = setup.clouds.iter().map(|entry| {
            let built = clouds.iter().find(|cloud| cloud.name == entry.name);
            built.map_or_else(|| owner_by(entry, Vec::new()), |cloud| owner(entry, cloud))
        });
        Self {
            classes: Classes::new(owners.collect()),
            cluster,
        }
    }
}

fn owner(entry: &CloudEntry, cloud: &Cloud) -> ServiceOwner {
    let provider = cloud.provider();
    let classes = provider.load_balancers().map(LoadBalancers::classes);
    owner_by(entry, classes.unwrap_or_default())
}

/// By the configuration, and by the classes that the provider serves without being configured.
fn owner_by(entry: &CloudEntry, own_classes: Vec<String>) -> ServiceOwner {
    let scope = &entry.load_balancers;
    let mut classes = scope.classes.clone();
    classes.extend(own_classes);
    ServiceOwner {
        is_own_config: matches!(entry.config, ConfigSource::Own(_)),
        cloud: entry.name.clone(),
        default: scope.default,
        classes,
        target_clouds: scope.targets.clouds.clone(),
        by: scope.targets.by,
    }
}

#[cfg(test)]
mod tests;
