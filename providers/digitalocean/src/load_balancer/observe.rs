//! What is there, whose it is, and what the Service asks for.

use std::time::Duration;

use cloudkeel_api::{BalancerRef, CloudError, DesiredState, LoadBalancerSpec, Priority};
use cloudkeel_toolkit::{Classified, named_balancer, unresolved};

use super::desired::Desired;
use super::owner::TAG;
use super::{Balancers, is_disowned};
use crate::annotations as key;
use crate::wire::{LoadBalancer, Tag};

/// How old a list of droplets may be that shows a new target, and how old if it does not.
const FRESH: [Duration; 2] = [Duration::from_mins(1), Duration::from_secs(5)];
/// The reason of the event about what cannot be as it is asked for, as the Go CCM's.
const CONFIG_ERROR: &str = "LoadBalancerConfigError";

/// Everything that the plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Observed {
    /// The load balancer that is ours or will be.
    pub(super) found: Classified<LoadBalancer>,
    /// What the Service asks for, if it is not being deleted.
    pub(super) desired: Option<Desired>,
    /// The certificate that it asks for.
    pub(super) certificate: Option<String>,
    /// Whether the Service says that its load balancer is left alone.
    pub(super) is_disowned: bool,
    /// Our owner tag, if it is still there when the Service goes.
    pub(super) left_tag: Option<String>,
}

impl Balancers {
    pub(super) async fn observe_among(
        &self,
        all: &[LoadBalancer],
        desired: DesiredState<'_>,
    ) -> Result<Observed, CloudError> {
        let balancer_ref = desired.balancer_ref();
        let is_disowned = is_disowned(&balancer_ref.annotations)?;
        if let (DesiredState::Present(spec), false) = (desired, is_disowned) {
            let name = named_balancer(spec, &key::NAME);
            let found = self.tagged.find_among(all, desired, &name)?;
            return self.resolve(spec, found).await;
        }
        let released = DesiredState::Released(balancer_ref);
        let found = self.tagged.find_among(all, released, "")?;
        let left_tag = match desired {
            DesiredState::Absent(_) if !is_disowned => self.left_tag(balancer_ref, &found).await?,
            _ => None,
        };
        Ok(Observed {
            found,
            is_disowned,
            left_tag,
            ..Observed::default()
        })
    }

    /// The owner tag outlives its load balancer, so it is deleted too. While it is on something, a list that does not
    /// show that is wrong.
    async fn left_tag(
        &self,
        balancer_ref: &BalancerRef,
        found: &Classified<LoadBalancer>,
    ) -> Result<Option<String>, CloudError> {
        let mut tags = found.ours.iter().map(|balancer| &balancer.settings.tags);
        if let Some(tag) = tags.find_map(|tags| TAG.among(tags)) {
            return Ok(Some(tag.clone()));
        }
        let tag = TAG.of(balancer_ref, self.facts.cluster.as_deref());
        let tag: Option<Tag> = self.droplets.api.find(&tag, Priority::Normal).await?;
        let unused = tag.filter(|tag| tag.resources.count == 0);
        Ok(unused.map(|tag| tag.name))
    }

    /// Finds what the Service refers to by name, and leaves out targets that there are not.
    pub(super) async fn resolve(
        &self,
        spec: &LoadBalancerSpec,
        found: Classified<LoadBalancer>,
    ) -> Result<Observed, CloudError> {
        let have = found.balancer();
        let api = &self.droplets.api;
        let (certificate, missing) = match self.certificates.find(api, spec, have).await {
            Ok(certificate) => (certificate, None),
            Err(error) => (None, Some(unresolved(error)?.message)),
        };
        let mut desired = Desired::of(spec, &self.facts, have, certificate.as_deref());
        if let Some(missing) = missing {
            // Every port that needs it is wrong.
            desired.problems = vec![missing];
        }
        let droplets = &mut desired.request.settings.droplet_ids;
        let present = have.map(|have| have.settings.droplet_ids.clone());
        let new = &*droplets - &present.unwrap_or_default();
        // The API would refuse all for one of them.
        for missing in self.droplets.missing_among(new, FRESH).await? {
            let why = format!("there is no droplet {missing}");
            desired.targets.leave_out(&missing, why);
            droplets.remove(&missing);
        }
        Ok(Observed {
            desired: Some(desired),
            found,
            certificate,
            ..Observed::default()
        })
    }

    /// Records Events about what cannot be met.
    pub(super) fn report_notices(&self, balancer_ref: &BalancerRef, seen: &Observed) {
        let (events, service) = (&self.events, &balancer_ref.service);
        if let Some(desired) = &seen.desired {
            for problem in &desired.problems {
                events.warn(service, CONFIG_ERROR, problem);
            }
            events.unsupported(service, "DigitalOcean", &desired.unsupported);
            events.unresolved(service, &desired.targets, "gets no traffic");
        }
    }
}
