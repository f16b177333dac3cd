//! An emulated OpenStack, a provider that sees it, and what tests ask of them.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    BalancerRef, CloudError, CloudProvider, ClusterIdentity, CollectedEvents, ConfigSource,
    DesiredState, Listener, LoadBalancerSpec, LoadBalancers, NodeAddress, NodeFacts, Outcome,
    ProviderContext, ProviderFactory as _, ProviderInput, ServiceRef, Target, TokioClock,
};
use cloudkeel_emulator_openstack::emulation::FaultInjector as _;
use cloudkeel_emulator_openstack::{InProcess, Kind, OpenStackCloud, Settings};
use cloudkeel_provider_openstack::{OpenStackFactory, Wiring};
use serde_json::Value;

pub(crate) const UID: &str = "6a0f8ce4-1d0f-4f8a-a1dc-0a60a2b5c9d1";
pub(crate) const PREFIX: &str = "loadbalancer.openstack.org/";

/// The name that the Go CCM gives the load balancer of the Service.
pub(crate) const NAME: &str = "kube_service_kubernetes_default_web";

pub(crate) struct Lab {
    pub(crate) cloud: OpenStackCloud,
    pub(crate) provider: Arc<dyn CloudProvider>,
    pub(crate) events: Arc<CollectedEvents>,
}

impl Lab {
    /// A cloud, and a provider with these lines more in its `cloud.conf`.
    pub(crate) async fn new(more: &str) -> Self {
        Self::with(Settings::default(), more).await
    }

    pub(crate) async fn with(settings: Settings, more: &str) -> Self {
        let cloud = OpenStackCloud::new(settings);
        let events = Arc::new(CollectedEvents::default());
        let provider = connect(&cloud, &events, more).await;
        cloud.reset_calls();
        Self {
            cloud,
            provider,
            events,
        }
    }

    pub(crate) fn balancers(&self) -> &dyn LoadBalancers {
        self.provider.load_balancers().unwrap()
    }

    /// Nodes of new servers.
    pub(crate) fn nodes(&self, count: usize) -> Vec<NodeFacts> {
        (1..=count)
            .map(|number| self.node(&format!("node-{number}")))
            .collect()
    }

    pub(crate) fn node(&self, name: &str) -> NodeFacts {
        let id = self.cloud.add_server(name);
        let ports = self.cloud.all(Kind::Port);
        let port = ports.iter().find(|port| port["device_id"] == id).unwrap();
        let ip = port["fixed_ips"][0]["ip_address"].as_str().unwrap();
        NodeFacts {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            provider_id: format!("openstack:///{id}").parse().ok(),
            addresses: vec![NodeAddress::internal(ip.parse().unwrap())],
            ..NodeFacts::default()
        }
    }

