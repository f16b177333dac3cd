//! Balancers, with one sin.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use cloudkeel_api::{
    Affinity, BalancerProfile, Claim, CloudError, ErrorKind, HealthCheck, LoadBalancerSpec,
    LoadBalancers, Options, Outcome, OwnedResource, Plan, Protocol, Surveyed, TargetBy,
    TargetState, Wish,
};
use cloudkeel_testkit::simulated_cloud::wire::NewBalancer;

use crate::sin::Sin;
use crate::wrong::Wrong;

const SERVICE_UID: &str = "cloudkeel.dev/service-uid";
const CLUSTER_UID: &str = "cloudkeel.dev/cluster-uid";

impl Wrong {
    /// What the sin makes of a wish.
    fn twisted(&self, spec: &LoadBalancerSpec) -> LoadBalancerSpec {
        let mut spec = spec.clone();
        match self.sin {
            Sin::ForgetsATarget => {
                spec.targets.pop_last();
            }
            Sin::IgnoresNodePorts => {
                for listener in &mut spec.listeners {
                    listener.node_port = Some(30_000 + listener.port % 1_000);
                }
            }
            Sin::ChecksEverythingByTcp => {
                for listener in &mut spec.listeners {
                    listener.health_check = HealthCheck::tcp();
                }
            }
            Sin::KeepsOldPorts => self.keep_old_ports(&mut spec),
            Sin::IgnoresSourceRanges => spec.source_ranges.clear(),
            Sin::KnowsPortsAndTargetsOnly => {
                spec = LoadBalancerSpec {
                    address: None,
                    affinity: Affinity::None,
                    options: Options::default(),
                    ..spec
                };
                spec.families.truncate(1);
                spec.listeners.retain(|l| l.protocol == Protocol::Tcp);
                spec.targets.retain(|_, t| t.by == TargetBy::Machine);
                for target in spec.targets.values_mut() {
                    target.state = TargetState::Serving;
                }
            }
            Sin::IgnoresAdoption => spec.claim.adopt = None,
            Sin::MarksByProcess => {
                let process = self.process;
                spec.claim.service.uid = format!("{process}-{}", spec.claim.service.uid);
            }
            Sin::StartsAnewAfterErrors => {
                let errors = self.count.load(Ordering::Relaxed);
                spec.claim.service.uid = format!("{errors}-{}", spec.claim.service.uid);
            }
            _ => {}
        }
        spec
    }

    fn keep_old_ports(&self, spec: &mut LoadBalancerSpec) {
        for balancer in self.cloud.balancers() {
            for old in balancer.listeners {
                if spec.listeners.iter().all(|l| l.port != old.port) {
                    let mut kept = spec.listeners[0].clone();
                    kept.port = old.port;
                    kept.node_port = Some(old.target_port);
                    spec.listeners.push(kept);
                }
            }
        }
    }

