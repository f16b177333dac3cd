//! A cloud, a provider that sees it, and Services for it.

use std::sync::Arc;

use cloudkeel_api::{
    BalancerRef, CloudProvider as _, ClusterIdentity, CollectedEvents, DesiredState, Event,
    Failures, Instance, Instances, Listener, LoadBalancerSpec, LoadBalancers, NodeFacts, Outcome,
    ProviderContext, Routes, ServiceRef, Target, TokioClock,
};
use cloudkeel_emulator_hetzner::{
    Destination, HetznerCloud, InProcess, LoadBalancer, ServerSpec, Settings,
};
use cloudkeel_http::{Client, HeaderAuth, Request};
use cloudkeel_provider_hetzner::{Config, HetznerProvider, Wiring};
use jiff::Timestamp;
use serde_json::Value;

/// The emulator's time.
const EPOCH: i64 = 1_767_225_600;

pub(crate) struct Lab {
    pub(crate) cloud: HetznerCloud,
    pub(crate) events: Arc<CollectedEvents>,
    pub(crate) network: u64,
}

impl Lab {
    /// A cloud with servers `node-000`, `node-001` and so on in the network `kube`.
    pub(crate) fn new(servers: usize) -> Self {
        Self::with(servers, Settings::default())
    }

    pub(crate) fn with(servers: usize, settings: Settings) -> Self {
        let cloud = HetznerCloud::new(settings);
        let range = "10.0.0.0/16".parse().unwrap();
        let network = cloud.add_network("kube", range).unwrap().id;
        for number in 0..servers {
            let spec = ServerSpec::named(format!("node-{number:03}")).in_network(network);
            cloud.add_server(spec).unwrap();
        }
        Self {
            cloud,
            events: Arc::default(),
            network,
        }
    }

    pub(crate) fn config() -> Config {
        let mut config = Config::new(HetznerCloud::TOKEN);
        config.endpoint = format!("{}/v1", InProcess::URL);
        config.robot.endpoint = format!("{}/robot", InProcess::URL);
        config.attached_check = false;
        config.load_balancers.location = Some("fsn1".to_owned());
        config.load_balancers.load_balancer_type = Some("lb11".to_owned());
        config
    }

    pub(crate) fn context(&self) -> ProviderContext {
        let epoch = Timestamp::from_second(EPOCH).unwrap();
        ProviderContext {
            events: Arc::<CollectedEvents>::clone(&self.events),
            clock: Arc::new(TokioClock::starting_at(epoch)),
            cluster: cluster(),
            ..ProviderContext::detached("hcloud")
        }
    }

    pub(crate) fn wiring(&self) -> Wiring {
        Wiring {
            transport: Some(Arc::new(self.cloud.transport())),
            metadata: None,
            seed: Some(1),
        }
    }

    pub(crate) async fn provider(&self) -> HetznerProvider {
        self.provider_with(|_| {}).await
    }

    /// A provider whose settings were changed, with an empty log of calls.
    pub(crate) async fn provider_with(&self, change: impl FnOnce(&mut Config)) -> HetznerProvider {
        let mut config = Self::config();
        change(&mut config);
        let provider = HetznerProvider::connect(&config, &self.context(), self.wiring()).await;
        let provider = provider.unwrap();
        self.cloud.reset_calls();
        provider
    }

    /// A provider with the private network.
    pub(crate) async fn networked(&self) -> HetznerProvider {
        self.provider_with(|config| config.network = Some("kube".to_owned()))
            .await
    }

    /// The API, called without the provider.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.speak(Request::post(path.to_owned()).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) {
        let client = self.client();
        let deleted = client.send(Request::delete(path.to_owned())).await;
        deleted.unwrap();
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Value {
        self.speak(Request::put(path.to_owned()).json(body)).await
    }

    async fn speak(&self, request: Request) -> Value {
        self.client().fetch(request).await.unwrap()
    }

    fn client(&self) -> Client {
        Client::builder(format!("{}/v1", InProcess::URL))
            .transport(Arc::new(self.cloud.transport()))
            .authorizer(HeaderAuth::bearer(HetznerCloud::TOKEN.into()))
            .build()
            .unwrap()
    }

    /// The one balancer that is there.
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

