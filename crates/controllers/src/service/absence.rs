//! Whether a balancer that the cloud does not show is really gone, and whether one may be made there.
//!
//! A credential of another project shows no balancer of ours, and so does a list that is empty for a
//! moment. If the finalizer went then, the balancer would stay for ever; and one that is made in
//! another project is never found again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::conditions;
use super::controller::ServiceController;
use super::ensure::Failure;
use super::messages::{Cause, Stage};
use crate::clouds::{Cloud, Footing, vouching_for};
use crate::runtime::Verdict;
use crate::view::{NodeView, ServiceView};

/// Between the first look that found nothing and the one that counts, and after anything was made: clouds
/// show late what was made, and lists are empty for a moment.
const SHOWN_WITHIN: Duration = Duration::from_mins(2);

/// What a Service waits for until then.
pub(super) const NOT_FOUND: &str = "the load balancer is not found, which has to be confirmed";

/// How soon to look again at a cloud that is in doubt.
const AGAIN: Duration = Duration::from_secs(30);

/// How long a look that found machines of this cluster stands for the next balancers that are made.
const STANDS_FOR: Duration = Duration::from_secs(5);

/// What can be said of a balancer that was not found.
pub(super) enum Absence {
    /// There never was one.
    NothingToMiss,
    /// There may have been one, and it is gone.
    Confirmed,
}

impl ServiceController {
    /// Nothing was found of a balancer that nobody here removed. If there may have been one, that counts
    /// only after a second look, and from a cloud that shows machines of this cluster. Otherwise says how
    /// soon to look again.
    pub(super) async fn confirm_absence(
        &self,
        service: &Arc<ServiceView>,
        clouds: &BTreeSet<String>,
        was_served: bool,
    ) -> Result<Absence, Duration> {
        let speaks_of_one = !service.ingress.is_empty() || conditions::cloud_on(service).is_some();
        // Whoever is seen for the first time may have had one under another leader.
        let may_have_had_one = self.records.update(service, |record| {
            record.missing_since.is_some() || record.attempts <= 1
        });
        if !(was_served || speaks_of_one || may_have_had_one) {
            return Ok(Absence::NothingToMiss);
        }
        let (since, worked_on) = self.records.update(service, |record| {
            let since = *record.missing_since.get_or_insert_with(Instant::now);
            (since, record.worked_on)
        });
        let left = SHOWN_WITHIN.saturating_sub(since.max(worked_on).elapsed());
        if !left.is_zero() {
            self.tell_pending(service, NOT_FOUND);
            return Err(left);
        }
        for cloud in clouds.iter().filter_map(|name| self.cloud(name)) {
            if !self.shows_our_machines(cloud, since).await {
                let (service, cloud) = (&service.service, &cloud.name);
                warn!(
                    %service,
                    cloud,
                    "its load balancer is not found, and no machine of this cluster is either: \
                     nothing is concluded from that"
                );
                return Err(AGAIN);
            }
        }
        Ok(Absence::Confirmed)
    }

    async fn shows_our_machines(&self, cloud: &Cloud, since: Instant) -> bool {
        let ours = self.nodes_in(cloud);
        if ours.is_empty() || cloud.provider.instances().is_none() {
            return true;
        }
        match cloud.inventory.begun_after(since).await {
            Ok(seen) if cloud.shows_any_of(&seen.sweep, &ours) => true,
            Ok(_) => cloud.can_show_none_of(&ours).await,
            Err(_) => false,
        }
    }

    /// Something may have to be made. In a project that is not ours, nobody would ever remove it.
    pub(super) async fn may_make(&self, cloud: &str) -> Result<(), Failure> {
        let now = Instant::now();
        let lately = now.checked_sub(STANDS_FOR).unwrap_or(now);
        self.stand_in(cloud, lately, Stage::Ensure).await
    }

    /// Something was removed, or was not there any more. In a project that is not ours, that was not what
    /// stands for the Service.
    pub(super) async fn may_give_up(&self, cloud: &str) -> Result<(), Failure> {
        self.stand_in(cloud, Instant::now(), Stage::Delete).await
    }

    async fn stand_in(&self, name: &str, since: Instant, stage: Stage) -> Result<(), Failure> {
        let Some(cloud) = self.cloud(name) else {
            return Ok(());
        };
        match cloud.footing(since, || self.nodes_in(cloud)).await {
            Footing::Ours => Ok(()),
            Footing::Unanswered(error) => Err(Failure::of_cloud(stage, &error)),
            Footing::Strange => {
                let cause = Cause::of_text(format_args!(
                    "cloud {name} shows no machine of this cluster, so its credential may be that of \
                     another project; no load balancer is made or given up there"
                ));
                Err(Failure::new(stage, cause, Verdict::AgainAfter(AGAIN)))
            }
        }
    }

    fn nodes_in(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        vouching_for(cloud, self.parts.nodes.all(), &self.parts.clouds)
    }
}
