//! Whether a balancer that the cloud does not show is really gone, and whether one may be made there.
//!
//! A credential of another project shows no balancer of ours, and so does a list that is empty for a
//! moment. If the finalizer went then, the balancer would stay for ever; and one that is made in
//! another project is never found again.
//!
//! Only a balancer that is known of can be missed: the Service points at one, or this process saw one, made
//! one, or does not know what became of its order. Services without any such sign go at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

use super::claim::claim_of;
use super::conditions;
use super::controller::ServiceController;
use super::ensure::Failure;
use super::messages::Stage;
use super::records::{Presence, Record};
use crate::clouds::{Cloud, Footing, vouching_for};
use crate::runtime::{Cause, Verdict};
use crate::view::{NodeView, Readiness, ServiceView};

/// Between the first look that found nothing and the one that counts, and after anything was made: clouds
/// show late what was made, and lists are empty for a moment.
const SHOWN_WITHIN: Duration = Duration::from_mins(2);

/// For how long no Node of a cloud may be Ready until it is believed that none of their machines is left. A
/// Ready Node whose machine is not shown says that this is another project.
const NO_READY_NODE_FOR: Duration = Duration::from_mins(5);

/// What a Service waits for until then.
pub(super) const NOT_FOUND: &str = "the load balancer is not found, which has to be confirmed";

/// What it waits for if the cloud shows no machine of this cluster.
const UNCONFIRMED: &str = "the load balancer is not found, and no machine of this cluster either, so the \
                           credential may be that of another project";

/// How soon to look again at a cloud that is in doubt.
pub(super) const AGAIN: Duration = Duration::from_secs(30);

/// How long a look that found machines of this cluster stands for others.
const STANDS_FOR: Duration = Duration::from_secs(5);

/// A balancer that was not found.
pub(super) struct Missing<'a> {
    /// Whose it is.
    pub(super) service: &'a Arc<ServiceView>,
    /// Where it was looked for.
    pub(super) clouds: BTreeSet<String>,
    /// Whether the Service points at it.
    pub(super) is_pointed_at: bool,
}

/// What can be said of a balancer that was not found.
pub(super) enum Absence {
    /// There never was one.
    NothingToMiss,
    /// There may have been one, and it is gone.
    Confirmed,
}

/// What is known of a balancer that was not found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// The Service points at one, or this process knows of one.
    Known,
    /// Nothing, but an earlier leader may have died between its order and the write of the status.
    Unknown,
    /// Nothing, and this process has looked after the Service before.
    Nothing,
}

impl ServiceController {
    /// Whether anything on a Service points at a balancer in one of these clouds.
    pub(super) fn points_at_balancer(
        &self,
        service: &ServiceView,
        clouds: &BTreeSet<String>,
    ) -> bool {
        let claim = claim_of(service, &self.parts.cluster);
        let mut able = clouds.iter().filter_map(|cloud| self.balancers_of(cloud));
        !service.ingress.is_empty()
            || conditions::cloud_on(service).is_some()
            || able.any(|balancers| balancers.points_at_balancer(&claim))
    }

    /// Nothing was found of a balancer that nobody here removed. If one is known of, that counts only after
    /// a second look, and from a cloud that shows machines of this cluster or can have none any more.
    /// Otherwise says how soon to look again.
    pub(super) async fn confirm_absence(&self, missing: &Missing<'_>) -> Result<Absence, Duration> {
        let evidence = self.evidence_of(missing);
        if evidence == Evidence::Nothing
            || (evidence == Evidence::Unknown && self.is_scope_confirmed_for(missing).await)
        {
            return Ok(Absence::NothingToMiss);
        }
        let has_none = self.has_no_ready_node(&missing.clouds);
        let (since, left) = self.records.update(missing.service, |record| {
            record.note_readiness(has_none);
            let since = *record.missing_since.get_or_insert_with(Instant::now);
            let shown = since.max(record.worked_on).elapsed();
            (since, SHOWN_WITHIN.saturating_sub(shown))
        });
        if !left.is_zero() {
            self.tell_pending(missing.service, NOT_FOUND);
            return Err(left);
        }
        if evidence == Evidence::Known {
            self.check_scope(missing, since).await?;
        }
        Ok(Absence::Confirmed)
    }

    fn evidence_of(&self, missing: &Missing<'_>) -> Evidence {
        let (is_known, was_ensured) = self.records.update(missing.service, |record| {
            let mut clouds = missing.clouds.iter();
            let is_known = clouds.any(|cloud| {
                let presence = record.presence_in(cloud);
                !matches!(presence, None | Some(Presence::Asked))
            });
            (is_known, record.was_ensured)
        });
        if missing.clouds.is_empty() {
            Evidence::Nothing
        } else if missing.is_pointed_at || is_known {
            Evidence::Known
        } else if was_ensured {
            Evidence::Nothing
        } else {
            Evidence::Unknown
        }
    }

