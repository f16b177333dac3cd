//! Load balancers: observe, plan, apply.

mod apply;
mod capabilities;
mod desired;
mod find;
mod floating_ip;
mod health;
mod observe;
mod owned;
mod owner;
mod plan;
mod security_group;
mod source;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, Busy, CloudError, ClusterIdentity, DesiredState, Executed,
    Features, HealthCheckPolicy, LabelSelector, LoadBalancerDriver, LoadBalancerSpec,
    LoadBalancerStatus, LockKey, OwnedResource, Problem, ProviderContext, ProxyProtocols, Report,
    UnknownAnnotation, UnprovenResource,
};
use cloudkeel_toolkit::{
    CloudBalancer as _, EventRecorder, SharedRead, ingress, one_each, through_balancer,
};

use self::capabilities::Capabilities;
use self::desired::Desired;
use self::find::written_id;
use self::observe::{Found, Observed};
pub use self::owner::{CLUSTER_UID, SERVICE_UID};
use self::source::{Listing, Source};
use self::step::Step;
use crate::annotations as key;
use crate::config::{Config, node_selector};
use crate::instances::Servers;
use crate::wire::network::SecurityGroup;

/// When to check a load balancer that is being built or changed.
const PENDING: Duration = Duration::from_secs(2);

/// How long it is known what Octavia can do: until it is upgraded.
const CAPABILITIES_FRESH: Duration = Duration::from_hours(1);

/// What planning has to know besides the desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    provider: String,
    /// Whether a load balancer is built piece by piece.
    serial: bool,
    cascade_delete: bool,
    max_shared: usize,
    /// What tags this cluster's load balancers.
    cluster: Option<String>,
}

/// Whether the floating IP of a Service that goes stays. In doubt it does: an address that is gone does not come back.
fn keeps_floating_ip(balancer_ref: &BalancerRef) -> bool {
    let keeps = key::KEEP_FLOATINGIP.get(&balancer_ref.annotations);
    keeps.map_or(true, Option::unwrap_or_default)
}

/// The load balancers of the project.
pub(crate) struct OpenStackBalancers {
    servers: Servers,
    config: Config,
    facts: Facts,
    identity: ClusterIdentity,
    events: Arc<EventRecorder>,
    versions: SharedRead<Capabilities>,
    security_groups: SharedRead<Vec<SecurityGroup>>,
}

impl OpenStackBalancers {
    pub(crate) fn new(
        servers: &Servers,
        config: &Config,
        context: &ProviderContext,
        events: &Arc<EventRecorder>,
    ) -> Self {
        let settings = &config.load_balancers;
        Self {
            servers: servers.clone(),
            facts: Facts {
                provider: settings.provider.clone(),
                serial: settings.serial,
                cascade_delete: settings.cascade_delete,
                max_shared: usize::try_from(settings.max_shared).unwrap_or(usize::MAX),
                cluster: context.cluster.uid.clone(),
            },
            config: config.clone(),
            identity: context.cluster.clone(),
            events: Arc::clone(events),
            versions: SharedRead::default(),
            security_groups: SharedRead::default(),
        }
    }

    fn cluster(&self) -> Option<&str> {
        self.facts.cluster.as_deref()
    }

    /// What Octavia can do. An error is not "nothing": features that are there would be taken away.
    async fn capabilities(&self) -> Result<Capabilities, CloudError> {
        let read = || async {
            let versions = self.servers.api.balancer_versions().await?;
            Capabilities::of(&versions, &self.facts.provider)
        };
        self.versions
            .no_older_than(CAPABILITIES_FRESH, read)
            .await
            .map(|can| *can)
    }

    async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Result<Vec<Result<Observed, CloudError>>, CloudError> {
        let listing = Listing::read(&self.servers.api).await?;
        let source = Source {
            api: &self.servers.api,
            listing: Some(&listing),
        };
        let mut observed = Vec::with_capacity(specs.len());
        for spec in specs {
            observed.push(self.observe_in(DesiredState::Present(spec), source).await);
        }
        Ok(observed)
    }
}

#[async_trait]
impl LoadBalancerDriver for OpenStackBalancers {
    type Observed = Observed;
    type Step = Step;

    async fn observe(&self, desired: DesiredState<'_>) -> Result<Observed, CloudError> {
        let source = Source {
            api: &self.servers.api,
            listing: None,
        };
        self.observe_in(desired, source).await
    }

    fn plan(&self, desired: DesiredState<'_>, have: &Observed) -> Result<Vec<Step>, CloudError> {
        plan::plan(desired, have, &self.facts)
    }

    async fn execute(
        &self,
        desired: DesiredState<'_>,
        _have: &Observed,
        step: &Step,
    ) -> Executed<Observed> {
        Ok((self.execute_step(desired, step).await?, None))
    }

