//! Balancers, with one mutation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use cloudkeel_api::{
    BalancerProfile, BalancerRef, CloudError, DesiredState, ErrorKind, Failures, LabelSelector,
    LoadBalancerSpec, LoadBalancerStatus, LoadBalancers, LockKey, Observation, Outcome,
    OwnedResource, Plan, Problem, ServiceChanges, Target, UnknownAnnotation,
};
use cloudkeel_testkit::simulated_cloud::wire::NewBalancer;

use crate::faulty::Faulty;
use crate::faulty_instances::within_a_second;
use crate::faulty_specs::take_all;
use crate::mutant::Mutant;

const SERVICE_UID: &str = "cloudkeel.dev/service-uid";
const CLUSTER_UID: &str = "cloudkeel.dev/cluster-uid";

impl Faulty {
    /// Puts our owner labels on everything.
    fn label_all_as_ours(&self, balancer_ref: &BalancerRef) {
        for balancer in self.cloud.balancers() {
            let labelled = self.cloud.edit_balancer(balancer.id, |balancer| {
                let (uid, cluster) = (&balancer_ref.service.uid, &balancer_ref.cluster.uid);
                balancer.protected = false;
                balancer.labels.insert(SERVICE_UID.into(), uid.clone());
                if let Some(cluster) = cluster {
                    balancer.labels.insert(CLUSTER_UID.into(), cluster.clone());
                }
            });
            labelled.unwrap();
        }
    }