    /// Whether all clouds show machines of this cluster.
    async fn is_scope_confirmed_for(&self, missing: &Missing<'_>) -> bool {
        for cloud in missing.clouds.iter().filter_map(|name| self.cloud(name)) {
            let footing = cloud.footing(lately(STANDS_FOR), || self.nodes_in(cloud));
            if !matches!(footing.await, Footing::Ours) {
                return false;
            }
        }
        true
    }

    /// Whether no Node of these clouds is Ready.
    fn has_no_ready_node(&self, clouds: &BTreeSet<String>) -> bool {
        let clouds = clouds.iter().filter_map(|name| self.cloud(name));
        let mut nodes = clouds.flat_map(|cloud| self.nodes_in(cloud));
        nodes.all(|node| node.readiness != Readiness::Ready)
    }

    /// Whether what the clouds do not show can be believed. Otherwise says how soon to ask again.
    async fn check_scope(&self, missing: &Missing<'_>, since: Instant) -> Result<(), Duration> {
        let service = &missing.service.service;
        let no_ready_node_since = self
            .records
            .update(missing.service, |record| record.no_ready_node_since);
        let left = no_ready_node_since
            .map(|none_since| NO_READY_NODE_FOR.saturating_sub(none_since.elapsed()));
        for cloud in missing.clouds.iter().filter_map(|name| self.cloud(name)) {
            let (name, shown) = (&cloud.name, self.shows_our_machines(cloud, since).await);
            match (shown, left) {
                (Some(true), _) => {}
                (Some(false), Some(Duration::ZERO)) => info!(
                    %service,
                    cloud = name,
                    "load balancer not found, no machine of this cluster found, and no node of the \
                     cloud ready for minutes: taken for gone"
                ),
                (Some(false) | None, _) => {
                    warn!(
                        %service,
                        cloud = name,
                        "load balancer not found, and no machine of this cluster either: nothing is \
                         concluded from that"
                    );
                    self.tell_pending(missing.service, UNCONFIRMED);
                    let soon = left.filter(|left| !left.is_zero());
                    return Err(soon.map_or(AGAIN, |left| left.min(AGAIN)));
                }
            }
        }
        Ok(())
    }

    /// Whether a cloud shows a machine of this cluster, if there is one that it could show. `None` if it
    /// does not answer.
    async fn shows_our_machines(&self, cloud: &Cloud, since: Instant) -> Option<bool> {
        let ours = self.nodes_in(cloud);
        if ours.is_empty() || cloud.provider.instances().is_none() {
            return Some(true);
        }
        match cloud.inventory.begun_after(since.max(lately(AGAIN))).await {
            Ok(seen) if cloud.shows_any_of(&seen.sweep, &ours) => Some(true),
            Ok(_) => Some(cloud.can_show_none_of(&ours).await),
            Err(_) => None,
        }
    }

    /// Something may have to be made. In a project that is not ours, nobody would ever remove it.
    pub(super) async fn may_make(&self, cloud: &str) -> Result<(), Failure> {
        let is_confirmed = self.is_scope_confirmed(cloud, lately(STANDS_FOR), Stage::Ensure);
        if is_confirmed.await? {
            return Ok(());
        }
        let cause = Cause::of_text(format_args!(
            "cloud {cloud} shows no machine of this cluster, so its credential may be that of another \
             project; no load balancer is made there"
        ));
        let verdict = Verdict::AgainAfter(AGAIN);
        Err(Failure::new(Stage::Ensure, cause, verdict))
    }

    /// Whether what was to be removed and was not there any more was really there. In a project that is
    /// not ours, that says nothing about what stands for the Service.
    pub(super) async fn may_give_up(&self, cloud: &str) -> Result<bool, Failure> {
        self.is_scope_confirmed(cloud, Instant::now(), Stage::Delete)
            .await
    }

    async fn is_scope_confirmed(
        &self,
        name: &str,
        since: Instant,
        stage: Stage,
    ) -> Result<bool, Failure> {
        let Some(cloud) = self.cloud(name) else {
            return Ok(true);
        };
        match cloud.footing(since, || self.nodes_in(cloud)).await {
            Footing::Ours => Ok(true),
            Footing::Strange => Ok(false),
            Footing::Unanswered(error) => Err(Failure::of_cloud(stage, &error)),
        }
    }

    fn nodes_in(&self, cloud: &Cloud) -> Vec<Arc<NodeView>> {
        vouching_for(cloud, self.parts.nodes.all(), &self.parts.clouds)
    }
}

impl Record {
    /// Notes whether any Node could contradict that its machine is gone.
    fn note_readiness(&mut self, has_none: bool) {
        self.no_ready_node_since = match self.no_ready_node_since {
            since @ Some(_) if has_none => since,
            _ => has_none.then(Instant::now),
        };
    }
}

/// So long ago.
fn lately(ago: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(ago).unwrap_or(now)
}
