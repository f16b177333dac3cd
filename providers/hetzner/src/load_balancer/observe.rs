//! What is there, and whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerFinder, Claim, Claimable, CloudError, Event, Judged, LoadBalancerSpec, Namesakes,
    Owner, Priority, ServiceRef, Wish, names,
};
use tokio::time::Instant;

use super::HetznerBalancers;
use super::certificate::{self, Book, Certificates};
use super::desired::Desired;
use super::marks::{SERVICE_UID, owner};
use super::plan::room;
use super::service::unsupported;
use super::targets::{Dedicated, TargetAt, Wanted, difference, is_dedicated};
use crate::client::Login;
use crate::wire::{BalancerType, LoadBalancer};

const OPERATION: &str = "observe load balancer";

/// The type of new balancers if nothing else is said.
const DEFAULT_TYPE: &str = "lb11";

/// How long the list of types serves.
const TYPES_FRESH: Duration = Duration::from_hours(1);

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
    /// The type that the balancer should have, if it has another or is not there.
    pub(super) kind: Option<BalancerType>,
    pub(super) certificates: Certificates,
    pub(super) dedicated: Dedicated,
    /// Targets that the balancer did not take lately.
    pub(super) refused: BTreeSet<TargetAt>,
    /// Whether it had no room lately.
    pub(super) full: bool,
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
        let asked = Desired::of(spec, &self.facts.defaults)?;
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
        let all = self.api.balancers(Priority::Background).await?;
        let asked: Vec<_> = specs
            .iter()
            .map(|spec| Desired::of(spec, &self.facts.defaults))
            .collect();
        let certificates = if asked.iter().flatten().any(certificate::needs_a_look) {
            self.api.certificates(Priority::Background).await?
        } else {
            Vec::new()
        };
        let book = Book::Listed(&certificates);
        let mut observed = Vec::with_capacity(specs.len());
        for (spec, asked) in specs.iter().zip(asked) {
            let found = asked.and_then(|asked| {
                let found = self.find_among(&all, &spec.claim, &asked.name)?;
                Ok((asked, found))
            });
            observed.push(match found {
                Ok((asked, found)) => self.complete(spec, &asked, found, book).await,
                Err(error) => Err(error),
            });
        }
        Ok(observed)
    }

    /// Finds what the wish refers to by name.
    async fn complete(
        &self,
        spec: &LoadBalancerSpec,
        asked: &Desired,
        found: Judged<LoadBalancer>,
        book: Book<'_>,
    ) -> Result<Observed, CloudError> {
        let balancer = found.balancer();
        let kind = match (&asked.kind, balancer.map(|balancer| &balancer.kind.name)) {
            (Some(wanted), Some(has)) if wanted == has => None,
            (None, Some(_)) => None,
            (wanted, _) => {
                let wanted = wanted.as_deref().unwrap_or(DEFAULT_TYPE);
                Some(self.orderable(wanted).await?)
            }
        };
        let private = asked.use_private_ip;
        let refusals = balancer.map(|balancer| self.refusals.of(balancer.id, private));
        let (refused, full) = refusals.unwrap_or_default();
        Ok(Observed {
            kind,
            certificates: certificate::find(book, asked, &spec.claim).await?,
            dedicated: self.dedicated(spec).await,
            refused,
            full,
            found,
        })
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
        let mut known = self.types.lock().await;
        if let Some((at, types)) = &*known
            && at.elapsed() < TYPES_FRESH
        {
            return Ok(Arc::clone(types));
        }
        let types = Arc::new(self.api.balancer_types().await?);
        *known = Some((Instant::now(), Arc::clone(&types)));
        Ok(types)
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
        let kind = seen.kind.as_ref().or(has);
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
        if let Some(balancer) = seen.found.balancer() {
            let room = room(seen, balancer);
            let left_out = difference(&wanted, balancer, asked.use_private_ip, room).left_out;
            if !left_out.is_empty() {
                let message = format!(
                    "the load balancer takes {} targets: {} Nodes get no traffic from it",
                    room.limit,
                    left_out.len()
                );
                tell(MAX_TARGETS_REACHED, message);
            }
        }
    }

    fn tell_protected(&self, claim: &Claim, ours: &[LoadBalancer]) {
        for balancer in ours.iter().filter(|balancer| balancer.protection.delete) {
            let message = format!(
                "load balancer {} ({}) is protected from deletion: it is left as it is",
                balancer.id, balancer.name
            );
            let event = Event::warning(&claim.service, PROTECTED, message);
            self.teller.tell(event);
        }
    }
}
