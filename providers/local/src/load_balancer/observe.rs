//! What is there, and whose it is.

use std::collections::BTreeSet;
use std::net::IpAddr;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerRef, CloudError, DesiredState, ErrorKind, LoadBalancerSpec, Priority, ServiceRef,
};
use cloudkeel_toolkit::{
    BalancerFinder, Classified, CloudBalancer, HasListenerKey, ListenerKey, LookupError, Owner,
    SHARED_LABEL, ShareableBalancer, SharedList, Sharing, balancer_name,
};

use super::desired::Desired;
use super::{LocalBalancers, OWNER, SERVICE_UID};
use crate::annotations::BALANCER_ID;
use crate::client::requests;
use crate::wire::{Balancer, Machine, TargetAt};

/// The reason of the event about a balancer that does not work.
const PROBLEM: &str = "LoadBalancerProblem";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Observed {
    /// The balancer that is ours or will be.
    pub(super) found: Classified<Balancer>,
    /// What the Service asks for, without machines that the cloud does not know.
    pub(super) desired: Option<Desired>,
    /// Which of its parts are the Service's.
    pub(super) sharing: Sharing,
}

impl CloudBalancer for Balancer {
    const NOUN: &'static str = "balancer";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn addresses(&self) -> Vec<IpAddr> {
        self.addresses.clone()
    }
}

impl ShareableBalancer for Balancer {
    type Target = TargetAt;

    fn is_marked_shared(&self) -> bool {
        self.labels.contains_key(SHARED_LABEL)
    }

    fn listener_keys(&self) -> impl Iterator<Item = ListenerKey> {
        self.listeners.iter().map(HasListenerKey::listener_key)
    }

    fn targets(&self) -> impl Iterator<Item = TargetAt> {
        self.targets.iter().map(|target| target.at)
    }
}

#[async_trait]
impl BalancerFinder for LocalBalancers {
    type Balancer = Balancer;

    async fn labelled(&self, service: &ServiceRef) -> Result<Vec<Balancer>, CloudError> {
        let request = requests::balancers_with_label(SERVICE_UID, &service.uid);
        self.api.list_own(request).await
    }

    async fn with_id(&self, id: &str) -> Result<Balancer, CloudError> {
        self.api.fetch(requests::balancer(id)).await
    }

    async fn named(&self, name: &str) -> Result<Vec<Balancer>, CloudError> {
        self.api.list_own(requests::balancers_named(name)).await
    }

    async fn all(&self) -> Result<Vec<Balancer>, CloudError> {
        self.api
            .list_own(requests::balancers(Priority::Normal))
            .await
    }

    fn shared_list(&self) -> Option<&SharedList<Balancer>> {
        Some(&self.list)
    }

    fn is_labelled(&self, balancer: &Balancer, service: &ServiceRef) -> bool {
        OWNER.is_labelled(&balancer.labels, service)
    }

    fn written_id<'a>(&self, balancer_ref: &'a BalancerRef) -> Option<&'a str> {
        let written = balancer_ref.annotations.get(BALANCER_ID.name());
        written.map(String::as_str)
    }

    fn owner(&self, balancer: &Balancer, balancer_ref: &BalancerRef) -> Owner {
        OWNER.owner(
            &balancer.labels,
            balancer_ref,
            self.facts.cluster.as_deref(),
        )
    }
}

