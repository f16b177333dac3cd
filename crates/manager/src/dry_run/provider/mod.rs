//! A provider whose reads are those of the cloud, and whose changes are only recorded.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BackgroundContext, BackgroundController, BalancerProfile, BalancerRef, Capability, CloudError,
    CloudProvider, Clusters, DesiredState, ErrorKind, Features, Instances, LabelSelector,
    LoadBalancerSpec, LoadBalancers, LockKey, NodeFacts, Observation, Outcome, OwnedResource, Plan,
    Problem, ProviderId, Recognition, Route, RouteChange, Routes, ScopeFingerprint, Shared,
    UnknownAnnotation, UnprovenResource, Volumes, Webhook,
};

use super::{PLANNED, Recorder};

/// A balancer that is not as desired is planned again this often. Changes in the cluster plan it at once.
const PLAN_AGAIN: Duration = Duration::from_mins(5);

/// A cloud in a dry run.
pub(crate) struct DryRunProvider {
    cloud: String,
    inner: Arc<dyn CloudProvider>,
    recorder: Arc<Recorder>,
}

impl DryRunProvider {
    /// Around the provider of a cloud.
    pub(crate) const fn new(
        cloud: String,
        inner: Arc<dyn CloudProvider>,
        recorder: Arc<Recorder>,
    ) -> Self {
        Self {
            cloud,
            inner,
            recorder,
        }
    }

    fn balancers(&self) -> Result<&dyn LoadBalancers, CloudError> {
        let balancers = self.inner.load_balancers();
        balancers.ok_or_else(|| CloudError::unsupported("load balancers", "this cloud has none"))
    }

    /// What applying a spec would do, as an outcome that changes nothing.
    async fn apply_present(
        &self,
        spec: &LoadBalancerSpec,
        must_exist: bool,
    ) -> Result<Outcome, CloudError> {
        let service = &spec.balancer_ref.service;
        let observed = self.balancers()?.observe_all(std::slice::from_ref(spec));
        let observed = observed.await.pop().unwrap_or_else(|| {
            let message = format!("the cloud did not answer about the load balancer of {service}");
            Err(CloudError::new(
                "plan load balancer",
                ErrorKind::Incomplete,
                message,
            ))
        });
        self.note_failure("load balancers", observed.as_ref().err());
        let Observation { plan, report } = match observed {
            Ok(observed) => observed,
            Err(error) => {
                self.recorder
                    .set_balancer(&self.cloud, service, &Plan::default());
                return Err(error.without_effect());
            }
        };
        if must_exist && !report.status.exists {
            self.recorder
                .set_balancer(&self.cloud, service, &Plan::default());
            let message =
                format!("the load balancer of {service}, whose address is published, is not found");
            let error = CloudError::new("plan load balancer", ErrorKind::NotFound, message);
            return Err(error.without_effect());
        }
        self.recorder.set_balancer(&self.cloud, service, &plan);
        let wait = match report.busy {
            Some(busy) => Some((busy.why, busy.check_after)),
            None if plan.is_empty() => None,
            None => Some((PLANNED.to_owned(), PLAN_AGAIN)),
        };
        Ok(match wait {
            None => Outcome::Settled {
                status: report.status,
                changes: report.changes,
                done: Plan::default(),
            },
            Some((why, check_after)) => Outcome::Pending {
                why,
                check_after,
                status: Some(report.status).filter(|status| status.exists),
                changes: report.changes,
                done: Plan::default(),
                acknowledged: false,
            },
        })
    }

    fn note_failure(&self, reads: &str, error: Option<&CloudError>) {
        let is_failure = |error: &&CloudError| {
            matches!(
                error.kind(),
                ErrorKind::Throttled { .. }
                    | ErrorKind::Unauthenticated
                    | ErrorKind::Denied
                    | ErrorKind::Unavailable
                    | ErrorKind::Timeout
                    | ErrorKind::Malformed
                    | ErrorKind::Incomplete
                    | ErrorKind::Cancelled
                    | ErrorKind::Other
            )
        };
        let failure = error.filter(is_failure);
        let failure = failure.map(|error| format!("{reads} cannot be read: {error}"));
        self.recorder.note_failure(&self.cloud, reads, failure);
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl CloudProvider for DryRunProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.inner.recognize(id)
    }

    fn recognize_node(&self, node: &NodeFacts) -> Option<Recognition> {
        self.inner.recognize_node(node)
    }

    fn has_cluster_id(&self) -> bool {
        self.inner.has_cluster_id()
    }

    async fn check(&self) -> Result<ScopeFingerprint, CloudError> {
        self.inner.check().await
    }

    fn files(&self) -> Vec<PathBuf> {
        self.inner.files()
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.inner.instances()
    }

    fn load_balancers(&self) -> Option<&dyn LoadBalancers> {
        self.inner.load_balancers()?;
        Some(self)
    }

    fn routes(&self) -> Option<&dyn Routes> {
        self.inner.routes()?;
        Some(self)
    }

    fn clusters(&self) -> Option<&dyn Clusters> {
        self.inner.clusters()
    }

    fn volumes(&self) -> Option<&dyn Volumes> {
        self.inner.volumes()
    }

