//! Carrying out steps.

use std::time::Duration;

use cloudkeel_api::{CloudError, Executed, StepOutcome};

use super::Balancers;
use super::observe::Observed;
use super::step::Step;
use crate::wire::LoadBalancer;

/// When to check a load balancer that is being built.
pub(super) const BUILDING: Duration = Duration::from_secs(10);

impl Balancers {
    pub(super) async fn execute_step(&self, step: &Step) -> Executed<Observed> {
        let api = &self.droplets.api;
        match step {
            Step::Create(new) => {
                let created = api.create::<LoadBalancer>(new).await;
                let created = created.map_err(CloudError::not_shown_yet)?;
                if created.status == "new" {
                    let check_after = BUILDING;
                    return Ok((StepOutcome::Started { check_after }, None));
                }
            }
            Step::Replace { id, request, .. } => {
                let changed = api.replace::<LoadBalancer>(id, request).await;
                changed.map_err(CloudError::vanished)?;
            }
            Step::Delete { id } => api.delete::<LoadBalancer>(id).await?,
            Step::Tag(step) => step.execute(api).await?,
        }
        Ok((StepOutcome::Done, None))
    }
}
