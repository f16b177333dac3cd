//! What is there, and whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerFinder, Claim, Claimable, CloudError, ErrorKind, Event, Failures, Judged,
    LoadBalancerSpec, Namesakes, Owner, Priority, ServiceRef, SharedList, Wish, names,
};

use super::HetznerBalancers;
use super::certificate::{self, Book, Certificates};
use super::desired::Desired;
use super::marks::{SERVICE_UID, owner};
use super::plan::room;
use super::service::unsupported;
use super::targets::{Dedicated, TargetAt, Wanted, difference, is_dedicated, turned};
use crate::client::Login;
use crate::wire::{BalancerType, LoadBalancer, Server};

const OPERATION: &str = "observe load balancer";

/// The type of new balancers if nothing else is said.
const DEFAULT_TYPE: &str = "lb11";

/// How long the list of types serves.
const TYPES_FRESH: Duration = Duration::from_hours(1);

/// How old a list of servers may be that says who is in the network.
const SERVERS_FRESH: Duration = Duration::from_secs(30);

const TYPE_UNCONFIGURED: &str = "LoadBalancerTypeUnconfigured";
const TYPE_DEPRECATED: &str = "LoadBalancerTypeDeprecated";
const UNSUPPORTED_PROTOCOL: &str = "UnsupportedProtocolConfigured";
const MAX_TARGETS_REACHED: &str = "MaxTargetsReached";
const UNSUPPORTED_OPTION: &str = "UnsupportedOption";
const PROTECTED: &str = "LoadBalancerProtected";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Observed {
    /// The balancer that is ours or will be.
    pub(super) found: Judged<LoadBalancer>,
    pub(super) kind: WantedType,
    pub(super) certificates: Certificates,
    pub(super) dedicated: Dedicated,
    /// Targets that should be reached through the network and are not in it.
    pub(super) outside: BTreeSet<u64>,
    /// Whether it had no room a moment ago.
    pub(super) full: bool,
}

/// The type that a balancer should have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum WantedType {
    /// The one that it has.
    #[default]
    AsItIs,
    /// This one.
    Change(BalancerType),
    /// One that cannot be had or could not be looked up, and why.
    Unobtainable(Failures),
}

impl Claimable for LoadBalancer {
    const THING: &'static str = "load balancer";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[async_trait]
impl BalancerFinder for HetznerBalancers {
    type Balancer = LoadBalancer;

    async fn marked(&self, service: &ServiceRef) -> Result<Vec<LoadBalancer>, CloudError> {
        self.api.balancers_with(SERVICE_UID, &service.uid).await
    }

    async fn with_id(&self, id: &str) -> Result<LoadBalancer, CloudError> {
        let number = id.parse().map_err(|_| {
            let key = names::ADOPT.name();
            let message = format!("{key}: {id:?}: expected the number of a load balancer");
            CloudError::invalid(OPERATION, message)
        })?;
        self.api.balancer(number).await
    }

    async fn named(&self, name: &str) -> Result<Vec<LoadBalancer>, CloudError> {
        self.api.balancers_named(name).await
    }

    async fn all(&self) -> Result<Vec<LoadBalancer>, CloudError> {
        self.api.balancers(Priority::Normal).await
    }

    fn shared_list(&self) -> Option<&SharedList<LoadBalancer>> {
        Some(&self.list)
    }

    fn is_marked(&self, balancer: &LoadBalancer, service: &ServiceRef) -> bool {
        balancer.labels.get(SERVICE_UID) == Some(&service.uid)
    }

    fn owner(&self, balancer: &LoadBalancer, claim: &Claim) -> Owner {
        owner(&balancer.labels, claim, self.facts.cluster.as_deref())
    }

    fn namesakes(&self) -> Namesakes {
        if self.facts.defaults.adopt_by_name {
            Namesakes::TakenOver
        } else {
            Namesakes::InTheWay
        }
    }
}

impl HetznerBalancers {
    pub(super) async fn observe_one(&self, wish: Wish<'_>) -> Result<Observed, CloudError> {
        let claim = wish.claim();
        let Wish::Present(spec) = wish else {
            let found = self.find_going(claim).await?;
            self.tell_protected(claim, &found.ours);
            return Ok(Observed {
                found,
                ..Observed::default()
            });
        };
        let asked = Desired::of(spec, &self.facts.defaults);
        let found = self.find(claim, &asked.name).await?;
        let book = Book::Cloud(&self.api);
        let observed = self.complete(spec, &asked, found, book).await?;
        self.tell(spec, &asked, &observed);
        Ok(observed)
    }

