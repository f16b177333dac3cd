//! What is there, whose it is, and what the Service asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerRef, CloudError, DesiredState, Failures, LoadBalancerSpec, Priority, ServiceRef, names,
};
use cloudkeel_toolkit::{
    BalancerFinder, Capacity, Classified, CloudBalancer, HasListenerKey, ListenerKey, Namesakes,
    Owner, SHARED_LABEL, ShareableBalancer, SharedList, Sharing, unresolved,
};

use super::HetznerBalancers;
use super::certificate::{self, CertificateSource, Certificates};
use super::desired::Desired;
use super::owner_labels::{OWNER, SERVICE_UID};
use super::plan::capacity;
use super::service::{supported, unsupported};
use super::targets::{Dedicated, TargetAt, Wanted, is_dedicated, place_of};
use crate::annotations::CERTIFICATE_TYPE;
use crate::client::Login;
use crate::wire::{BalancerType, Certificate, LoadBalancer};

const OPERATION: &str = "observe load balancer";

/// The type of new balancers if nothing else is asked for.
pub(super) const DEFAULT_TYPE: &str = "lb11";

/// How long the list of types serves.
const TYPES_FRESH: Duration = Duration::from_hours(1);

/// How old a list of servers may be that says who is in the network.
const SERVERS_FRESH: Duration = Duration::from_secs(30);

const TYPE_UNCONFIGURED: &str = "LoadBalancerTypeUnconfigured";
const TYPE_DEPRECATED: &str = "LoadBalancerTypeDeprecated";
const UNSUPPORTED_PROTOCOL: &str = "UnsupportedProtocolConfigured";
const MAX_TARGETS_REACHED: &str = "MaxTargetsReached";
const ROBOT_UNAVAILABLE: &str = "RobotUnavailable";
const PROTECTED: &str = "LoadBalancerProtected";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Observed {
    /// The balancer that is ours or will be.
    pub(super) found: Classified<LoadBalancer>,
    /// What the Service asks for, if it is not being deleted.
    pub(super) asked: Option<Asked>,
    pub(super) type_change: BalancerTypeChange,
    pub(super) certificates: Certificates,
    pub(super) dedicated: Dedicated,
    /// Targets that should be reached through the network and are not in it.
    pub(super) outside: BTreeSet<u64>,
    /// Whether it took no more targets a moment ago.
    pub(super) is_full: bool,
    /// Which of its parts are the Service's.
    pub(super) sharing: Sharing,
    /// Certificates that are deleted with the Service.
    pub(super) left_certificates: Vec<u64>,
}

/// What a Service asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(super) desired: Desired,
    pub(super) targets: Wanted,
}

/// The type that a balancer should have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum BalancerTypeChange {
    /// The one that it has.
    #[default]
    None,
    /// This one.
    To(BalancerType),
    /// One that cannot be had or could not be looked up, and why.
    Unobtainable(Failures),
}

impl ShareableBalancer for LoadBalancer {
    type Target = TargetAt;

    fn is_marked_shared(&self) -> bool {
        self.labels.contains_key(SHARED_LABEL)
    }

    fn listener_keys(&self) -> impl Iterator<Item = ListenerKey> {
        self.services.iter().map(HasListenerKey::listener_key)
    }

    fn targets(&self) -> impl Iterator<Item = TargetAt> {
        let targets = self.targets.iter().filter_map(place_of);
        targets.map(|(at, _)| at)
    }
}

impl CloudBalancer for LoadBalancer {
    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn addresses(&self) -> Vec<IpAddr> {
        let public = [self.public_net.ipv4.ip, self.public_net.ipv6.ip];
        let private = self.private_net.iter().map(|net| net.ip);
        public.into_iter().flatten().chain(private).collect()
    }

    fn service_uid(&self) -> Option<&str> {
        self.labels.get(SERVICE_UID).map(String::as_str)
    }
}

#[async_trait]
impl BalancerFinder for HetznerBalancers {
    type Balancer = LoadBalancer;

    async fn labelled(&self, service: &ServiceRef) -> Result<Vec<LoadBalancer>, CloudError> {
        let api = &self.servers.api;
        let request = api.labelled::<LoadBalancer>(SERVICE_UID, &service.uid);
        api.all(request).await
    }

