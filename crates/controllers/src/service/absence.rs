//! Whether a balancer that the cloud does not show is really gone.
//!
//! A credential of another project shows no balancer of ours, and so does a list that is empty for a
//! moment. If the finalizer went then, the balancer would stay for ever.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::conditions;
use super::controller::ServiceController;
use crate::clouds::{Cloud, with_machines};
use crate::runtime::Verdict;
use crate::view::ServiceView;

/// Between the first look that found nothing and the one that counts.
const SECOND_LOOK: Duration = Duration::from_secs(30);

impl ServiceController {
    /// Nothing was found of a balancer that nobody here removed. If there may have been one, that counts
    /// only after a second look, and from a cloud that shows machines of this cluster.
    pub(super) async fn confirm_absence(
        &self,
        service: &Arc<ServiceView>,
        clouds: &BTreeSet<String>,
        was_served: bool,
    ) -> Result<(), Verdict> {
        let speaks_of_one = !service.ingress.is_empty() || conditions::cloud_on(service).is_some();
        // Whoever is seen for the first time may have had one under another leader.
        let may_have_had_one = self.records.update(service, |record| {
            record.missing_since.is_some() || record.attempts <= 1
        });
        if !(was_served || speaks_of_one || may_have_had_one) {
            return Ok(());
        }
        let since = self.records.update(service, |record| {
            *record.missing_since.get_or_insert_with(Instant::now)
        });
        let left = SECOND_LOOK.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Err(Verdict::AgainAfter(left));
        }
        for cloud in self
            .parts
            .clouds
            .iter()
            .filter(|c| clouds.contains(&c.name))
        {
            if !self.shows_our_machines(cloud, since).await {
                let (service, cloud) = (&service.service, &cloud.name);
                warn!(
                    %service,
                    cloud,
                    "its load balancer is not found, and no machine of this cluster is either: \
                     nothing is concluded from that"
                );
                return Err(Verdict::AgainAfter(SECOND_LOOK));
            }
        }
        Ok(())
    }

    async fn shows_our_machines(&self, cloud: &Arc<Cloud>, since: Instant) -> bool {
        let nodes = self.parts.nodes.all();
        let known = with_machines(nodes, &self.parts.clouds, |owner| owner.is(cloud));
        if known.is_empty() || cloud.provider.instances().is_none() {
            return true;
        }
        let Ok(seen) = cloud.inventory.begun_after(since).await else {
            return false;
        };
        let mut ids = known
            .iter()
            .filter_map(|node| node.facts.provider_id.as_ref());
        ids.any(|id| seen.sweep.get(id).is_some())
    }
}