impl LocalBalancers {
    pub(super) async fn observe_one(
        &self,
        desired: DesiredState<'_>,
    ) -> Result<Observed, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let DesiredState::Present(spec) = desired else {
            let found = self.find_for_removal(balancer_ref).await?;
            let sharing = Sharing::of_leaving(balancer_ref, &found);
            self.events.shared_balancer_left(desired, &found, &sharing);
            return Ok(Observed {
                found,
                desired: None,
                sharing,
            });
        };
        let found = self.find(balancer_ref, &balancer_name(spec)).await?;
        let observed = self.resolve_targets(spec, found).await?;
        if let Some(desired) = &observed.desired {
            let service = &balancer_ref.service;
            let effect = "gets no traffic yet";
            self.events.unresolved(service, &desired.targets, effect);
        }
        self.report_problems(spec, &observed);
        Ok(observed)
    }

    /// What the Service asks for, with the machines of its targets looked up.
    pub(super) async fn resolve_targets(
        &self,
        spec: &LoadBalancerSpec,
        found: Classified<Balancer>,
    ) -> Result<Observed, CloudError> {
        let mut desired = Desired::of(spec, &self.facts);
        let new = new_machines(&desired, &found);
        desired.leave_out(&self.unknown_among(&new, Priority::Normal).await?);
        observed(spec, found, desired)
    }

    /// One list of balancers and one look-up of machines for all specs.
    pub(super) async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Result<Vec<Result<Observed, CloudError>>, CloudError> {
        let all = || self.api.list_own(requests::balancers(Priority::Background));
        let all = self.list.all(all).await?;
        let observe = |spec: &LoadBalancerSpec| {
            let found = self.find_among(&all, &spec.balancer_ref, &balancer_name(spec))?;
            observed(spec, found, Desired::of(spec, &self.facts))
        };
        let mut all: Vec<Result<Observed, CloudError>> = specs.iter().map(observe).collect();
        let new = all.iter().flatten().filter_map(|seen| {
            let desired = seen.desired.as_ref()?;
            Some(new_machines(desired, &seen.found))
        });
        let new: BTreeSet<u64> = new.flatten().collect();
        let unknown = self.unknown_among(&new, Priority::Background).await?;
        for seen in all.iter_mut().flatten() {
            if let Some(desired) = &mut seen.desired {
                desired.leave_out(&unknown);
            }
        }
        Ok(all)
    }

    /// Those of these machines that the cloud does not know. It would refuse all new targets for one
    /// of them.
    async fn unknown_among(
        &self,
        new: &BTreeSet<u64>,
        priority: Priority,
    ) -> Result<BTreeSet<u64>, CloudError> {
        if new.is_empty() {
            return Ok(BTreeSet::new());
        }
        let ids: Vec<u64> = new.iter().copied().collect();
        let found = self.api.machines(&ids, priority).await;
        let found: Vec<Machine> = found.map_err(|error| match error {
            LookupError::Cloud(error) => error,
            LookupError::OtherScope(now) => {
                let message = format!("the machines of targets were looked up in {now}");
                CloudError::new("look up targets", ErrorKind::Denied, message)
            }
        })?;
        let found = found.iter().filter(|machine| machine.is_alive());
        let found: BTreeSet<u64> = found.map(|machine| machine.id).collect();
        Ok(new.difference(&found).copied().collect())
    }

    /// The cloud did what it was asked to and cannot make it work, which only the operator can change.
    fn report_problems(&self, spec: &LoadBalancerSpec, seen: &Observed) {
        let ours = seen.found.ours.iter();
        for problem in ours.flat_map(|balancer| &balancer.problems) {
            let message = format!("the load balancer does not work: {problem}");
            self.events
                .warn(&spec.balancer_ref.service, PROBLEM, message);
        }
    }
}

/// What is there and asked for.
pub(super) fn observed(
    spec: &LoadBalancerSpec,
    found: Classified<Balancer>,
    desired: Desired,
) -> Result<Observed, CloudError> {
    let listeners = desired.listeners.iter().map(HasListenerKey::listener_key);
    let places = desired.targets.places.keys();
    Ok(Observed {
        sharing: Sharing::of(&spec.balancer_ref, &found, listeners, places)?,
        found,
        desired: Some(desired),
    })
}

/// Machines that would become targets.
fn new_machines(desired: &Desired, found: &Classified<Balancer>) -> BTreeSet<u64> {
    let present = found.balancer().into_iter();
    let present = present.flat_map(|balancer| &balancer.targets);
    let present: BTreeSet<TargetAt> = present.map(|target| target.at).collect();
    let places = desired.targets.places.keys();
    places
        .filter_map(|at| match at {
            TargetAt::Machine(id) if !present.contains(at) => Some(*id),
            TargetAt::Machine(_) | TargetAt::Ip(_) => None,
        })
        .collect()
}