    async fn with_id(&self, id: &str) -> Result<LoadBalancer, CloudError> {
        let number = id.parse().map_err(|_| {
            let key = names::ADOPT.name();
            let message = format!("{key}: {id:?}: expected the number of a load balancer");
            CloudError::invalid(OPERATION, message)
        })?;
        self.servers.api.get(&number, Priority::Normal).await
    }

    async fn named(&self, name: &str) -> Result<Vec<LoadBalancer>, CloudError> {
        let api = &self.servers.api;
        api.all(api.named::<LoadBalancer>(name)).await
    }

    async fn all(&self) -> Result<Vec<LoadBalancer>, CloudError> {
        self.servers.api.every(Priority::Normal).await
    }

    fn shared_list(&self) -> Option<&SharedList<LoadBalancer>> {
        Some(&self.list)
    }

    fn is_labelled(&self, balancer: &LoadBalancer, service: &ServiceRef) -> bool {
        OWNER.is_labelled(&balancer.labels, service)
    }

    fn owner(&self, balancer: &LoadBalancer, balancer_ref: &BalancerRef) -> Owner {
        OWNER.owner(
            &balancer.labels,
            balancer_ref,
            self.facts.cluster.as_deref(),
        )
    }

    fn namesakes(&self) -> Namesakes {
        if self.facts.defaults.adopt_by_name {
            Namesakes::Adopted
        } else {
            Namesakes::Refused
        }
    }
}

