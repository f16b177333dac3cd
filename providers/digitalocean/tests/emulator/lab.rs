//! A cloud, a provider that sees it, and Services for it.

use std::sync::Arc;

use cloudkeel_api::{
    BalancerRef, CloudProvider as _, ClusterIdentity, CollectedEvents, DesiredState, Failures,
    HealthCheck, HealthProbe, Instances, Listener, LoadBalancerSpec, LoadBalancers, NodeFacts,
    Outcome, ProviderContext, ServiceChanges, ServiceRef, Target, TokioClock,
};
use cloudkeel_emulator_digitalocean::{DigitalOceanCloud, InProcess, LoadBalancer, Settings};
use cloudkeel_provider_digitalocean::{Config, DigitalOceanProvider, Wiring};

pub(crate) const PREFIX: &str = "service.beta.kubernetes.io/do-loadbalancer-";
pub(crate) const ID: &str = "kubernetes.digitalocean.com/load-balancer-id";
pub(crate) const UID: &str = "3f0f2d2e-7d5c-4f0e-9c57-0d9f1a1b2c3d";

pub(crate) struct Lab {
    pub(crate) cloud: DigitalOceanCloud,
    events: Arc<CollectedEvents>,
}

pub(crate) fn config() -> Config {
    let mut config = Config::new(DigitalOceanCloud::TOKEN);
    InProcess::URL.clone_into(&mut config.endpoint);
    config.region = Some("nyc3".to_owned());
    config
}

impl Lab {
    /// A cloud with droplets `node-000`, `node-001` and so on.
    pub(crate) fn new(droplets: usize) -> Self {
        let cloud = DigitalOceanCloud::new(Settings::default());
        for number in 0..droplets {
            cloud.add_droplet(&format!("node-{number:03}"));
        }
        let events = Arc::default();
        Self { cloud, events }
    }

    pub(crate) fn context(&self) -> ProviderContext {
        ProviderContext {
            events: Arc::<CollectedEvents>::clone(&self.events),
            clock: Arc::new(TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH)),
            cluster: cluster(),
            ..ProviderContext::detached("digitalocean")
        }
    }

    pub(crate) async fn provider(&self) -> DigitalOceanProvider {
        self.provider_with(|_| {}).await
    }

    /// A provider whose settings were changed, with an empty log of calls.
    pub(crate) async fn provider_with(
        &self,
        change: impl FnOnce(&mut Config),
    ) -> DigitalOceanProvider {
        let mut config = config();
        change(&mut config);
        let wiring = Wiring::over(self.cloud.transport());
        let provider = DigitalOceanProvider::connect(&config, &self.context(), wiring).await;
        let provider = provider.unwrap();
        self.cloud.reset_calls();
        provider
    }

    /// The one load balancer that is there.
    pub(crate) fn balancer(&self) -> LoadBalancer {
        let mut all = self.cloud.load_balancers();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    pub(crate) fn mutations(&self) -> u64 {
        self.cloud.calls().mutations()
    }

    /// The Events since the last call, as `reason: message`.
    pub(crate) fn reported(&self) -> Vec<String> {
        let events = self.events.take().into_iter();
        events
            .map(|event| format!("{}: {}", event.reason, event.message))
            .collect()
    }

    /// The Nodes of all droplets.
    pub(crate) async fn nodes(&self, provider: &DigitalOceanProvider) -> Vec<NodeFacts> {
        let list = instances(provider).list().await.unwrap();
        let nodes = list.instances().map(|instance| NodeFacts {
            name: instance.name.clone(),
            uid: instance.id.to_string(),
            provider_id: Some(instance.id.clone()),
            addresses: instance.addresses.clone(),
            ..NodeFacts::default()
        });
        let nodes = nodes.collect();
        self.cloud.reset_calls();
        nodes
    }
}

pub(crate) fn cluster() -> ClusterIdentity {
    ClusterIdentity {
        name: "kubernetes".to_owned(),
        uid: Some("11111111-2222-3333-4444-555555555555".to_owned()),
        pod_cidrs: Vec::new(),
    }
}

pub(crate) fn instances(provider: &DigitalOceanProvider) -> &dyn Instances {
    provider.instances().unwrap()
}

pub(crate) fn balancers(provider: &DigitalOceanProvider) -> &dyn LoadBalancers {
    provider.load_balancers().unwrap()
}

/// What the Service `web` asks for: TCP ports, checked by kube-proxy, as the framework fills it in.
pub(crate) fn spec(ports: &[u16], nodes: &[NodeFacts]) -> LoadBalancerSpec {
    let service = ServiceRef {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: UID.to_owned(),
    };
    let listener = |port: &u16| Listener {
        health_check: HealthCheck {
            probe: HealthProbe::Http {
                path: "/healthz".to_owned(),
            },
            port: Some(10256),
            ..HealthCheck::tcp()
        },
        ..Listener::tcp(*port, 30_000 + port % 1_000)
    };
    let target = |node: &NodeFacts| (node.name.clone(), Target::machine(node.clone()));
    LoadBalancerSpec {
        listeners: ports.iter().map(listener).collect(),
        targets: nodes.iter().map(target).collect(),
        ..LoadBalancerSpec::plain(BalancerRef::of(cluster(), service))
    }
}

/// With annotations under the prefix; those with a slash are whole.
pub(crate) fn annotate(spec: &mut LoadBalancerSpec, annotations: &[(&str, &str)]) {
    for (key, value) in annotations {
        let key = if key.contains('/') {
            (*key).to_owned()
        } else {
            format!("{PREFIX}{key}")
        };
        let all = &mut spec.balancer_ref.annotations;
        all.insert(key, (*value).to_owned());
    }
}

pub(crate) async fn attempt(provider: &DigitalOceanProvider, spec: &LoadBalancerSpec) -> Outcome {
    let applied = balancers(provider).apply(DesiredState::Present(spec)).await;
    applied.unwrap_or_else(|error| panic!("{error}"))
}

/// Applies a spec and writes what the Service is to carry, as the controller does.
pub(crate) async fn settle(provider: &DigitalOceanProvider, spec: &mut LoadBalancerSpec) {
    loop {
        match attempt(provider, spec).await {
            Outcome::Settled {
                status, changes, ..
            } => {
                spec.balancer_ref.ingress = status.ingress;
                return write(spec, &changes);
            }
            Outcome::Pending {
                check_after,
                changes,
                ..
            } => {
                write(spec, &changes);
                tokio::time::sleep(check_after).await;
            }
            outcome => panic!("{outcome:?}"),
        }
    }
}

pub(crate) fn write(spec: &mut LoadBalancerSpec, changes: &ServiceChanges) {
    let annotations = &mut spec.balancer_ref.annotations;
    for (key, value) in &changes.annotations {
        match value {
            Some(value) => _ = annotations.insert(key.clone(), value.clone()),
            None => _ = annotations.remove(key),
        }
    }
}

/// What was not met of a spec whose load balancer is there.
pub(crate) async fn unmet(provider: &DigitalOceanProvider, spec: &LoadBalancerSpec) -> Failures {
    match attempt(provider, spec).await {
        Outcome::Incomplete { failures, .. } => failures,
        outcome => panic!("{outcome:?}"),
    }
}

/// Why nothing could be done.
pub(crate) async fn refused(provider: &DigitalOceanProvider, spec: &LoadBalancerSpec) -> String {
    let applied = balancers(provider).apply(DesiredState::Present(spec)).await;
    applied.unwrap_err().to_string()
}
