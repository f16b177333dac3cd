//! What is there, whose it is, and what the Service asks for.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudkeel_api::{BalancerRef, CloudError, DesiredState, LoadBalancerSpec, Priority};
use cloudkeel_toolkit::{Candidates, Classified, CloudBalancer, Namesakes, Owner};

use super::certificate::FoundCertificate;
use super::desired::Desired;
use super::owner::{OWNER, TAG, labels, owner};
use super::{Balancers, is_disowned};
use crate::annotations::{LOAD_BALANCER_ID, NAME};
use crate::wire::LoadBalancer;

/// How old a list may be that shows a new target.
const TARGETS_FRESH: Duration = Duration::from_mins(1);
/// How old it may be if it does not.
const MISSING_FRESH: Duration = Duration::from_secs(5);
/// The reason of the event about Nodes that are no targets.
const TARGET_UNRESOLVED: &str = "TargetUnresolved";
/// The reason of the event about what cannot be as it is asked for, as the Go CCM's.
const CONFIG_ERROR: &str = "LoadBalancerConfigError";
const UNSUPPORTED_OPTION: &str = "UnsupportedOption";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Observed {
    /// The load balancer that is ours or will be.
    pub(super) found: Classified<LoadBalancer>,
    /// What the Service asks for, if it is not being deleted.
    pub(super) desired: Option<Desired>,
    pub(super) certificate: FoundCertificate,
    /// Whether the Service says that its load balancer is left alone.
    pub(super) is_disowned: bool,
    /// Our owner tag, if it is still there when the Service goes.
    pub(super) left_tag: Option<String>,
}

impl Observed {
    /// What keeps the load balancer from being as it is asked for.
    pub(super) fn problems(&self) -> impl Iterator<Item = String> {
        let asked = self
            .desired
            .iter()
            .flat_map(|desired| desired.problems.clone());
        let certificate = match &self.certificate {
            FoundCertificate::Missing(why) => Some(why.message.clone()),
            _ => None,
        };
        // Without its certificate, every port that needs it is wrong.
        match certificate {
            Some(why) => vec![why].into_iter(),
            None => asked.collect::<Vec<_>>().into_iter(),
        }
    }
}

impl CloudBalancer for LoadBalancer {
    const NOUN: &'static str = "load balancer";

    fn id(&self) -> String {
        self.id.clone()
    }

    fn name(&self) -> &str {
        &self.settings.name
    }
}

fn annotated_id(balancer_ref: &BalancerRef) -> Option<&String> {
    let id = balancer_ref.annotations.get(LOAD_BALANCER_ID.name());
    id.filter(|id| !id.is_empty())
}

/// The name that the load balancer of a Service has or would have.
fn name_of(spec: &LoadBalancerSpec) -> String {
    let own = spec.balancer_ref.annotations.get(NAME.name());
    let own = own.filter(|name| !name.is_empty()).cloned();
    own.unwrap_or_else(|| cloudkeel_toolkit::balancer_name(spec))
}

impl Balancers {
    async fn all(&self, priority: Priority) -> Result<Vec<LoadBalancer>, CloudError> {
        let request = self.droplets.api.list::<LoadBalancer>().priority(priority);
        self.droplets.api.all(request).await
    }

    fn owner(&self, balancer: &LoadBalancer, balancer_ref: &BalancerRef) -> Owner {
        owner(balancer, balancer_ref, self.facts.cluster.as_deref())
    }

    fn candidates(
        &self,
        all: &[LoadBalancer],
        balancer_ref: &BalancerRef,
        name: &str,
    ) -> Candidates<LoadBalancer> {
        Candidates::among(all, balancer_ref, name, |balancer| {
            OWNER.is_labelled(&labels(balancer), &balancer_ref.service)
                || self.owner(balancer, balancer_ref) == Owner::Us
        })
    }

    fn classify(
        &self,
        all: &[LoadBalancer],
        balancer_ref: &BalancerRef,
        name: &str,
    ) -> Result<Classified<LoadBalancer>, CloudError> {
        let candidates = self.candidates(all, balancer_ref, name);
        candidates.classify(balancer_ref, Namesakes::Refused, |balancer| {
            self.owner(balancer, balancer_ref)
        })
    }