    fn leak(&self) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let new = NewBalancer {
            name: format!("left-over-{}-{number}", self.process),
            ..NewBalancer::default()
        };
        self.cloud.add_balancer(new).unwrap();
    }

    /// Creates a balancer only to delete it.
    async fn delete_blindly(&self) {
        let mut spec = self.last_spec.lock().unwrap().clone();
        if let Some(spec) = &mut spec {
            "blind".clone_into(&mut spec.balancer_ref.service.uid);
            let correct = self.balancers_of_correct();
            correct.apply(DesiredState::Present(spec)).await.unwrap();
            correct
                .apply(DesiredState::Absent(&spec.balancer_ref))
                .await
                .unwrap();
        }
    }

    /// Removes a port and puts it back.
    async fn write_needlessly(&self, spec: &LoadBalancerSpec) -> Result<(), CloudError> {
        let mut other = self.completed(spec);
        other.listeners.reverse();
        other.listeners.pop();
        let correct = self.balancers_of_correct();
        correct.apply(DesiredState::Present(&other)).await.map(drop)
    }

    async fn present(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        let mutated = self.mutated(spec);
        if !matches!(self.mutant, Mutant::ForgetsChangesWhenStale)
            || !self.busy.load(Ordering::Relaxed)
        {
            let mut last = self.last_spec.lock().unwrap();
            let remembered = match self.mutant {
                Mutant::KeepsSettings => mutated.clone(),
                _ => spec.clone(),
            };
            *last = Some(remembered);
        }
        let has_labels = |target: &Target| !target.node.labels.is_empty();
        let needlessly = match self.mutant {
            Mutant::WritesEveryTime => true,
            Mutant::WritesForEveryLabel => spec.targets.values().any(has_labels),
            _ => false,
        };
        if needlessly {
            self.write_needlessly(spec).await?;
        }
        let outcome = self.carry_out(spec, &mutated).await;
        if let Ok(Outcome::Settled { status, .. }) = &outcome {
            self.shared
                .remember(spec, status.id.as_deref().unwrap_or_default());
        }
        match outcome {
            Ok(Outcome::Incomplete {
                status,
                changes,
                done,
                ..
            }) if self.mutant == Mutant::HidesLimits => Ok(Outcome::Settled {
                status,
                changes,
                done,
            }),
            outcome => outcome,
        }
    }

    /// Applies what the mutant makes of a spec.
    #[expect(clippy::too_many_lines, reason = "an arm for each mutant")]
    async fn carry_out(
        &self,
        spec: &LoadBalancerSpec,
        mutated: &LoadBalancerSpec,
    ) -> Result<Outcome, CloudError> {
        let correct = self.balancers_of_correct();
        if self.mutant == Mutant::BlocksOverTheLimit && self.is_over_the_limit(spec) {
            return Err(CloudError::new(
                "plan",
                ErrorKind::LimitExceeded,
                "too many",
            ));
        }
        if self.mutant == Mutant::ChangesAllOrNothing && self.is_over_the_limit(spec) {
            return Ok(nothing_done("too many"));
        }
        if self.mutant == Mutant::OneBadTargetBlocksAll
            && spec.targets.values().any(|t| t.node.provider_id.is_none())
        {
            return Err(CloudError::invalid("plan", "a target has no ID"));
        }
        let known = self.cloud.machines().len();
        let blocked = match self.mutant {
            Mutant::OneBadTargetBlocksAll => spec.targets.len() > known,
            Mutant::NeedsATarget => spec.targets.is_empty(),
            Mutant::WorksOnce => self.count.load(Ordering::Relaxed) > 0,
            _ => false,
        };
        if blocked {
            return Err(CloudError::invalid("plan", "not like this"));
        }
        let mut dropped = LeaksOnDrop(self, self.mutant == Mutant::LeaksWhenDropped);
        let outcome = self.apply_correctly(DesiredState::Present(mutated)).await;
        dropped.1 = false;
        match (outcome, self.mutant) {
            (outcome, Mutant::RemovesAddedLabels) => {
                self.remove_added_labels();
                outcome
            }
            (outcome, Mutant::CreatesASecondWhenStale) => {
                if self.is_stale() {
                    self.leak();
                }
                outcome
            }
            (Err(error), Mutant::TakesQuotaForInvalid)
                if error.kind() == ErrorKind::LimitExceeded =>
            {
                Err(CloudError::invalid("create", "not like this"))
            }
            (outcome, Mutant::LeaksAfterFaults) => {
                if self.has_met_a_fault() {
                    self.leak();
                }
                outcome
            }
            (Ok(outcome), Mutant::CreatesASecond) => {
                if outcome.done().is_empty() {
                    self.leak();
                }
                Ok(outcome)
            }
            (Ok(outcome @ Outcome::Incomplete { .. }), Mutant::LeaksAfterErrors) => {
                self.leak();
                Ok(outcome)
            }
            (Err(error), Mutant::LeaksAfterErrors) => {
                self.leak();
                Err(error)
            }
            (Err(error), Mutant::StartsAnewAfterErrors) => {
                self.count.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
            (Err(error), Mutant::CreatesASecondWhenUnlabelled) => {
                if error.kind() == ErrorKind::NotOurs {
                    self.leak();
                }
                Err(error)
            }
            (Err(error), Mutant::AdoptsByName) if error.kind() == ErrorKind::NotOurs => {
                self.label_all_as_ours(&spec.balancer_ref);
                correct.apply(DesiredState::Present(spec)).await
            }
            (outcome, _) => outcome,
        }
    }

    /// Applies as the mutant waits.
    async fn apply_correctly(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        let correct = self.balancers_of_correct();
        match self.mutant {
            Mutant::GivesUpAfterASecond => within_a_second(correct.apply(desired)).await?,
            Mutant::WaitsForJobs => loop {
                match correct.apply(desired).await? {
                    Outcome::Pending { check_after, .. } => tokio::time::sleep(check_after).await,
                    outcome => return Ok(outcome),
                }
            },
            _ => correct.apply(desired).await,
        }
    }

    fn remove_added_labels(&self) {
        for balancer in self.cloud.balancers() {
            let cleaned = self.cloud.edit_balancer(balancer.id, |balancer| {
                let labels = &mut balancer.labels;
                labels.retain(|key, _| key.starts_with("cloudkeel.dev/"));
            });
            cleaned.unwrap();
        }
    }

    async fn released(&self, balancer_ref: &BalancerRef) -> Result<Outcome, CloudError> {
        let correct = self.balancers_of_correct();
        let kept = || vec!["it".to_owned()];
        match self.mutant {
            Mutant::ReleasesNothing => Ok(Outcome::Gone {
                done: Plan::default(),
                kept: kept(),
                acknowledged: true,
            }),
            Mutant::DeletesWhatItReleases => {
                match correct.apply(DesiredState::Absent(balancer_ref)).await? {
                    Outcome::Gone {
                        done, acknowledged, ..
                    } => Ok(Outcome::Gone {
                        done,
                        kept: kept(),
                        acknowledged,
                    }),
                    outcome => Ok(outcome),
                }
            }
            _ => {
                let mut dropped = LeaksOnDrop(self, self.mutant == Mutant::LeaksWhenDropped);
                let outcome = correct.apply(DesiredState::Released(balancer_ref)).await;
                dropped.1 = false;
                outcome
            }
        }
    }

    async fn absent(&self, balancer_ref: &BalancerRef) -> Result<Outcome, CloudError> {
        let gone = Outcome::Gone {
            done: Plan::default(),
            kept: Vec::new(),
            acknowledged: true,
        };
        match self.mutant {
            Mutant::ReportsGoneAndDoesNothing => return Ok(gone),
            Mutant::DeletesByName | Mutant::DeletesProtected => {
                self.label_all_as_ours(balancer_ref);
            }
            Mutant::WorksOnce => {
                self.count.fetch_add(1, Ordering::Relaxed);
            }
            Mutant::LeaksAfterFaults if self.has_met_a_fault() => self.leak(),
            Mutant::DeletesBlindly => self.delete_blindly().await,
            _ => {}
        }
        let mut balancer_ref = balancer_ref.clone();
        if self.mutant == Mutant::DeletesWhatOthersUse {
            take_all(&mut balancer_ref);
        }
        let balancer_ref = &balancer_ref;
        if let Some(left) = self.shared.leave(balancer_ref) {
            return self.leave_shared(&left).await;
        }
        let mut dropped = LeaksOnDrop(self, self.mutant == Mutant::LeaksWhenDropped);
        let outcome = self
            .apply_correctly(DesiredState::Absent(balancer_ref))
            .await;
        dropped.1 = false;
        match (outcome, self.mutant) {
            (Err(_), Mutant::TakesErrorsForAbsence) => Ok(gone),
            (Ok(outcome), Mutant::AcknowledgesEveryRemoval) => Ok(acknowledging(outcome, true)),
            (Ok(outcome), Mutant::AcknowledgesNoRemoval) => Ok(acknowledging(outcome, false)),
            (outcome, _) => outcome,
        }
    }
}

