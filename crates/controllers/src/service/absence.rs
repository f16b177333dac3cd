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

use cloudkeel_api::CloudProvider;
use tokio::time::Instant;
use tracing::{info, warn};

use super::conditions;
use super::controller::ServiceController;
use super::ensure::Failure;
use super::events::Stage;
use super::record::{Presence, Record};
use super::spec::claim_of;
use crate::clouds::{ScopeCheck, ScopeGuard};
use crate::runtime::{Cause, Verdict};
use crate::view::ServiceView;

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

/// A read that began this recently confirms the scope of a cloud for all Services.
const RECENT: Duration = Duration::from_secs(5);

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
        let providers = clouds.iter().filter_map(|cloud| self.provider_of(cloud));
        let points = |provider: Arc<dyn CloudProvider>| {
            let balancers = provider.load_balancers();
            balancers.is_some_and(|it| it.points_at_balancer(&claim))
        };
        !service.ingress.is_empty() || conditions::cloud_on(service).is_some() || { providers }
            .any(points)
    }

    /// Nothing was found of a balancer that was not removed here. If one is known of, that counts only after
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
            self.report_pending(missing.service, NOT_FOUND);
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
            (is_known, record.attempts > 0)
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
            let check = self.guard().confirmed_since(cloud, lately(RECENT)).await;
            if !matches!(check, ScopeCheck::Confirmed) {
                return false;
            }
        }
        true
    }

    /// Whether no Node of these clouds is Ready.
    fn has_no_ready_node(&self, clouds: &BTreeSet<String>) -> bool {
        let mut clouds = clouds.iter().filter_map(|name| self.cloud(name));
        clouds.all(|cloud| self.guard().ready_in(cloud) == 0)
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
            let moment = since.max(lately(AGAIN));
            match (self.guard().listed_since(cloud, moment).await, left) {
                (Some(ScopeCheck::Confirmed), _) => {}
                (Some(ScopeCheck::Unrecognized { .. }), Some(Duration::ZERO)) => info!(
                    %service,
                    cloud = cloud.name,
                    "load balancer not found, no machine of this cluster found, and no node of the \
                     cloud ready for minutes: taken for gone"
                ),
                (Some(_) | None, _) => {
                    warn!(
                        %service,
                        cloud = cloud.name,
                        "load balancer not found, and no machine of this cluster either: nothing is \
                         concluded from that"
                    );
                    self.report_pending(missing.service, UNCONFIRMED);
                    let soon = left.filter(|left| !left.is_zero());
                    return Err(soon.map_or(AGAIN, |left| left.min(AGAIN)));
                }
            }
        }
        Ok(())
    }

    /// Something may have to be made. In a project that is not ours, it would never be removed.
    pub(super) async fn may_make(&self, cloud: &str) -> Result<(), Failure> {
        if self
            .is_confirmed(cloud, lately(RECENT), Stage::Ensure)
            .await?
        {
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
        self.is_confirmed(cloud, Instant::now(), Stage::Delete)
            .await
    }

    async fn is_confirmed(
        &self,
        name: &str,
        since: Instant,
        stage: Stage,
    ) -> Result<bool, Failure> {
        let Some(cloud) = self.cloud(name) else {
            return Ok(true);
        };
        match self.guard().confirmed_since(cloud, since).await {
            ScopeCheck::Confirmed => Ok(true),
            ScopeCheck::Unrecognized { .. } => Ok(false),
            ScopeCheck::Unavailable(error) => Err(Failure::of_cloud(stage, &error)),
        }
    }

    fn guard(&self) -> ScopeGuard<'_> {
        ScopeGuard::new(&self.parts.nodes, &self.parts.clouds)
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

fn lately(ago: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(ago).unwrap_or(now)
}
