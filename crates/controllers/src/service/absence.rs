//! Whether a balancer that the cloud does not show is really gone, and whether one may be created there.
//!
//! A credential of another project does not show our balancers, and neither does a list that is empty for a moment. If
//! the finalizer were removed then, the balancer would stay forever; and a balancer that is created in another project
//! is never found again.
//!
//! Only a known balancer can be missing: the Service refers to one, or this process saw one, created one, or does not
//! know the result of its request. A Service without any such reference is released at once, unless a Ready Node, or a
//! Node of another cloud, shows that this is another project.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::CloudProvider;
use tokio::time::Instant;
use tracing::{info, warn};

use super::conditions;
use super::controller::ServiceController;
use super::events::Stage;
use super::failure::Failure;
use super::record::{Presence, Record};
use super::spec::balancer_ref_of;
use crate::clouds::{OUTDATED, SCOPE_RETRY, ScopeCheck, ScopeGuard};
use crate::log_messages::LOAD_BALANCER_UNCONFIRMED;
use crate::planted::Bug;
use crate::runtime::{FailureMessage, Verdict};
use crate::view::ServiceView;

/// Between the first check that found nothing and the one that counts, and after anything was created: clouds show
/// late what was created, and lists are empty for a moment.
const SHOWN_WITHIN: Duration = Duration::from_mins(2);

/// For how long no Node of a cloud may be Ready until it is believed that none of their machines is left. A
/// Ready Node whose machine is not shown says that this is another project.
const NO_READY_NODE_FOR: Duration = Duration::from_mins(5);

/// What a Service waits for until then.
pub(super) const NOT_FOUND: &str = "the load balancer is not found, which has to be confirmed";

/// What it waits for if the cloud shows no machine of this cluster.
const UNCONFIRMED: &str = "the load balancer is not found, and no machine of this cluster either: check that \
                           the credential belongs to this cluster's project";

/// A read that began this recently confirms the scope of a cloud for all Services.
const RECENT: Duration = Duration::from_secs(5);

/// A balancer that was not found.
pub(super) struct Missing<'a> {
    /// Whose it is.
    pub(super) service: &'a Arc<ServiceView>,
    /// When the work began that did not find it.
    pub(super) began: Instant,
    /// Where it was looked for.
    pub(super) clouds: BTreeSet<String>,
    /// Whether the Service points at it.
    pub(super) is_pointed_at: bool,
}

/// What can be said of a balancer that was not found.
pub(super) enum MissingBalancer {
    /// There never was one.
    NothingToMiss,
    /// There may have been one, and it is gone.
    Confirmed,
}

/// What is known of a balancer that was not found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum History {
    /// The Service points at one, or this process knows of one.
    Known,
    /// Nothing, but an earlier leader may have died between its request and the write of the status.
    Unknown,
    /// Nothing, and no earlier leader has worked on the Service: finalizers come before balancers.
    Never,
}

impl ServiceController {
    /// Whether anything on a Service points at a balancer in one of these clouds.
    pub(super) fn points_at_balancer(
        &self,
        service: &ServiceView,
        clouds: &BTreeSet<String>,
    ) -> bool {
        let balancer_ref = balancer_ref_of(service, &self.parts.cluster);
        let providers = clouds.iter().filter_map(|cloud| self.provider_of(cloud));
        let points = |provider: Arc<dyn CloudProvider>| {
            let balancers = provider.load_balancers();
            balancers.is_some_and(|it| it.points_at_balancer(&balancer_ref))
        };
        !service.ingress.is_empty() || conditions::names_balancer(service) || { providers }
            .any(points)
    }

    /// Nothing was found of a balancer that was not deleted here. If one is known of, that counts only after a second
    /// check, and from a cloud that shows instances of this cluster or can have none any more. Otherwise says how soon
    /// to check again.
    pub(super) async fn confirm_absence(
        &self,
        missing: &Missing<'_>,
    ) -> Result<MissingBalancer, Duration> {
        let history = self.history_of(missing);
        if Bug::BelieveFirstAbsence.is_planted() || history == History::Never {
            return Ok(MissingBalancer::NothingToMiss);
        }
        if history == History::Unknown && self.list_cluster(missing).await {
            return Ok(MissingBalancer::Confirmed);
        }
        let has_none = self.has_no_ready_node(&missing.clouds);
        let (since, left) = self.records.update(missing.service, |record| {
            record.note_readiness(has_none);
            let since = *record.missing_since.get_or_insert_with(Instant::now);
            let worked_on = record.worked_on.map_or(since, |at| at.max(since));
            (since, SHOWN_WITHIN.saturating_sub(worked_on.elapsed()))
        });
        if !left.is_zero() {
            self.report_pending(missing.service, NOT_FOUND);
            return Err(left);
        }
        self.check_scope(missing, history, since).await?;
        Ok(MissingBalancer::Confirmed)
    }