impl HetznerBalancers {
    pub(super) async fn observe_one(
        &self,
        desired: DesiredState<'_>,
    ) -> Result<Observed, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let DesiredState::Present(spec) = desired else {
            let found = self.find_for_removal(balancer_ref).await?;
            let sharing = Sharing::of_leaving(balancer_ref, &found);
            self.report_protected(balancer_ref, &found.ours);
            self.events.shared_balancer_left(desired, &found, &sharing);
            return Ok(Observed {
                left_certificates: self.left_certificates(desired, &found).await?,
                found,
                sharing,
                ..Observed::default()
            });
        };
        let desired = Desired::of(spec, &self.facts.defaults);
        let found = self.find(balancer_ref, &desired.name).await?;
        let (api, listed) = (&self.servers.api, None);
        let source = CertificateSource { api, listed };
        let observed = self.resolve(spec, desired, found, source).await?;
        self.report_notices(spec, &observed);
        Ok(observed)
    }

    /// Certificates that were issued for a Service that goes. Where only its labels are known, they are looked for all the same.
    async fn left_certificates(
        &self,
        desired: DesiredState<'_>,
        found: &Classified<LoadBalancer>,
    ) -> Result<Vec<u64>, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let annotations = &balancer_ref.annotations;
        let kind = annotations.get(CERTIFICATE_TYPE.name());
        let is_managed = annotations.is_empty() || kind.is_some_and(|kind| kind == "managed");
        if !is_managed || matches!(desired, DesiredState::Released(_)) {
            return Ok(Vec::new());
        }
        let (api, cluster) = (&self.servers.api, self.facts.cluster.as_ref());
        let source = CertificateSource { api, listed: None };
        let issued = source.of(&balancer_ref.service.uid).await?;
        let issued = issued.iter().filter(|it| it.goes(cluster, &found.ours));
        Ok(issued.map(|it| it.id).collect())
    }

    /// One list of balancers, and one of certificates if any are wanted, for all specs.
    pub(super) async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Result<Vec<Result<Observed, CloudError>>, CloudError> {
        let api = &self.servers.api;
        let all = self.list.all(|| api.every(Priority::Background)).await?;
        let desired = |spec| Desired::of(spec, &self.facts.defaults);
        let desired: Vec<_> = specs.iter().map(desired).collect();
        let certificates = if desired.iter().any(certificate::needs_list) {
            api.every::<Certificate>(Priority::Background).await?
        } else {
            Vec::new()
        };
        let listed = Some(&*certificates);
        let source = CertificateSource { api, listed };
        let mut observed = Vec::with_capacity(specs.len());
        for (spec, desired) in specs.iter().zip(desired) {
            let found = self.find_among(&all, &spec.balancer_ref, &desired.name);
            observed.push(match found {
                Ok(found) => self.resolve(spec, desired, found, source).await,
                Err(error) => Err(error),
            });
        }
        Ok(observed)
    }

    /// Finds what the Service refers to by name.
    pub(super) async fn resolve(
        &self,
        spec: &LoadBalancerSpec,
        desired: Desired,
        found: Classified<LoadBalancer>,
        source: CertificateSource<'_>,
    ) -> Result<Observed, CloudError> {
        let balancer = found.balancer();
        let dedicated = self.dedicated(spec).await;
        let targets = Wanted::of(spec, &desired, &dedicated);
        let ports = supported(spec).map(HasListenerKey::listener_key);
        let places = targets.targets.places.keys();
        let sharing = Sharing::of(&spec.balancer_ref, &found, ports, places)?;
        let type_change = if sharing.is_shared() {
            BalancerTypeChange::None
        } else {
            self.type_change(&desired, balancer).await?
        };
        let cluster = self.facts.cluster.as_deref();
        let certificates = certificate::find(source, &desired, &spec.balancer_ref, cluster).await;
        let certificates =
            certificates.or_else(|error| unresolved(error).map(Certificates::Unobtainable))?;
        let outside = match balancer {
            Some(balancer) if self.facts.reaches_privately(&desired) => {
                self.outside(&targets.misrouted(balancer, true)).await
            }
            _ => BTreeSet::new(),
        };
        Ok(Observed {
            sharing,
            left_certificates: Vec::new(),
            is_full: balancer.is_some_and(|balancer| self.full.contains(&balancer.id)),
            asked: Some(Asked { desired, targets }),
            type_change,
            certificates,
            dedicated,
            outside,
            found,
        })
    }

    /// The type that the balancer should have. One that cannot be had keeps nothing else back.
    async fn type_change(
        &self,
        asked: &Desired,
        balancer: Option<&LoadBalancer>,
    ) -> Result<BalancerTypeChange, CloudError> {
        let default = balancer.is_none().then_some(DEFAULT_TYPE);
        let Some(wanted) = asked.load_balancer_type.as_deref().or(default) else {
            return Ok(BalancerTypeChange::None);
        };
        if balancer.is_some_and(|balancer| balancer.load_balancer_type.name == wanted) {
            return Ok(BalancerTypeChange::None);
        }
        match self.orderable(wanted).await {
            Ok(wanted) => Ok(BalancerTypeChange::To(wanted)),
            Err(error) => unresolved(error).map(BalancerTypeChange::Unobtainable),
        }
    }

    /// Those of these servers that are known not to be in the network. Nothing is taken out for them.
    async fn outside(&self, misrouted: &[u64]) -> BTreeSet<u64> {
        if misrouted.is_empty() {
            return BTreeSet::new();
        }
        let Ok(servers) = self.servers.no_older_than(SERVERS_FRESH).await else {
            return BTreeSet::new();
        };
        let network = self.facts.network;
        let outside = servers.iter();
        let outside = outside.filter(|server| misrouted.contains(&server.id));
        let outside = outside.filter(|server| network.and_then(|n| server.ip_in(n)).is_none());
        outside.map(|server| server.id).collect()
    }

    /// A type by its name or ID, if it can still be had.
    async fn orderable(&self, wanted: &str) -> Result<BalancerType, CloudError> {
        let read = || self.servers.api.every(Priority::Normal);
        let types: Arc<Vec<BalancerType>> = self.types.no_older_than(TYPES_FRESH, read).await?;
        let id = wanted.parse().ok();
        let mut all = types.iter();
        let Some(found) = all.find(|known| known.name == wanted || Some(known.id) == id) else {
            let known: Vec<_> = types.iter().map(|known| known.name.as_str()).collect();
            let message = format!(
                "there is no load balancer type {wanted:?}: expected one of {}",
                known.join(", ")
            );
            return Err(CloudError::invalid(OPERATION, message));
        };
        match found.deprecation {
            Some(gone) if gone.unavailable_after <= self.clock.now() => {
                let message = format!(
                    "load balancer type {} is unavailable since {}: choose another one",
                    found.name, gone.unavailable_after
                );
                Err(CloudError::invalid(OPERATION, message))
            }
            _ => Ok(found.clone()),
        }
    }

    /// The addresses of dedicated servers, if any of them is a target.
    async fn dedicated(&self, spec: &LoadBalancerSpec) -> Dedicated {
        let robot = match &self.robot {
            Login::Off => return Dedicated::Off,
            Login::NoCredentials => return Dedicated::NoCredentials,
            Login::Known(robot) => robot,
        };
        let mut targets = spec.targets.values();
        if !targets.any(|target| is_dedicated(&target.node)) {
            return Dedicated::Known(BTreeMap::new());
        }
        match robot.servers().await {
            Ok(servers) => {
                let addresses = servers.iter().map(|s| (s.number, s.ipv4()));
                Dedicated::Known(addresses.collect())
            }
            // Only what stays the same, so that it is recorded once.
            Err(error) => Dedicated::Unknown(error.kind().to_string()),
        }
    }

    /// Records Events about options of the Service that cannot be met.
    fn report_notices(&self, spec: &LoadBalancerSpec, seen: &Observed) {
        let Some(Asked { desired, targets }) = &seen.asked else {
            return;
        };
        let service = &spec.balancer_ref.service;
        for (reason, message) in notices(spec, desired, targets, seen) {
            self.events.warn(service, reason, message);
        }
        let unsupported = &desired.unsupported;
        self.events.unsupported(service, "Hetzner", unsupported);
        for event in &targets.events {
            self.events.record(event.clone());
        }
    }

    fn report_protected(&self, balancer_ref: &BalancerRef, ours: &[LoadBalancer]) {
        for balancer in ours.iter().filter(|balancer| balancer.protection.delete) {
            let message = format!(
                "{}: it stays although the Service is deleted; to remove it, disable its deletion \
                 protection and delete it",
                protected(balancer)
            );
            self.events.warn(&balancer_ref.service, PROTECTED, message);
        }
    }
}