    fn report(&self, desired: DesiredState<'_>, have: &Observed) -> Report {
        report(desired, have, &self.config)
    }

    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        let is_ovn = self.facts.provider == "ovn";
        let known = self.versions.latest();
        let features = Features {
            drain: !is_ovn,
            targets_by_address: true,
            udp: true,
            sctp: true,
            mixed_protocols: true,
            source_ranges: known.map_or(!is_ovn, |can| can.allowed_cidrs),
            client_affinity: true,
            proxy_protocol: if is_ovn {
                ProxyProtocols::None
            } else {
                ProxyProtocols::Both
            },
            internal: true,
            chosen_address: true,
            healthy_threshold: true,
            shared: true,
            ..Features::default()
        };
        let is_asked = key::ENABLE_HEALTH_MONITOR
            .get(&balancer_ref.annotations)
            .ok()
            .flatten();
        let is_checked = is_asked.unwrap_or(self.config.load_balancers.create_monitor);
        BalancerProfile {
            health_check: if is_checked {
                HealthCheckPolicy::LocalAware
            } else {
                HealthCheckPolicy::Off
            },
            ..BalancerProfile::with_features(features)
        }
    }

    /// Services that share a load balancer wait for each other.
    fn lock_keys(&self, balancer_ref: &BalancerRef) -> BTreeSet<LockKey> {
        let shared = written_id(balancer_ref).map(|id| LockKey::new(format!("load balancer {id}")));
        [LockKey::of_service(balancer_ref)]
            .into_iter()
            .chain(shared)
            .collect()
    }

    fn points_at_balancer(&self, balancer_ref: &BalancerRef) -> bool {
        balancer_ref.points_at_balancer() || written_id(balancer_ref).is_some()
    }

    fn unknown_annotations(&self, given: &BTreeMap<String, String>) -> Vec<UnknownAnnotation> {
        key::unknown(given)
    }

    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        let name = key::NODE_SELECTOR.name();
        let configured = self.config.load_balancers.node_selector.as_ref();
        let Some(text) = annotations.get(name).or(configured) else {
            return Ok(None);
        };
        let selector = node_selector(text);
        selector
            .map(Some)
            .map_err(|expected| Problem::unexpected(name, text, expected))
    }

    async fn observe_many(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Observed, CloudError>> {
        // Five lists are more than a few Services cost one by one.
        if let [spec] = specs {
            return vec![self.observe(DesiredState::Present(spec)).await];
        }
        one_each(specs, self.observe_all(specs).await)
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        self.list_owned().await
    }

    async fn unproven(&self) -> Result<Vec<UnprovenResource>, CloudError> {
        self.list_unproven().await
    }
}

/// What an observation says about the desired state. Pure.
fn report(desired: DesiredState<'_>, have: &Observed, config: &Config) -> Report {
    let mut all = have.found.iter().chain(&have.surplus);
    let busy = all.find(|found| found.is_pending()).map(|found| {
        let (id, status) = (&found.balancer.id, &found.balancer.provisioning_status);
        Busy {
            why: format!("load balancer {id} is in {status}"),
            check_after: PENDING,
        }
    });
    let Some(found) = have.found.first().filter(|_| desired.spec().is_some()) else {
        let is_released = matches!(desired, DesiredState::Released(_));
        let stays = |it: &&Found| is_released || it.sharing.outlives_service();
        let kept = have.found.iter().filter(stays);
        return Report {
            busy,
            ..Report::keeping(kept.map(|it| it.balancer.in_words()))
        };
    };
    // Of one that is pending, the parts are not read.
    let recording = if found.is_pending() {
        Report::default()
    } else {
        found.sharing.recording(desired.balancer_ref())
    };
    let mut report = Report {
        status: status(desired.balancer_ref(), have, found, config),
        busy: busy.or(recording.busy),
        unmet: plan::unmet(have),
        changes: recording.changes,
        ..Report::default()
    };
    if plan::is_rebuilt(desired.balancer_ref(), found) {
        // It is about to be deleted, and a new one has another ID.
        let id = key::LOAD_BALANCER_ID.name().to_owned();
        report.changes.annotations.insert(id, None);
        return report;
    }
    let mut write = |key: &str, value: String| report.changes.annotate(key, value);
    write(key::LOAD_BALANCER_ID.name(), found.balancer.id.clone());
    if let Some(address) = address(have, found) {
        write(key::LOAD_BALANCER_ADDRESS.name(), address.to_string());
    }
    report
}

/// The address that clients use: the floating IP, or the load balancer's own where it gets none.
fn address(have: &Observed, found: &Found) -> Option<IpAddr> {
    let own = found.balancer.vip_address;
    let asked = have.asked.as_ref()?;
    let needs_no_other = asked.is_internal
        || own.is_some_and(|ip| ip.is_ipv6())
        || matches!(have.floating, floating_ip::Floating::NoNetwork);
    match &found.floating_ip {
        Some(floating) if !asked.is_internal => Some(floating.floating_ip_address),
        _ => own.filter(|_| needs_no_other),
    }
}

fn status(
    balancer_ref: &BalancerRef,
    have: &Observed,
    found: &Found,
    config: &Config,
) -> LoadBalancerStatus {
    let address = address(have, found);
    let is_proxied = have.asked.as_ref().is_some_and(|asked| asked.is_proxied);
    let settings = &config.load_balancers;
    let hostname = have.asked.as_ref().and_then(|asked| asked.hostname.clone());
    // Pods would else go past the load balancer, and the PROXY protocol with it.
    let of_address = address.filter(|_| is_proxied && settings.ingress_hostname);
    let of_address = of_address.map(|ip| format!("{ip}.{}", settings.ingress_hostname_suffix));
    let hostname = hostname.or(of_address).filter(|_| address.is_some());
    let mut ingress = ingress(hostname.as_ref(), address, is_proxied);
    if have.asked.as_ref().is_some_and(Desired::changes_traffic) {
        ingress = through_balancer(balancer_ref, ingress);
    }
    let asked = have.asked.as_ref();
    LoadBalancerStatus {
        health: health::target_health(found),
        draining: asked.map_or(0, |asked| plan::listeners::draining(asked, found)),
        ..LoadBalancerStatus::of(&found.balancer.id, ingress)
    }
}