impl Faulty {
    /// Takes the ports of a Service from a balancer that others still use.
    async fn leave_shared(&self, left: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        let desired = match self.mutant {
            Mutant::RemovesSharedBalancers => DesiredState::Absent(&left.balancer_ref),
            _ => DesiredState::Present(left),
        };
        let outcome = self.apply_correctly(desired).await?;
        Ok(Outcome::Gone {
            done: outcome.done().clone(),
            kept: Vec::new(),
            acknowledged: true,
        })
    }
}

/// The cloud refused everything at once.
fn nothing_done(message: &str) -> Outcome {
    Outcome::Incomplete {
        status: LoadBalancerStatus::default(),
        changes: ServiceChanges::default(),
        done: Plan::default(),
        failures: Failures {
            kind: ErrorKind::LimitExceeded,
            ..Failures::invalid(message)
        },
    }
}

/// The same, whatever the cloud said.
fn acknowledging(mut outcome: Outcome, is_acknowledged: bool) -> Outcome {
    if let Outcome::Gone { acknowledged, .. } | Outcome::Pending { acknowledged, .. } = &mut outcome
    {
        *acknowledged = is_acknowledged;
    }
    outcome
}

/// Leaves something behind if it is dropped while it is armed.
struct LeaksOnDrop<'a>(&'a Faulty, bool);