    /// Puts our marks on everything.
    fn claim_all(&self, claim: &Claim) {
        for balancer in self.cloud.balancers() {
            let marked = self.cloud.edit_balancer(balancer.id, |balancer| {
                let (uid, cluster) = (&claim.service.uid, &claim.cluster.uid);
                balancer.protected = false;
                balancer.labels.insert(SERVICE_UID.into(), uid.clone());
                if let Some(cluster) = cluster {
                    balancer.labels.insert(CLUSTER_UID.into(), cluster.clone());
                }
            });
            marked.unwrap();
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

    /// Makes a balancer for nobody, only to delete it.
    async fn delete_blindly(&self) {
        let mut spec = self.last_wish.lock().unwrap().clone();
        if let Some(spec) = &mut spec {
            "blind".clone_into(&mut spec.claim.service.uid);
            let right = self.balancers_of_right();
            right.apply(Wish::Present(spec)).await.unwrap();
            right.apply(Wish::Absent(&spec.claim)).await.unwrap();
        }
    }

    async fn present(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        let right = self.balancers_of_right();
        *self.last_wish.lock().unwrap() = Some(spec.clone());
        if self.sin == Sin::WritesEveryTime {
            let mut other = spec.clone();
            other.listeners.reverse();
            other.listeners.pop();
            right.apply(Wish::Present(&other)).await?;
        }
        if self.sin == Sin::OneBadTargetBlocksAll
            && spec.targets.values().any(|t| t.node.provider_id.is_none())
        {
            return Err(CloudError::invalid("plan", "a target has no ID"));
        }
        let known = self.cloud.machines().len();
        let blocked = match self.sin {
            Sin::OneBadTargetBlocksAll => spec.targets.len() > known,
            Sin::NeedsATarget => spec.targets.is_empty(),
            Sin::HelpsOnlyOnce => self.count.load(Ordering::Relaxed) > 0,
            _ => false,
        };
        if blocked {
            return Err(CloudError::invalid("plan", "not like this"));
        }
        let mut dropped = LeaksOnDrop(self, self.sin == Sin::LeaksWhenDropped);
        let outcome = right.apply(Wish::Present(&self.twisted(spec))).await;
        dropped.1 = false;
        match (outcome, self.sin) {
            (outcome, Sin::LeaksAfterFaults) => {
                if self.has_met_a_fault() {
                    self.leak();
                }
                outcome
            }
            (Ok(outcome), Sin::MakesASecondOne) => {
                if outcome.done().is_empty() {
                    self.leak();
                }
                Ok(outcome)
            }
            (Ok(outcome @ Outcome::Incomplete { .. }), Sin::LeaksAfterErrors) => {
                self.leak();
                Ok(outcome)
            }
            (Err(error), Sin::LeaksAfterErrors) => {
                self.leak();
                Err(error)
            }
            (Err(error), Sin::StartsAnewAfterErrors) => {
                self.count.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
            (Err(error), Sin::AdoptsNamesakes) if error.kind() == ErrorKind::NotOurs => {
                self.claim_all(&spec.claim);
                right.apply(Wish::Present(spec)).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn released(&self, claim: &Claim) -> Result<Outcome, CloudError> {
        let right = self.balancers_of_right();
        let kept = || vec!["it".to_owned()];
        match self.sin {
            Sin::ReleasesNothing => Ok(Outcome::Gone {
                done: Plan::default(),
                kept: kept(),
                acknowledged: true,
            }),
            Sin::DeletesWhatItReleases => match right.apply(Wish::Absent(claim)).await? {
                Outcome::Gone {
                    done, acknowledged, ..
                } => Ok(Outcome::Gone {
                    done,
                    kept: kept(),
                    acknowledged,
                }),
                outcome => Ok(outcome),
            },
            _ => right.apply(Wish::Released(claim)).await,
        }
    }

    async fn absent(&self, claim: &Claim) -> Result<Outcome, CloudError> {
        let gone = Outcome::Gone {
            done: Plan::default(),
            kept: Vec::new(),
            acknowledged: true,
        };
        match self.sin {
            Sin::SaysGoneAndDoesNothing => return Ok(gone),
            Sin::DeletesNamesakes | Sin::DeletesProtected => self.claim_all(claim),
            Sin::HelpsOnlyOnce => {
                self.count.fetch_add(1, Ordering::Relaxed);
            }
            Sin::LeaksAfterFaults if self.has_met_a_fault() => self.leak(),
            Sin::DeletesBlindly => self.delete_blindly().await,
            _ => {}
        }
        let outcome = self.balancers_of_right().apply(Wish::Absent(claim)).await;
        match (outcome, self.sin) {
            (Err(_), Sin::TakesErrorsForAbsence) => Ok(gone),
            (Ok(outcome), Sin::ClaimsEveryRemoval) => Ok(claiming(outcome, true)),
            (Ok(outcome), Sin::ClaimsNoRemoval) => Ok(claiming(outcome, false)),
            (outcome, _) => outcome,
        }
    }
}

/// The same, whatever the cloud said.
fn claiming(mut outcome: Outcome, is_claimed: bool) -> Outcome {
    if let Outcome::Gone { acknowledged, .. } | Outcome::Pending { acknowledged, .. } = &mut outcome
    {
        *acknowledged = is_claimed;
    }
    outcome
}

/// Leaves something behind if it is dropped while it is armed.
struct LeaksOnDrop<'a>(&'a Wrong, bool);

impl Drop for LeaksOnDrop<'_> {
    fn drop(&mut self) {
        if self.1 {
            self.0.leak();
        }
    }
}

#[async_trait]
impl LoadBalancers for Wrong {
    fn profile(&self, claim: &Claim) -> BalancerProfile {
        let mut profile = self.balancers_of_right().profile(claim);
        profile.features.udp &= self.sin != Sin::SaysItCannotDoUdp;
        profile
    }

    async fn plan(&self, wish: Wish<'_>) -> Result<Plan, CloudError> {
        let right = self.balancers_of_right();
        match (wish, self.sin) {
            (_, Sin::DoesWhatItPlans) => Ok(right.apply(wish).await?.done().clone()),
            (Wish::Present(spec), _) => right.plan(Wish::Present(&self.twisted(spec))).await,
            (Wish::Absent(_) | Wish::Released(_), _) => right.plan(wish).await,
        }
    }

    async fn apply(&self, wish: Wish<'_>) -> Result<Outcome, CloudError> {
        match wish {
            Wish::Present(spec) => self.present(spec).await,
            Wish::Absent(claim) => self.absent(claim).await,
            Wish::Released(claim) => self.released(claim).await,
        }
    }

    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        match self.sin {
            Sin::MakesAnewWhatIsMissing => self.present(spec).await,
            _ => self.balancers_of_right().apply_to_existing(spec).await,
        }
    }

    async fn survey(&self, specs: &[LoadBalancerSpec]) -> Vec<Result<Surveyed, CloudError>> {
        let specs: Vec<_> = specs.iter().map(|spec| self.twisted(spec)).collect();
        if self.sin == Sin::SurveysTwice {
            for spec in specs.iter().chain(&specs) {
                let _ = self.balancers_of_right().plan(Wish::Present(spec)).await;
            }
        }
        let survey = self.balancers_of_right().survey(&specs).await;
        if self.sin != Sin::SurveysNothing {
            return survey;
        }
        let blind = |surveyed: Result<Surveyed, _>| Surveyed {
            plan: Plan::default(),
            ..surveyed.unwrap_or_default()
        };
        survey.into_iter().map(|s| Ok(blind(s))).collect()
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        match self.sin {
            Sin::OwnsNothing => Ok(Vec::new()),
            _ => self.balancers_of_right().owned().await,
        }
    }
}
