//! What Services ask for, and what their clouds have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cloudkeel_api::{ClusterIdentity, DesiredState, LoadBalancers, Problem, Shared, Target};
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::service::owner::{ServiceOwner, owner_of_service};
use cloudkeel_controllers::service::spec::{Draft, Setting, Warning, balancer_ref_of, draft};
use cloudkeel_controllers::service::targets::{Candidate, TargetRules, choose, node_selector};
use cloudkeel_controllers::view::{NodeView, ServiceView};
use cloudkeel_diagnose::{Endpoints, Read, ServiceState, Snapshot, Trouble};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client};

use super::builder::bounded;
use super::{Scope, names, read};
use crate::config::Setup;
use crate::options::Options;
use crate::run::ServiceScope;

/// The label with the Service that an `EndpointSlice` belongs to.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// From so many namespaces on, one list of everything is cheaper.
const MANY_NAMESPACES: usize = 8;

/// What the comparison needs.
pub(super) struct Context<'a> {
    pub(super) setup: &'a Setup,
    pub(super) options: &'a Options,
    pub(super) clouds: &'a [Arc<Cloud>],
    pub(super) nodes: &'a [Arc<NodeView>],
    pub(super) cluster: ClusterIdentity,
    pub(super) scope: &'a Scope,
}

/// Targets of Services that select alike: cloud, selector, and the features that decide.
type Chosen = Vec<(
    String,
    [bool; 3],
    Option<String>,
    Shared<BTreeMap<String, Target>>,
)>;

impl Context<'_> {
    /// Enters whose each Service is, what it asks for and what its cloud has.
    pub(super) async fn compare(&self, services: &mut [ServiceState]) {
        let scope = ServiceScope::of_built(self.setup, self.clouds, self.cluster.clone());
        let candidates: Vec<_> = self
            .nodes
            .iter()
            .map(|node| Candidate::new(Arc::clone(node), self.clouds))
            .collect();
        let mut chosen = Chosen::new();
        for service in services.iter_mut() {
            let Some(owner) = owner_of_service(&service.view, &scope.classes) else {
                continue;
            };
            service.owner = Some(owner.cloud.clone());
            let includes = self.scope.includes_service(&service.key());
            let cloud = self.clouds.iter().find(|cloud| cloud.name == owner.cloud);
            let Some(cloud) = cloud.filter(|_| includes) else {
                continue;
            };
            let provider = cloud.provider();
            let Some(balancers) = provider.load_balancers() else {
                continue;
            };
            if service.view.deleting {
                if !self.scope.is_all() {
                    let gone = balancer_ref_of(&service.view, &self.cluster);
                    let plan = balancers.plan(DesiredState::Absent(&gone));
                    service.removal = Some(bounded(plan).await);
                }
            } else {
                let draft = self.draft(&service.view, owner, balancers, &candidates, &mut chosen);
                service.draft = Some(draft);
            }
        }
        for cloud in self.clouds {
            observe(cloud, services).await;
        }
    }

    fn draft(
        &self,
        service: &ServiceView,
        owner: &ServiceOwner,
        balancers: &dyn LoadBalancers,
        candidates: &[Candidate],
        chosen: &mut Chosen,
    ) -> Result<Draft, String> {
        let profile = balancers.profile(&balancer_ref_of(service, &self.cluster));
        let selector = node_selector(service, balancers.node_selector(&service.annotations));
        let targets = selector.map(|selector| {
            let rules = TargetRules {
                owner,
                features: profile.features,
                selector,
            };
            targets(&rules, candidates, chosen)
        });
        let setting = Setting {
            cluster: &self.cluster,
            features: profile.features,
            health_checks: self
                .options
                .service
                .health_checks
                .over(profile.health_check, owner.is_own_config),
        };
        let targets: Result<_, Problem> = targets;
        let mut draft = draft(service, targets, &setting).map_err(|wrong| wrong.to_string())?;
        let unknown = balancers.unknown_annotations(&service.annotations);
        draft
            .warnings
            .extend(unknown.into_iter().map(Warning::from));
        let others = Warning::of_other_clouds(owner, profile.features);
        draft.warnings.extend(others);
        Ok(draft)
    }
}