    /// Webhooks answer the API server, so they are no part of a dry run.
    fn webhooks(&self) -> Vec<Arc<dyn Webhook>> {
        Vec::new()
    }

    fn background_controllers(&self) -> Vec<Arc<dyn BackgroundController>> {
        let controllers = self.inner.background_controllers().into_iter();
        let idle = controllers.map(|inner| -> Arc<dyn BackgroundController> {
            Arc::new(NotRun {
                cloud: self.cloud.clone(),
                inner,
                recorder: Arc::clone(&self.recorder),
            })
        });
        idle.collect()
    }

    async fn close(&self) {
        self.inner.close().await;
    }

    fn capabilities(&self) -> Vec<Capability> {
        self.inner.capabilities()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl LoadBalancers for DryRunProvider {
    fn profile(&self, balancer_ref: &BalancerRef) -> BalancerProfile {
        let inner = self.inner.load_balancers();
        inner.map_or_else(
            || BalancerProfile::with_features(Features::default()),
            |inner| inner.profile(balancer_ref),
        )
    }

    fn classes(&self) -> Vec<String> {
        let inner = self.inner.load_balancers();
        inner.map(LoadBalancers::classes).unwrap_or_default()
    }

    fn lock_keys(&self, balancer_ref: &BalancerRef) -> BTreeSet<LockKey> {
        let inner = self.inner.load_balancers();
        inner
            .map(|inner| inner.lock_keys(balancer_ref))
            .unwrap_or_default()
    }

    fn points_at_balancer(&self, balancer_ref: &BalancerRef) -> bool {
        let inner = self.inner.load_balancers();
        inner.is_some_and(|inner| inner.points_at_balancer(balancer_ref))
    }

    fn unknown_annotations(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Vec<UnknownAnnotation> {
        let inner = self.inner.load_balancers();
        inner
            .map(|inner| inner.unknown_annotations(annotations))
            .unwrap_or_default()
    }

    fn node_selector(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Option<LabelSelector>, Problem> {
        let inner = self.inner.load_balancers();
        inner.map_or(Ok(None), |inner| inner.node_selector(annotations))
    }

    async fn plan(&self, desired: DesiredState<'_>) -> Result<Plan, CloudError> {
        self.balancers()?.plan(desired).await
    }

    async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        if let Some(spec) = desired.spec() {
            return self.apply_present(spec, false).await;
        }
        let planned = self.balancers()?.plan(desired).await;
        self.note_failure("load balancers", planned.as_ref().err());
        let done = planned.map_err(CloudError::without_effect)?;
        let service = &desired.balancer_ref().service;
        self.recorder.set_balancer(&self.cloud, service, &done);
        Ok(Outcome::Gone {
            acknowledged: !done.is_empty(),
            done,
            kept: Vec::new(),
        })
    }

    async fn apply_to_existing(&self, spec: &LoadBalancerSpec) -> Result<Outcome, CloudError> {
        self.apply_present(spec, true).await
    }

    async fn observe_all(
        &self,
        specs: &[LoadBalancerSpec],
    ) -> Vec<Result<Observation, CloudError>> {
        let Ok(inner) = self.balancers() else {
            return Vec::new();
        };
        let observed = inner.observe_all(specs).await;
        let failed = observed.iter().find_map(|it| it.as_ref().err());
        self.note_failure("load balancers", failed);
        observed
    }

    async fn owned(&self) -> Result<Vec<OwnedResource>, CloudError> {
        self.balancers()?.owned().await
    }

    async fn unproven(&self) -> Result<Vec<UnprovenResource>, CloudError> {
        self.balancers()?.unproven().await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Routes for DryRunProvider {
    async fn list(&self, nodes: &[Shared<NodeFacts>]) -> Result<Vec<Route>, CloudError> {
        let Some(routes) = self.inner.routes() else {
            return Err(CloudError::unsupported(
                "list routes",
                "this cloud has none",
            ));
        };
        let listed = routes.list(nodes).await;
        self.note_failure("routes", listed.as_ref().err());
        if listed.is_ok() {
            self.recorder.set_routes(&self.cloud, &[]);
        }
        listed
    }

    /// Conditions of Nodes are not written for routes that were not made.
    async fn apply(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        self.recorder.set_routes(&self.cloud, changes);
        let not_made = |_| {
            Err(CloudError::new(
                "change routes",
                ErrorKind::ImplementedElsewhere,
                PLANNED,
            ))
        };
        changes.iter().map(not_made).collect()
    }
}

/// A controller of a provider. It changes the cloud by itself, so a dry run cannot show what it would do.
struct NotRun {
    cloud: String,
    inner: Arc<dyn BackgroundController>,
    recorder: Arc<Recorder>,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl BackgroundController for NotRun {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn on_by_default(&self) -> bool {
        self.inner.on_by_default()
    }

    fn watches_services(&self) -> bool {
        false
    }

    async fn run(&self, context: BackgroundContext) -> Result<(), CloudError> {
        let (name, cloud) = (self.name(), &self.cloud);
        self.recorder.note_not_planned(format!(
            "what {name} of cloud {cloud} would do: it does not run"
        ));
        context.stop.cancelled().await;
        Ok(())
    }
}
