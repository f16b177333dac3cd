//! What is there, whose it is, and what the Service asks for.

use std::time::Duration;

use cloudkeel_api::{BalancerRef, CloudError, DesiredState, ErrorKind, LoadBalancerSpec};
use cloudkeel_toolkit::{Classified, HasListenerKey, Sharing, named_balancer, unresolved};

use super::desired::Desired;
use super::{Balancers, is_disowned};
use crate::annotations as key;
use crate::wire::LoadBalancer;

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
    /// Which of its parts are the Service's.
    pub(super) sharing: Sharing,
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
        let api = &self.droplets.api;
        let left_tag = match desired {
            DesiredState::Absent(it) if !is_disowned => {
                self.tagged.left_tag(api, it, &found).await?
            }
            _ => None,
        };
        let sharing = Sharing::of_leaving(balancer_ref, &found);
        self.events.shared_balancer_left(desired, &found, &sharing);
        Ok(Observed {
            found,
            sharing,
            is_disowned,
            left_tag,
            ..Observed::default()
        })
    }

    /// Finds what the Service refers to by name, and leaves out targets that there are not.
    pub(super) async fn resolve(
        &self,
        spec: &LoadBalancerSpec,
        found: Classified<LoadBalancer>,
    ) -> Result<Observed, CloudError> {
        let have = found.balancer();
        let api = &self.droplets.api;
        let asked = self.certificates.find(api, &self.facts, spec, have).await;
        let (certificate, missing) = match asked {
            Ok(certificate) => (certificate, None),
            Err(error) => (None, Some(unresolved(error)?)),
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
        let rules = &desired.request.settings.forwarding_rules;
        let ports = rules.iter().map(HasListenerKey::listener_key);
        let sharing = Sharing::of(&spec.balancer_ref, &found, ports, &*droplets)?;
        if let Some(have) = found.balancer().filter(|_| sharing.is_shared()) {
            desired.share(spec, &self.facts, have, &sharing)?;
        }
        Ok(Observed {
            desired: Some(desired),
            found,
            certificate,
            sharing,
            ..Observed::default()
        })
    }

    /// Records Events about what cannot be met.
    pub(super) fn report_notices(&self, balancer_ref: &BalancerRef, seen: &Observed) {
        let (events, service) = (&self.events, &balancer_ref.service);
        if let Some(desired) = &seen.desired {
            let problems = desired.problems.iter();
            for problem in problems.filter(|it| it.kind == ErrorKind::Invalid) {
                events.warn(service, CONFIG_ERROR, problem.message.as_str());
            }
            events.unsupported(service, "DigitalOcean", &desired.unsupported);
            events.unresolved(service, &desired.targets, "gets no traffic");
        }
    }
}
