//! Carrying out steps.

use std::time::Duration;

use cloudkeel_api::{CloudError, DesiredState, Executed, StepOutcome};
use cloudkeel_toolkit::Classified;

use super::Balancers;
use super::observe::Observed;
use super::step::Step;
use crate::wire::{BalancerRequest, LoadBalancer, Tag};

/// When to check a load balancer that is being built.
pub(super) const BUILDING: Duration = Duration::from_secs(10);

impl Balancers {
    pub(super) async fn execute_step(
        &self,
        desired: DesiredState<'_>,
        step: &Step,
    ) -> Executed<Observed> {
        let api = &self.droplets.api;
        match step {
            Step::Create(new) => return self.create(desired, new).await,
            Step::Adopt { id, tags } => {
                for tag in tags {
                    api.tag(tag, std::slice::from_ref(id)).await?;
                }
            }
            Step::Replace { id, request, .. } => {
                let changed = api.replace::<LoadBalancer>(id, request).await;
                changed.map_err(CloudError::vanished)?;
            }
            // No other load balancer has it.
            Step::Release { tag, .. } => {
                let released = api.delete::<Tag>(tag).await;
                released.map_err(CloudError::vanished)?;
            }
            Step::Delete { id } => api.delete::<LoadBalancer>(id).await?,
            Step::DeleteTag { tag } => api.delete::<Tag>(tag).await?,
        }
        Ok((StepOutcome::Done, None))
    }

    /// Creates a load balancer. The answer shows all that an observation would.
    async fn create(&self, desired: DesiredState<'_>, new: &BalancerRequest) -> Executed<Observed> {
        let created = self.droplets.api.create::<LoadBalancer>(new).await;
        let created = created.map_err(CloudError::not_shown_yet)?;
        let Some(spec) = desired.spec() else {
            return Ok((StepOutcome::Done, None));
        };
        if created.status == "new" {
            let check_after = BUILDING;
            return Ok((StepOutcome::Started { check_after }, None));
        }
        let seen = self.resolve(spec, Classified::ours(created)).await;
        Ok((StepOutcome::Done, seen.ok()))
    }
}