/// The targets that rules choose, once for all Services that have the same.
fn targets(
    rules: &TargetRules<'_>,
    candidates: &[Candidate],
    chosen: &mut Chosen,
) -> Shared<BTreeMap<String, Target>> {
    let features = &rules.features;
    let alike = [
        features.drain,
        features.targets_by_address,
        features.every_node,
    ];
    let selector = rules.selector.as_ref().map(ToString::to_string);
    let known = chosen.iter().find(|(cloud, features, known, _)| {
        *cloud == rules.owner.cloud && *features == alike && *known == selector
    });
    if let Some((.., targets)) = known {
        return targets.clone();
    }
    let targets: Shared<_> = choose(candidates, rules).into();
    let cloud = rules.owner.cloud.clone();
    chosen.push((cloud, alike, selector, targets.clone()));
    targets
}

/// Observes all load balancers of a cloud in as few reads as it allows.
async fn observe(cloud: &Cloud, services: &mut [ServiceState]) {
    let provider = cloud.provider();
    let Some(balancers) = provider.load_balancers() else {
        return;
    };
    let mut places = Vec::new();
    let mut specs = Vec::new();
    for (place, service) in services.iter().enumerate() {
        if service.owner.as_ref() == Some(&cloud.name)
            && let Some(Ok(draft)) = &service.draft
        {
            places.push(place);
            specs.push(draft.spec.clone());
        }
    }
    if specs.is_empty() {
        return;
    }
    let observed = balancers.observe_all(&specs).await;
    for (place, observed) in places.into_iter().zip(observed) {
        if let Some(service) = services.get_mut(place) {
            service.observed = Some(observed.map_err(|error| Trouble::from(&error)));
        }
    }
}

/// Enters the endpoints of Services that want a load balancer.
pub(super) async fn read_endpoints(client: &Client, snapshot: &mut Snapshot, scope: &Scope) {
    let Ok(services) = &mut snapshot.services else {
        return;
    };
    let is_meant = |it: &ServiceState| it.is_wanted() && scope.includes_service(&it.key());
    let mut by_namespace = BTreeMap::<String, BTreeSet<String>>::new();
    for service in services.iter().filter(|it| is_meant(it)) {
        let service = &service.view.service;
        let names = by_namespace.entry(service.namespace.clone()).or_default();
        names.insert(service.name.clone());
    }
    if by_namespace.is_empty() {
        return;
    }
    let slices = endpoint_slices(client, &by_namespace).await;
    let all = slices.map(|slices| by_service(&slices));
    for service in services.iter_mut().filter(|it| is_meant(it)) {
        let endpoints = all.as_ref().map(|all| all.get(&service.key()).cloned());
        let endpoints = endpoints
            .map(Option::unwrap_or_default)
            .map_err(Clone::clone);
        service.endpoints = Some(endpoints);
    }
}

async fn endpoint_slices(
    client: &Client,
    by_namespace: &BTreeMap<String, BTreeSet<String>>,
) -> Read<Vec<EndpointSlice>> {
    if by_namespace.len() > MANY_NAMESPACES {
        let api: Api<EndpointSlice> = Api::all(client.clone());
        let like = ListParams::default().labels(SERVICE_LABEL).match_any();
        return Ok(read("EndpointSlices", api.list(&like)).await?.items);
    }
    let mut slices = Vec::new();
    for (namespace, services) in by_namespace {
        let api: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
        let services = names(services.iter().map(String::as_str));
        let services: Vec<_> = services.into_iter().collect();
        let selector = format!("{SERVICE_LABEL} in ({})", services.join(","));
        let like = ListParams::default().labels(&selector);
        slices.extend(read("EndpointSlices", api.list(&like)).await?.items);
    }
    Ok(slices)
}

fn by_service(slices: &[EndpointSlice]) -> BTreeMap<String, Endpoints> {
    let mut all = BTreeMap::<String, Endpoints>::new();
    for slice in slices {
        let labels = slice.metadata.labels.as_ref();
        let Some(name) = labels.and_then(|labels| labels.get(SERVICE_LABEL)) else {
            continue;
        };
        let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
        let endpoints = all.entry(format!("{namespace}/{name}")).or_default();
        for endpoint in &slice.endpoints {
            let conditions = endpoint.conditions.as_ref();
            // Unknown counts as ready.
            if conditions.and_then(|it| it.ready).unwrap_or(true) {
                endpoints.ready += 1;
                endpoints.nodes.extend(endpoint.node_name.clone());
            }
        }
    }
    all
}