/// Events about what the Service asks for: their reasons and messages. Pure.
fn notices(
    spec: &LoadBalancerSpec,
    desired: &Desired,
    targets: &Wanted,
    seen: &Observed,
) -> Vec<(&'static str, String)> {
    let mut notices = Vec::new();
    if desired.load_balancer_type.is_none() {
        let message = format!(
            "no load balancer type is set: {DEFAULT_TYPE} is used for a new one, and an existing \
             one is left as it is"
        );
        notices.push((TYPE_UNCONFIGURED, message));
    }
    let present = seen.found.balancer();
    let wanted = match &seen.type_change {
        BalancerTypeChange::To(wanted) => Some(wanted),
        _ => present.map(|balancer| &balancer.load_balancer_type),
    };
    if let Some(wanted) = wanted.filter(|wanted| wanted.deprecation.is_some()) {
        let message = format!(
            "load balancer type {} is deprecated: choose another one",
            wanted.name
        );
        notices.push((TYPE_DEPRECATED, message));
    }
    notices.extend(unsupported(spec).map(|port| {
        let (port, protocol) = (port.port, port.protocol);
        let message =
            format!("port {port} is left out: Hetzner's load balancers do not serve {protocol}");
        (UNSUPPORTED_PROTOCOL, message)
    }));
    if let Dedicated::Unknown(why) = &seen.dedicated {
        let message =
            format!("Robot does not answer ({why}): targets of dedicated servers stay as they are");
        notices.push((ROBOT_UNAVAILABLE, message));
    }
    let too_many = targets_over_limit(targets, seen);
    notices.extend(too_many.map(|over| (MAX_TARGETS_REACHED, over.message)));
    notices
}

/// The targets that the balancer does not take, or will not once it is there.
pub(super) fn targets_over_limit(targets: &Wanted, seen: &Observed) -> Option<Failures> {
    match (seen.found.balancer(), &seen.type_change) {
        (Some(balancer), _) => {
            let capacity = capacity(seen, balancer);
            let diff = targets.diff(balancer, capacity, &seen.sharing);
            diff.over_limit(capacity.planned)
        }
        (None, BalancerTypeChange::To(wanted)) => {
            let (none, limit) = (BTreeMap::new(), wanted.max_targets);
            let capacity = Capacity::of(limit);
            let diff = targets.targets.diff(&none, 0, capacity, |_| false);
            diff.over_limit(limit)
        }
        (None, _) => None,
    }
}

/// A balancer that must not be deleted, in words.
pub(super) fn protected(balancer: &LoadBalancer) -> String {
    format!("{} is protected from deletion", balancer.in_words())
}