    /// The servers that the one balancer leads to, and whether through the network.
    pub(crate) fn targets(&self) -> Vec<(u64, bool)> {
        let mut targets: Vec<_> = self
            .balancer()
            .targets
            .iter()
            .filter_map(|target| match target.to {
                Destination::Server(id) => Some((id, target.use_private_ip)),
                Destination::LabelSelector(_) | Destination::Ip(_) => None,
            })
            .collect();
        targets.sort_unstable();
        targets
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        let events = self.events.take();
        let reason = |event: Event| event.reason.into_owned();
        let mut reasons: Vec<_> = events.into_iter().map(reason).collect();
        reasons.sort();
        reasons
    }

    /// The Nodes of all servers, as the node controller would have initialised them.
    pub(crate) async fn nodes(&self, provider: &HetznerProvider) -> Vec<NodeFacts> {
        let instances = provider.instances().unwrap();
        let list = instances.list().await.unwrap();
        let nodes = list.instances().map(node).collect();
        self.cloud.reset_calls();
        nodes
    }
}

pub(crate) fn node(instance: &Instance) -> NodeFacts {
    NodeFacts {
        name: instance.name.clone(),
        uid: format!("uid-{}", instance.name),
        provider_id: Some(instance.id.clone()),
        addresses: instance.addresses.clone(),
        ..NodeFacts::default()
    }
}

pub(crate) fn instances(provider: &HetznerProvider) -> &dyn Instances {
    provider.instances().unwrap()
}

pub(crate) fn balancers(provider: &HetznerProvider) -> &dyn LoadBalancers {
    provider.load_balancers().unwrap()
}

pub(crate) fn routes(provider: &HetznerProvider) -> &dyn Routes {
    provider.routes().unwrap()
}

pub(crate) fn balancer_ref(uid: &str) -> BalancerRef {
    let service = ServiceRef {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: uid.to_owned(),
    };
    BalancerRef::of(cluster(), service)
}

fn cluster() -> ClusterIdentity {
    ClusterIdentity {
        name: "kubernetes".to_owned(),
        uid: Some("c-1".to_owned()),
        pod_cidrs: vec!["10.244.0.0/16".parse().unwrap()],
    }
}

/// A Service with these ports, and all these Nodes as targets.
pub(crate) fn spec(ports: &[u16], nodes: &[NodeFacts]) -> LoadBalancerSpec {
    let listener = |port: &u16| Listener::tcp(*port, 30_000 + port % 1_000);
    let target = |node: &NodeFacts| (node.name.clone(), Target::machine(node.clone()));
    LoadBalancerSpec {
        listeners: ports.iter().map(listener).collect(),
        targets: nodes.iter().map(target).collect(),
        ..LoadBalancerSpec::plain(balancer_ref("u-1"))
    }
}

pub(crate) fn annotate(spec: &mut LoadBalancerSpec, pairs: &[(&str, &str)]) {
    for (key, value) in pairs {
        let key = format!("load-balancer.hetzner.cloud/{key}");
        spec.balancer_ref
            .annotations
            .insert(key, (*value).to_owned());
    }
}

/// Applies a desired state as the service controller does, until it is settled.
pub(crate) async fn settle(provider: &HetznerProvider, spec: &LoadBalancerSpec) -> Outcome {
    for _ in 0..50 {
        let outcome = balancers(provider).apply(DesiredState::Present(spec)).await;
        match outcome.unwrap() {
            Outcome::Pending { check_after, .. } => tokio::time::sleep(check_after).await,
            Outcome::Incomplete { failures, .. } => panic!("{failures:?}"),
            outcome => return outcome,
        }
    }
    panic!("it never settles");
}

/// Applies a desired state once.
pub(crate) async fn attempt(provider: &HetznerProvider, spec: &LoadBalancerSpec) -> Outcome {
    let outcome = balancers(provider).apply(DesiredState::Present(spec)).await;
    outcome.unwrap()
}

/// What was refused of a desired state whose rest was carried out.
pub(crate) fn refused(outcome: &Outcome) -> &Failures {
    let Outcome::Incomplete { failures, .. } = outcome else {
        panic!("{outcome:?}");
    };
    failures
}

/// The plan for a desired state, in words.
pub(crate) async fn planned(provider: &HetznerProvider, spec: &LoadBalancerSpec) -> String {
    let plan = balancers(provider).plan(DesiredState::Present(spec)).await;
    plan.unwrap().to_string()
}

/// How many steps a survey sees for each desired state.
pub(crate) async fn drift(provider: &HetznerProvider, specs: &[LoadBalancerSpec]) -> Vec<usize> {
    let observe_all = balancers(provider).observe_all(specs).await;
    observe_all
        .into_iter()
        .map(|plan| plan.unwrap().plan.len())
        .collect()
}