impl Drop for LeaksOnDrop<'_> {
    fn drop(&mut self) {
        if self.1 {
            self.0.leak();
        }
    }
}

#[async_trait]
impl LoadBalancers for Faulty {
    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        let mut profile = self.balancers_of_correct().profile(balancer_ref);
        profile.features.udp &= self.mutant != Mutant::DeniesUdp;
        profile
    }

    fn lock_keys(&self, balancer_ref: &BalancerRef) -> BTreeSet<LockKey> {
        match self.mutant {
            Mutant::LocksByLabels => {
                let labels = balancer_ref.labels.len();
                [LockKey::new(format!(
                    "{} {labels}",
                    balancer_ref.service.uid
                ))]
                .into()
            }
            Mutant::SharesWithoutALock => [LockKey::of_service(balancer_ref)].into(),
            _ => self.shared.lock_keys(balancer_ref),
        }
    }

    fn unknown_annotations(&self, given: &BTreeMap<String, String>) -> Vec<UnknownAnnotation> {
        match self.mutant {
            Mutant::IgnoresTypos => Vec::new(),
            _ => self.balancers_of_correct().unknown_annotations(given),
        }
    }

    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        let given = annotations.get("test/node-selector");
        let Some(text) = given.filter(|_| self.mutant != Mutant::SelectsEveryNode) else {
            return Ok(None);
        };
        let read = text.parse().map(Some);
        read.map_err(|_| Problem::unexpected("test/node-selector", text, "a label selector"))
    }

    async fn plan(&self, desired: DesiredState<'_>) -> Result<Plan, CloudError> {
        let correct = self.balancers_of_correct();
        match (desired, self.mutant) {
            (_, Mutant::DoesWhatItPlans) => Ok(correct.apply(desired).await?.done().clone()),
            (DesiredState::Present(spec), _) => {
                let mutated = self.mutated(spec);
                let plan = correct.plan(DesiredState::Present(&mutated));
                self.exclusively(Mutant::StaysBusyWhenPlanIsDropped, plan)
                    .await?
            }
            (DesiredState::Absent(_) | DesiredState::Released(_), _) => correct.plan(desired).await,
        }
    }

    async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        match desired {
            DesiredState::Present(spec) => self.present(spec).await,
            DesiredState::Absent(balancer_ref) => self.absent(balancer_ref).await,
            DesiredState::Released(balancer_ref) => self.released(balancer_ref).await,
        }
    }

    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        if self.mutant == Mutant::RecreatesWhatIsMissing {
            self.present(spec).await
        } else {
            let completed = self.completed(spec);
            self.balancers_of_correct()
                .apply_to_existing(&completed)
                .await
        }
    }

    async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Observation, CloudError>> {
        let specs: Vec<_> = specs.iter().map(|spec| self.mutated(spec)).collect();
        if self.mutant == Mutant::ObservesTwice {
            for spec in specs.iter().chain(&specs) {
                let _ = self
                    .balancers_of_correct()
                    .plan(DesiredState::Present(spec))
                    .await;
            }
        }
        let observations = self.balancers_of_correct().observe_all(&specs);
        let observations = self.exclusively(Mutant::StaysBusyWhenObserveIsDropped, observations);
        let observations = match observations.await {
            Ok(observations) => observations,
            Err(busy) => return vec![Err(busy)],
        };
        if self.mutant != Mutant::ObservesNothing {
            return observations;
        }
        let blind = |observed: Result<Observation, _>| Observation {
            plan: Plan::default(),
            ..observed.unwrap_or_default()
        };
        observations.into_iter().map(|s| Ok(blind(s))).collect()
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        if self.mutant == Mutant::OwnsNothing {
            return Ok(Vec::new());
        }
        let owned = self.balancers_of_correct().owned();
        self.exclusively(Mutant::StaysBusyWhenOwnedIsDropped, owned)
            .await?
    }
}