    /// One list of balancers, and one of certificates if any are wanted, for all specs.
    pub(super) async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Result<Vec<Result<Observed, CloudError>>, CloudError> {
        let all = || self.api.balancers(Priority::Background);
        let all = self.list.all(all).await?;
        let asked: Vec<_> = specs
            .iter()
            .map(|spec| Desired::of(spec, &self.facts.defaults))
            .collect();
        let certificates = if asked.iter().any(certificate::needs_a_look) {
            self.api.certificates(Priority::Background).await?
        } else {
            Vec::new()
        };
        let book = Book::Listed(&certificates);
        let mut observed = Vec::with_capacity(specs.len());
        for (spec, asked) in specs.iter().zip(asked) {
            observed.push(match self.find_among(&all, &spec.claim, &asked.name) {
                Ok(found) => self.complete(spec, &asked, found, book).await,
                Err(error) => Err(error),
            });
        }
        Ok(observed)
    }

    /// Finds what the wish refers to by name.
    pub(super) async fn complete(
        &self,
        spec: &LoadBalancerSpec,
        asked: &Desired,
        found: Judged<LoadBalancer>,
        book: Book<'_>,
    ) -> Result<Observed, CloudError> {
        let balancer = found.balancer();
        let kind = self.wanted_type(asked, balancer).await?;
        let certificates = certificate::find(book, asked, &spec.claim).await;
        let certificates =
            certificates.or_else(|error| may_be_missing(error).map(Certificates::Unobtainable))?;
        let dedicated = self.dedicated(spec).await;
        let outside = match balancer {
            Some(balancer) if self.facts.reaches_privately(asked) => {
                let wanted = Wanted::of(spec, asked, &dedicated);
                self.outside(turned(&wanted, balancer, true)).await
            }
            _ => BTreeSet::new(),
        };
        Ok(Observed {
            full: balancer.is_some_and(|balancer| self.full.is_full(balancer.id)),
            kind,
            certificates,
            dedicated,
            outside,
            found,
        })
    }

    /// The type that the balancer should have. One that cannot be had keeps nothing else back.
    async fn wanted_type(
        &self,
        asked: &Desired,
        balancer: Option<&LoadBalancer>,
    ) -> Result<WantedType, CloudError> {
        let default = balancer.is_none().then_some(DEFAULT_TYPE);
        let Some(wanted) = asked.kind.as_deref().or(default) else {
            return Ok(WantedType::AsItIs);
        };
        if balancer.is_some_and(|balancer| balancer.kind.name == wanted) {
            return Ok(WantedType::AsItIs);
        }
        match self.orderable(wanted).await {
            Ok(kind) => Ok(WantedType::Change(kind)),
            Err(error) => may_be_missing(error).map(WantedType::Unobtainable),
        }
    }

    /// Those of these servers that are known not to be in the network. Nothing is taken out for them.
    async fn outside(&self, turned: Vec<TargetAt>) -> BTreeSet<u64> {
        if turned.is_empty() {
            return BTreeSet::new();
        }
        let Ok(servers) = self.fleet.no_older_than(SERVERS_FRESH).await else {
            return BTreeSet::new();
        };
        let is_inside = |server: &&Server| {
            let mut nets = server.private_net.iter();
            nets.any(|net| Some(net.network) == self.facts.network)
        };
        let outside = servers.iter().filter(|server| !is_inside(server));
        let outside = outside.map(|server| TargetAt::Server(server.id));
        let outside: BTreeSet<_> = outside.filter(|at| turned.contains(at)).collect();
        let ids = outside.into_iter().filter_map(|at| match at {
            TargetAt::Server(id) => Some(id),
            TargetAt::Ip(_) => None,
        });
        ids.collect()
    }

    /// A type by its name or ID, if it can still be had.
    async fn orderable(&self, wanted: &str) -> Result<BalancerType, CloudError> {
        let types = self.types().await?;
        let id = wanted.parse().ok();
        let found = types
            .iter()
            .find(|kind| kind.name == wanted || Some(kind.id) == id);
        let Some(kind) = found else {
            let known: Vec<_> = types.iter().map(|kind| kind.name.as_str()).collect();
            let message = format!(
                "there is no load balancer type {wanted:?}: expected one of {}",
                known.join(", ")
            );
            return Err(CloudError::invalid(OPERATION, message));
        };
        match kind.deprecation {
            Some(gone) if gone.unavailable_after <= self.clock.now() => {
                let message = format!(
                    "load balancer type {} can no longer be had since {}",
                    kind.name, gone.unavailable_after
                );
                Err(CloudError::invalid(OPERATION, message))
            }
            _ => Ok(kind.clone()),
        }
    }