    /// The load balancer that the Service names by its ID, else all of them: one list serves all callers.
    async fn visible(&self, balancer_ref: &BalancerRef) -> Result<Vec<LoadBalancer>, CloudError> {
        let is_adopting = balancer_ref.adopt.is_some();
        if let Some(id) = annotated_id(balancer_ref).filter(|_| !is_adopting) {
            match self.droplets.api.get(id, Priority::Normal).await {
                Ok(balancer) if self.owner(&balancer, balancer_ref) == Owner::Us => {
                    return Ok(vec![balancer]);
                }
                // It is another Service's, as in a copied manifest.
                Ok(_) => {}
                // Another may have been created since, whose ID was not written.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let all = self.list.fresh(|| self.all(Priority::Normal)).await?;
        Ok(all.to_vec())
    }

    pub(super) async fn observe_one(
        &self,
        desired: DesiredState<'_>,
    ) -> Result<Observed, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let is_disowned = is_disowned(&balancer_ref.annotations)?;
        let all = self.visible(balancer_ref).await?;
        if let (DesiredState::Present(spec), false) = (desired, is_disowned) {
            let found = self.classify(&all, balancer_ref, &name_of(spec))?;
            let observed = self.resolve(spec, found).await?;
            self.report_notices(spec, &observed);
            return Ok(observed);
        }
        let candidates = self.candidates(&all, balancer_ref, "");
        let found = candidates.for_removal(|balancer| self.owner(balancer, balancer_ref));
        let is_leaving = matches!(desired, DesiredState::Absent(_)) && !is_disowned;
        Ok(Observed {
            left_tag: if is_leaving {
                self.left_tag(balancer_ref, &found.ours).await?
            } else {
                None
            },
            found,
            is_disowned,
            ..Observed::default()
        })
    }

    /// The owner tag outlives its load balancer, so it is deleted too. While it is on something, a list that does not
    /// show that is wrong.
    async fn left_tag(
        &self,
        balancer_ref: &BalancerRef,
        ours: &[LoadBalancer],
    ) -> Result<Option<String>, CloudError> {
        let mut tags = ours
            .iter()
            .filter_map(|balancer| TAG.among(&balancer.settings.tags));
        if let Some(tag) = tags.next() {
            return Ok(Some(tag.clone()));
        }
        let tag = TAG.of(balancer_ref, self.facts.cluster.as_deref());
        let is_unused = self.droplets.api.is_unused_tag(&tag).await?;
        Ok(is_unused.then_some(tag))
    }

    /// One list of load balancers for all specs.
    pub(super) async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Result<Vec<Result<Observed, CloudError>>, CloudError> {
        let all = self.list.fresh(|| self.all(Priority::Background)).await?;
        let mut observed = Vec::with_capacity(specs.len());
        for spec in specs {
            observed.push(self.observe_among(&all, spec).await);
        }
        Ok(observed)
    }

    async fn observe_among(
        &self,
        all: &[LoadBalancer],
        spec: &LoadBalancerSpec,
    ) -> Result<Observed, CloudError> {
        let balancer_ref = &spec.balancer_ref;
        if is_disowned(&balancer_ref.annotations)? {
            let candidates = self.candidates(all, balancer_ref, "");
            return Ok(Observed {
                found: candidates.for_removal(|balancer| self.owner(balancer, balancer_ref)),
                is_disowned: true,
                ..Observed::default()
            });
        }
        let found = self.classify(all, balancer_ref, &name_of(spec))?;
        self.resolve(spec, found).await
    }

    /// Finds what the Service refers to by name, and leaves out targets that there are not.
    pub(super) async fn resolve(
        &self,
        spec: &LoadBalancerSpec,
        found: Classified<LoadBalancer>,
    ) -> Result<Observed, CloudError> {
        let have = found.balancer();
        let api = &self.droplets.api;
        let certificate = self.certificates.find(api, spec, have).await?;
        let mut desired = Desired::of(spec, &self.facts, have, certificate.id());
        let present = have.map(|have| &have.settings.droplet_ids);
        let is_new = |id: &&u64| !present.is_some_and(|present| present.contains(id));
        let new: BTreeSet<u64> = desired
            .targets
            .places
            .keys()
            .filter(is_new)
            .copied()
            .collect();
        for missing in self.missing_among(new).await? {
            if let Some(target) = desired.targets.places.remove(&missing) {
                let why = format!("there is no droplet {missing}");
                desired.targets.unresolved.insert(target.node, why);
            }
            desired.request.settings.droplet_ids.remove(&missing);
        }
        Ok(Observed {
            desired: Some(desired),
            found,
            certificate,
            ..Observed::default()
        })
    }

    /// Those of these droplets that there are not. The API would refuse all for one of them.
    async fn missing_among(&self, mut new: BTreeSet<u64>) -> Result<BTreeSet<u64>, CloudError> {
        for age in [TARGETS_FRESH, MISSING_FRESH] {
            if new.is_empty() {
                break;
            }
            let known = self.droplets.no_older_than(age).await?;
            for droplet in known.iter() {
                new.remove(&droplet.id);
            }
        }
        Ok(new)
    }

    /// Records Events about what cannot be met.
    fn report_notices(&self, spec: &LoadBalancerSpec, seen: &Observed) {
        let Some(desired) = &seen.desired else {
            return;
        };
        let service = &spec.balancer_ref.service;
        for problem in seen.problems() {
            self.events.warn(service, CONFIG_ERROR, problem);
        }
        for what in &desired.unsupported {
            let message = format!("DigitalOcean's load balancers cannot {what}");
            self.events.warn(service, UNSUPPORTED_OPTION, message);
        }
        for (node, why) in &desired.targets.unresolved {
            // As when a Node is new, or its droplet is replaced.
            if self.patience.has_elapsed(&format!("{node}: {why}")) {
                let message = format!("{node} gets no traffic: {why}");
                self.events.warn(service, TARGET_UNRESOLVED, message);
            }
        }
    }
}
