//! An account with Nodes, and a provider that sees it.

use std::sync::Arc;

use cloudkeel_api::{
    BalancerRef, CloudProvider, ClusterIdentity, DesiredState, HealthCheck, Listener,
    LoadBalancerSpec, LoadBalancerStatus, NodeFacts, Outcome, ProviderContext, ServiceRef, Target,
};
use cloudkeel_provider_aws::{AwsProvider, Config};
use serde_json::{Value, json};

use crate::support::Moto;

pub(crate) struct Lab {
    pub(crate) moto: Moto,
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) nodes: Vec<NodeFacts>,
}

pub(crate) fn context() -> ProviderContext {
    ProviderContext {
        cluster: ClusterIdentity {
            name: "kubernetes".to_owned(),
            uid: Some("c-1".to_owned()),
            pod_cidrs: vec![],
        },
        ..ProviderContext::detached("aws")
    }
}

impl Lab {
    /// A new account with so many Nodes.
    pub(crate) async fn with_nodes(count: usize) -> Self {
        let moto = Moto::new(None).await;
        for number in 1..=count {
            moto.change("add_instance", &json!([format!("node-{number}")]))
                .await
                .unwrap();
        }
        let config = moto.config();
        Self::of(moto, &config).await
    }

    pub(crate) async fn of(moto: Moto, config: &Config) -> Self {
        let provider = AwsProvider::connect(config, &context(), moto.wiring())
            .await
            .unwrap();
        let state = moto.state().await.unwrap();
        let nodes = state["instances"]
            .as_array()
            .unwrap()
            .iter()
            .map(node)
            .collect();
        Self {
            provider: Arc::new(provider),
            moto,
            nodes,
        }
    }

    /// What a Service with these ports and annotations asks for.
    pub(crate) fn service(&self, ports: &[u16], annotations: &[(&str, &str)]) -> LoadBalancerSpec {
        let service = ServiceRef {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: "12345678-1234-1234-1234-123456789abc".to_owned(),
        };
        let mut spec = LoadBalancerSpec::plain(BalancerRef::of(context().cluster, service));
        spec.listeners = ports
            .iter()
            .map(|port| Listener::tcp(*port, 30_000 + port % 1000))
            .collect();
        for listener in &mut spec.listeners {
            listener.health_check = HealthCheck::tcp();
        }
        let target = |node: &NodeFacts| (node.name.clone(), Target::machine(node.clone()));
        spec.targets = self.nodes.iter().map(target).collect();
        for (key, value) in annotations {
            let key = format!("service.beta.kubernetes.io/aws-load-balancer-{key}");
            spec.balancer_ref
                .annotations
                .insert(key, (*value).to_owned());
        }
        spec
    }

    /// Applies a spec until nothing is left to do.
    pub(crate) async fn settle(&self, spec: &LoadBalancerSpec) -> LoadBalancerStatus {
        let balancers = self.provider.load_balancers().unwrap();
        for _ in 0..20 {
            match balancers.apply(DesiredState::Present(spec)).await.unwrap() {
                Outcome::Settled { status, .. } => return status,
                Outcome::Pending { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        panic!("it never settles");
    }

    pub(crate) async fn remove(&self, spec: &LoadBalancerSpec) {
        let balancers = self.provider.load_balancers().unwrap();
        for _ in 0..20 {
            match balancers
                .apply(DesiredState::Absent(&spec.balancer_ref))
                .await
                .unwrap()
            {
                Outcome::Gone { .. } => return,
                Outcome::Pending { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        panic!("it never goes");
    }

    /// How often AWS is called during some work, and how often to change something.
    pub(crate) async fn counted<T>(&self, work: impl Future<Output = T>) -> (T, u64, u64) {
        use cloudkeel_testkit::conformance::FaultInjector as _;
        let interposer = self.moto.interposed.interposer();
        let before = interposer.call_totals();
        let done = work.await;
        let calls = interposer.call_totals().since(before);
        (done, calls.total, calls.mutating)
    }
}

fn node(instance: &Value) -> NodeFacts {
    let text = |key: &str| instance[key].as_str().unwrap();
    let id = format!("aws:///{}/{}", text("zone"), text("id"));
    NodeFacts {
        name: text("name").to_owned(),
        uid: format!("uid-of-{}", text("name")),
        provider_id: id.parse().ok(),
        ..NodeFacts::default()
    }
}