    async fn types(&self) -> Result<Arc<Vec<BalancerType>>, CloudError> {
        let read = || self.api.balancer_types();
        self.types.no_older_than(TYPES_FRESH, read).await
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
            // Only what stays the same, so that it is told once.
            Err(error) => Dedicated::Unknown(error.kind().to_string()),
        }
    }

    /// Tells what a person should know about the wish.
    fn tell(&self, spec: &LoadBalancerSpec, asked: &Desired, seen: &Observed) {
        let service = &spec.claim.service;
        let tell = |reason, message: String| {
            self.teller.tell(Event::warning(service, reason, message));
        };
        if asked.kind.is_none() {
            let message = format!(
                "no load balancer type is set: {DEFAULT_TYPE} is used for a new one, and an existing \
                 one is left as it is"
            );
            tell(TYPE_UNCONFIGURED, message);
        }
        let has = seen.found.balancer().map(|balancer| &balancer.kind);
        let kind = match &seen.kind {
            WantedType::Change(kind) => Some(kind),
            WantedType::AsItIs | WantedType::Unobtainable(_) => has,
        };
        if let Some(kind) = kind.filter(|kind| kind.deprecation.is_some()) {
            let message = format!("load balancer type {} is deprecated", kind.name);
            tell(TYPE_DEPRECATED, message);
        }
        for port in unsupported(spec) {
            let message = format!(
                "port {} is left out: Hetzner's load balancers do not serve {}",
                port.port, port.protocol
            );
            tell(UNSUPPORTED_PROTOCOL, message);
        }
        for what in &asked.not_honoured {
            let message = format!("Hetzner's load balancers cannot {what}");
            tell(UNSUPPORTED_OPTION, message);
        }
        let wanted = Wanted::of(spec, asked, &seen.dedicated);
        for event in &wanted.events {
            self.teller.tell(event.clone());
        }
        if let Dedicated::Unknown(why) = &seen.dedicated {
            let message = format!(
                "Robot does not answer ({why}): targets of dedicated servers stay as they are"
            );
            tell("RobotUnavailable", message);
        }
        let (takes, left_out) = match (seen.found.balancer(), &seen.kind) {
            (Some(balancer), _) => {
                let room = room(seen, balancer);
                let private = self.facts.reaches_privately(asked);
                let left_out = difference(&wanted, balancer, private, room).left_out;
                (room.then, left_out.len())
            }
            (None, WantedType::Change(kind)) => {
                let takes = kind.max_targets;
                (takes, wanted.places.len().saturating_sub(takes))
            }
            (None, WantedType::AsItIs | WantedType::Unobtainable(_)) => (0, 0),
        };
        if left_out > 0 {
            let message = format!(
                "the load balancer takes {takes} targets: {left_out} Nodes get no traffic from it"
            );
            tell(MAX_TARGETS_REACHED, message);
        }
    }

    fn tell_protected(&self, claim: &Claim, ours: &[LoadBalancer]) {
        for balancer in ours.iter().filter(|balancer| balancer.protection.delete) {
            let message = format!(
                "{}: it stays although the Service goes; to remove it, switch its deletion protection \
                 off and delete it",
                protected(balancer)
            );
            let event = Event::warning(&claim.service, PROTECTED, message);
            self.teller.tell(event);
        }
    }
}

/// A reference that cannot be resolved keeps nothing else back, unless the cloud refuses every call.
fn may_be_missing(error: CloudError) -> Result<Failures, CloudError> {
    match error.kind() {
        ErrorKind::Throttled { .. } | ErrorKind::Unauthenticated | ErrorKind::Cancelled => {
            Err(error)
        }
        ErrorKind::Invalid => Ok(Failures::invalid(error.message())),
        _ => Ok(Failures::from(&error)),
    }
}

/// A balancer that is no longer the Service's, in words.
pub(super) fn released(balancer: &LoadBalancer) -> String {
    format!("load balancer {} ({})", balancer.id, balancer.name)
}

/// A balancer that must not be deleted, in words.
pub(super) fn protected(balancer: &LoadBalancer) -> String {
    let (id, name) = (balancer.id, &balancer.name);
    format!("load balancer {id} ({name}) is protected from deletion")
}