    fn history_of(&self, missing: &Missing<'_>) -> History {
        let (is_known, is_first_leader) = self.records.update(missing.service, |record| {
            let mut clouds = missing.clouds.iter();
            let is_known = clouds.any(|cloud| {
                let presence = record.presence_in(cloud);
                !matches!(presence, None | Some(Presence::Asked))
            });
            (is_known, record.is_first_leader)
        });
        if missing.clouds.is_empty() {
            History::Never
        } else if missing.is_pointed_at || is_known {
            History::Known
        } else if is_first_leader {
            History::Never
        } else {
            History::Unknown
        }
    }

    /// Whether lists of all clouds show machines of this cluster. That a cloud can look one up is not enough where it
    /// shows neither machines nor balancers in lists.
    async fn list_cluster(&self, missing: &Missing<'_>) -> bool {
        for cloud in missing.clouds.iter().filter_map(|name| self.cloud(name)) {
            let check = self.guard().listed_since(cloud, missing.began).await;
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
    async fn check_scope(
        &self,
        missing: &Missing<'_>,
        history: History,
        since: Instant,
    ) -> Result<(), Duration> {
        let service = &missing.service.service;
        let no_ready_node_since = self
            .records
            .update(missing.service, |record| record.no_ready_node_since);
        let needed = match history {
            History::Known => NO_READY_NODE_FOR,
            History::Unknown | History::Never => Duration::ZERO,
        };
        let left =
            no_ready_node_since.map(|none_since| needed.saturating_sub(none_since.elapsed()));
        for cloud in missing.clouds.iter().filter_map(|name| self.cloud(name)) {
            let moment = since.max(lately(SCOPE_RETRY));
            match (self.guard().listed_since(cloud, moment).await, left) {
                (ScopeCheck::Confirmed, _) => {}
                (ScopeCheck::Unrecognized { .. }, Some(Duration::ZERO)) => info!(
                    %service,
                    cloud = cloud.name,
                    "load balancer and instances of this cluster not found, and no node of the cloud \
                     ready for minutes: load balancer is gone"
                ),
                _ => {
                    warn!(
                        %service,
                        cloud = cloud.name,
                        "{LOAD_BALANCER_UNCONFIRMED}"
                    );
                    self.report_pending(missing.service, UNCONFIRMED);
                    let soon = left.filter(|left| !left.is_zero());
                    return Err(soon.map_or(SCOPE_RETRY, |left| left.min(SCOPE_RETRY)));
                }
            }
        }
        Ok(())
    }

    /// A balancer is created only in our project: in another one, it would never be deleted. The provider that creates
    /// it was taken at `began`.
    pub(super) async fn check_may_create(
        &self,
        cloud: &str,
        began: Instant,
    ) -> Result<(), Failure> {
        if Bug::CreateBalancerAnywhere.is_planted() {
            return Ok(());
        }
        let confirmed = self.is_scope_confirmed(cloud, lately(RECENT), began, Stage::Ensure);
        if confirmed.await? {
            return Ok(());
        }
        let cause = FailureMessage::from_text(format_args!(
            "cloud {cloud} shows no machine of this cluster, so no load balancer is created there: check that \
             its credential belongs to this cluster's project"
        ));
        let verdict = Verdict::AgainAfter(SCOPE_RETRY);
        Err(Failure::new(Stage::Ensure, cause, verdict))
    }

    /// Whether the cloud has shown an instance of this cluster since then, which speaks for work that began at
    /// `work_began`.
    pub(super) async fn is_scope_confirmed(
        &self,
        name: &str,
        since: Instant,
        work_began: Instant,
        stage: Stage,
    ) -> Result<bool, Failure> {
        let Some(cloud) = self.cloud(name) else {
            return Ok(true);
        };
        match self.guard().confirmed_since(cloud, since, work_began).await {
            ScopeCheck::Confirmed => Ok(true),
            ScopeCheck::Outdated => {
                let cause = FailureMessage::from_text(format_args!(
                    "cloud {name} showed another project until now"
                ));
                Err(Failure::new(stage, cause, Verdict::AgainAfter(OUTDATED)))
            }
            ScopeCheck::Unrecognized { .. } | ScopeCheck::OtherCloud(_) => Ok(false),
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