    /// Applies until the cloud is done, as the controller does.
    pub(crate) async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        for _ in 0..200 {
            match self.balancers().apply(desired).await? {
                Outcome::Pending { check_after, .. } => tokio::time::sleep(check_after).await,
                outcome => return Ok(outcome),
            }
        }
        panic!("it is still pending");
    }

    /// The outcome of a Service that must get what it asks for.
    pub(crate) async fn settle(&self, spec: &LoadBalancerSpec) -> Outcome {
        let outcome = self.apply(DesiredState::Present(spec)).await.unwrap();
        assert!(matches!(outcome, Outcome::Settled { .. }), "{outcome:?}");
        outcome
    }

    /// The same as the service controller does it, which writes to the Service what the provider asks for.
    pub(crate) async fn settle_written(
        &self,
        spec: &mut LoadBalancerSpec,
    ) -> Result<Outcome, CloudError> {
        for _ in 0..200 {
            let outcome = self.balancers().apply(DesiredState::Present(spec)).await?;
            let (Outcome::Settled { changes, .. }
            | Outcome::Incomplete { changes, .. }
            | Outcome::Pending { changes, .. }) = &outcome
            else {
                panic!("{outcome:?}");
            };
            for (key, value) in changes.annotations.clone() {
                match value {
                    Some(value) => spec.balancer_ref.annotations.insert(key, value),
                    None => spec.balancer_ref.annotations.remove(&key),
                };
            }
            match outcome {
                Outcome::Pending { check_after, .. } => tokio::time::sleep(check_after).await,
                Outcome::Settled { ref status, .. } => {
                    spec.balancer_ref.ingress.clone_from(&status.ingress);
                    return Ok(outcome);
                }
                outcome => return Ok(outcome),
            }
        }
        panic!("it is still pending");
    }

    pub(crate) async fn remove(&self, balancer_ref: &BalancerRef) {
        let outcome = self
            .apply(DesiredState::Absent(balancer_ref))
            .await
            .unwrap();
        assert!(matches!(outcome, Outcome::Gone { .. }), "{outcome:?}");
    }

    /// Calls that could change something.
    pub(crate) fn mutating(&self) -> u64 {
        self.cloud.call_totals().mutating
    }

    pub(crate) fn only(&self, kind: Kind) -> Value {
        let mut all = self.cloud.all(kind);
        assert_eq!(all.len(), 1, "{all:?}");
        all.pop().unwrap()
    }

    pub(crate) fn reasons(&self) -> Vec<String> {
        self.events
            .take()
            .iter()
            .map(|event| event.reason.to_string())
            .collect()
    }
}

pub(crate) async fn connect(
    cloud: &OpenStackCloud,
    events: &Arc<CollectedEvents>,
    more: &str,
) -> Arc<dyn CloudProvider> {
    let text = format!(
        "[Global]\nauth-url={}/identity/v3\nusername=demo\npassword={}\ntenant-id={}\ndomain-name=Default\n\
         region=RegionOne\n[LoadBalancer]\nsubnet-id={}\n{more}\n",
        InProcess::URL,
        OpenStackCloud::PASSWORD,
        OpenStackCloud::PROJECT,
        OpenStackCloud::SUBNET,
    );
    let input = ProviderInput {
        config: ConfigSource::File {
            path: "cloud.conf".into(),
            text,
        },
        ..ProviderInput::default()
    };
    let context = ProviderContext {
        cluster: cluster("kubernetes"),
        events: Arc::<CollectedEvents>::clone(events),
        // The emulator's, by which tokens end.
        clock: Arc::new(TokioClock::starting_at(jiff::Timestamp::UNIX_EPOCH)),
        ..ProviderContext::detached("openstack")
    };
    let factory = OpenStackFactory::wired(Wiring::over(cloud.transport()));
    factory.build(input, context).await.unwrap()
}

pub(crate) fn cluster(name: &str) -> ClusterIdentity {
    ClusterIdentity {
        name: name.to_owned(),
        uid: Some("11111111-2222-3333-4444-555555555555".to_owned()),
        pod_cidrs: vec![],
    }
}

pub(crate) fn balancer_ref(name: &str, uid: &str) -> BalancerRef {
    let service = ServiceRef {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
    };
    BalancerRef::of(cluster("kubernetes"), service)
}

/// What the Service `web` asks for.
pub(crate) fn spec(ports: &[u16], nodes: &[NodeFacts]) -> LoadBalancerSpec {
    LoadBalancerSpec {
        listeners: ports
            .iter()
            .map(|port| Listener::tcp(*port, 30_000 + port))
            .collect(),
        targets: nodes
            .iter()
            .map(|node| (node.name.clone(), Target::machine(node.clone())))
            .collect(),
        ..LoadBalancerSpec::plain(balancer_ref("web", UID))
    }
}

pub(crate) fn annotate(spec: &mut LoadBalancerSpec, name: &str, value: &str) {
    spec.balancer_ref
        .annotations
        .insert(format!("{PREFIX}{name}"), value.to_owned());
}

/// Settings of a cloud that takes its time.
pub(crate) fn slow() -> Settings {
    Settings {
        job_duration: Duration::from_secs(3),
        ..Settings::default()
    }
}
