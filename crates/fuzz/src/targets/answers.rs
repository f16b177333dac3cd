//! Answers of clouds: one of those that a provider gets is broken, the others are good.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::{
    CloudError, CloudProvider, ClusterIdentity, DesiredState, Existence, KnownInstance,
    LoadBalancerSpec, NodeFacts, ProviderContext, Shared, TokioClock,
};
use cloudkeel_emulator_digitalocean::{DigitalOceanCloud, Settings as DigitalOceanSettings};
use cloudkeel_emulator_hetzner::{
    HetznerCloud, RobotServer, ServerSpec, Settings as HetznerSettings,
};
use cloudkeel_emulator_openstack::{OpenStackCloud, Settings as OpenStackSettings};
use cloudkeel_http::{Transport, TransportError};
use cloudkeel_local_cloud::simulated_cloud::{InProcess, MachineSpec, Settings, SimulatedCloud};
use cloudkeel_provider_digitalocean::{self as digitalocean, DigitalOceanProvider};
use cloudkeel_provider_hetzner::{self as hetzner, HetznerProvider};
use cloudkeel_provider_local::{self as local, LocalProvider, Wiring};
use cloudkeel_provider_openstack::{self as openstack, OpenStackProvider};
use http::{Request, Response, StatusCode};
use jiff::Timestamp;

use super::aws::Aws;
use super::message::{Message, write_answer};
use super::vsphere::VSphere;
use super::{node_of, owned, paused, text};
use crate::target::{Check, Reader, Target};

/// More calls than any sequence here makes, however often each is tried again.
const MOST_CALLS: usize = 600;

/// One for each provider, named after it: a cloud that implements [`Cloud`] needs a row here and no more.
pub(super) const TARGETS: &[Target] = &[
    answers_of::<Aws>(
        "aws-answers",
        "answers of AWS: XML, pages, errors; an instance is gone only by its code, or terminated",
    ),
    answers_of::<DigitalOcean>(
        "digitalocean-answers",
        "answers of DigitalOcean: bodies, headers, pages; a machine is gone only by a 404",
    ),
    answers_of::<Hetzner>(
        "hcloud-answers",
        "answers of Hetzner and of Robot: bodies, headers, pages; a machine is gone only by a 404",
    ),
    answers_of::<Local>(
        "local-answers",
        "answers of the local cloud: bodies, headers, pages; a machine is gone only by a 404",
    ),
    answers_of::<OpenStack>(
        "openstack-answers",
        "answers of OpenStack's services: bodies, headers, pages; a machine is gone only by a 404",
    ),
    answers_of::<VSphere>(
        "vsphere-answers",
        "answers of vCenter: SOAP, REST, pages; one wrong answer makes no machine gone",
    ),
];

const fn answers_of<C: Cloud + Default + 'static>(
    name: &'static str,
    what: &'static str,
) -> Target {
    let examples = || record(&|| Box::new(C::default()));
    let reader = || answers(|| Box::new(C::default()));
    Target::new(name, what, examples, words, reader).share(12)
}

fn words() -> Vec<String> {
    owned(&[
        "RateLimit-Remaining: 0\n",
        "Retry-After: 99999999999\n",
        "next_page",
        "not_found",
        "running",
        "error",
        "success",
        "2026-01-01T00:00:00+00:00",
        "hcloud://",
        "hrobot://",
        "server_number",
        "shut off",
        "10.0.0.2",
    ])
}

/// A cloud on this machine, with a few instances in it.
#[async_trait]
pub(super) trait Cloud: Send + Sync {
    fn transport(&self) -> Arc<dyn Transport>;

    async fn connect(&self, wiring: Wiring) -> Result<Arc<dyn CloudProvider>, CloudError>;

    /// A provider that reaches it in this way.
    async fn provider(
        &self,
        transport: Arc<dyn Transport>,
    ) -> Result<Arc<dyn CloudProvider>, CloudError> {
        let wiring = Wiring {
            transport: Some(transport),
            metadata: None,
            seed: Some(1),
        };
        self.connect(wiring).await
    }
}

pub(super) struct DigitalOcean(DigitalOceanCloud);

impl Default for DigitalOcean {
    fn default() -> Self {
        let cloud = DigitalOceanCloud::new(DigitalOceanSettings::default());
        for name in ["node-1", "node-2"] {
            cloud.add_droplet(name);
        }
        Self(cloud)
    }
}

#[async_trait]
impl Cloud for DigitalOcean {
    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.0.transport())
    }

    async fn connect(&self, wiring: Wiring) -> Result<Arc<dyn CloudProvider>, CloudError> {
        let mut config = digitalocean::Config::new(DigitalOceanCloud::TOKEN);
        InProcess::URL.clone_into(&mut config.endpoint);
        config.region = Some("nyc3".to_owned());
        let context = context("digitalocean");
        let provider = DigitalOceanProvider::connect(&config, &context, wiring).await?;
        Ok(Arc::new(provider))
    }
}

/// The login of the Robot account.
const ROBOT: (&str, &str) = ("robot", "secret");

pub(super) struct Hetzner(HetznerCloud);

impl Default for Hetzner {
    fn default() -> Self {
        let cloud = HetznerCloud::new(HetznerSettings::default());
        let range = "10.0.0.0/16".parse().expect("a range");
        let network = cloud.add_network("kube", range).expect("a network").id;
        for name in ["node-1", "node-2"] {
            let spec = ServerSpec::named(name).in_network(network);
            cloud.add_server(spec).expect("a server");
        }
        cloud.set_robot_login(ROBOT.0, ROBOT.1);
        for (number, name) in [(321, "metal-1"), (322, "metal-2")] {
            let address = [192, 0, 2, 1].into();
            cloud.add_robot_server(RobotServer::new(number, name, address));
        }
        Self(cloud)
    }
}

#[async_trait]
impl Cloud for Hetzner {
    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.0.transport())
    }

    async fn connect(&self, wiring: Wiring) -> Result<Arc<dyn CloudProvider>, CloudError> {
        let mut config = hetzner::Config::new(HetznerCloud::TOKEN);
        config.endpoint = format!("{}/v1", InProcess::URL);
        config.attached_check = false;
        config.network = Some("kube".to_owned());
        config.load_balancers.location = Some("fsn1".to_owned());
        config.robot.enabled = true;
        config.robot.endpoint = format!("{}/robot", InProcess::URL);
        config.robot.login = Some((ROBOT.0.to_owned(), ROBOT.1.into()));
        let provider = HetznerProvider::connect(&config, &context("hcloud"), wiring).await?;
        Ok(Arc::new(provider))
    }
}

pub(super) struct OpenStack(OpenStackCloud);

/// Within a runtime.
impl Default for OpenStack {
    fn default() -> Self {
        let cloud = OpenStackCloud::new(OpenStackSettings::default());
        for name in ["node-1", "node-2"] {
            cloud.add_server(name);
        }
        Self(cloud)
    }
}

#[async_trait]
impl Cloud for OpenStack {
    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.0.transport())
    }

    async fn connect(&self, wiring: Wiring) -> Result<Arc<dyn CloudProvider>, CloudError> {
        let mut config = openstack::Config::default();
        config.auth.url = Some(format!("{}/identity", InProcess::URL));
        config.auth.user_id = Some(OpenStackCloud::USER.to_owned());
        config.auth.password = Some(OpenStackCloud::PASSWORD.into());
        config.auth.project_id = Some(OpenStackCloud::PROJECT.to_owned());
        config.load_balancers.networks.subnet = Some(OpenStackCloud::SUBNET.to_owned());
        config.router = Some(OpenStackCloud::ROUTER.to_owned());
        let provider = OpenStackProvider::connect(&config, &context("openstack"), wiring).await?;
        Ok(Arc::new(provider))
    }
}

pub(super) struct Local(SimulatedCloud);

/// Within a runtime.
impl Default for Local {
    fn default() -> Self {
        let cloud = SimulatedCloud::new(Settings::default());
        for name in ["node-1", "node-2"] {
            cloud
                .add_machine(MachineSpec::named(name))
                .expect("a machine");
        }
        Self(cloud)
    }
}

#[async_trait]
impl Cloud for Local {
    fn transport(&self) -> Arc<dyn Transport> {
        Arc::new(self.0.transport())
    }

    async fn connect(&self, wiring: Wiring) -> Result<Arc<dyn CloudProvider>, CloudError> {
        let config = local::Config::new(InProcess::URL, SimulatedCloud::TOKEN);
        let provider = LocalProvider::connect(&config, &context("local"), wiring).await?;
        Ok(Arc::new(provider))
    }
}

pub(super) fn context(cloud: &str) -> ProviderContext {
    let epoch = Timestamp::from_second(1_767_225_600).unwrap_or_default();
    ProviderContext {
        clock: Arc::new(TokioClock::starting_at(epoch)),
        cluster: ClusterIdentity {
            name: "kubernetes".to_owned(),
            uid: Some("c-1".to_owned()),
            pod_cidrs: vec![],
        },
        ..ProviderContext::detached(cloud)
    }
}

/// The transport to a cloud on which one answer is replaced, and all are noted.
struct ReplacingTransport {
    cloud: Arc<dyn Transport>,
    calls: AtomicUsize,
    broken: Option<(usize, Response<Bytes>)>,
    noted: Mutex<Vec<Response<Bytes>>>,
}

#[async_trait]
impl Transport for ReplacingTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = match &self.broken {
            Some((at, answer)) if *at == number => answer.clone(),
            _ => self.cloud.send(request).await?,
        };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push(answer.clone());
        Ok(answer)
    }
}

/// What became of everything that a provider is asked in its life.
struct Life {
    calls: usize,
    gone: Option<String>,
    noted: Vec<Response<Bytes>>,
}

async fn live(cloud: &dyn Cloud, broken: Option<(usize, Response<Bytes>)>) -> Life {
    let transport = Arc::new(ReplacingTransport {
        cloud: cloud.transport(),
        calls: AtomicUsize::new(0),
        broken,
        noted: Mutex::default(),
    });
    let asked = ask(cloud, Arc::<ReplacingTransport>::clone(&transport));
    // Of the clock that does not wait.
    let gone = tokio::time::timeout(Duration::from_hours(24), asked).await;
    let noted = std::mem::take(
        &mut *transport
            .noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner),
    );
    Life {
        calls: transport.calls.load(Ordering::Relaxed),
        gone: gone.unwrap_or_default(),
        noted,
    }
}

/// Asks everything; the name of a machine that is said to be gone, if one is.
async fn ask(cloud: &dyn Cloud, transport: Arc<dyn Transport>) -> Option<String> {
    let provider = cloud.provider(transport).await.ok()?;
    let scope = provider.check().await.ok();
    let instances = provider.instances()?;
    let list = instances.list().await.ok();
    let nodes: Vec<NodeFacts> = list
        .iter()
        .flat_map(|list| list.instances().map(node_of))
        .collect();
    let mut gone = None;
    if let (Some(scope), Some(list)) = (scope, &list) {
        let seen = list.instances().last();
        let seen = seen.map(|machine| KnownInstance::of(machine, &scope, Timestamp::UNIX_EPOCH));
        for existence in instances
            .find_many(&Shared::of_each(&nodes), seen.as_ref())
            .await
        {
            if let Existence::Gone(proof) = existence {
                gone = Some(proof.to_string());
            }
        }
    }
    if let Some(routes) = provider.routes() {
        let _ = routes.list(&Shared::of_each(&nodes)).await;
    }
    if let Some(balancers) = provider.load_balancers() {
        let spec = spec(&nodes);
        let _ = balancers.observe_all(std::slice::from_ref(&spec)).await;
        for _ in 0..3 {
            let _ = balancers.apply(DesiredState::Present(&spec)).await;
        }
        let _ = balancers.owned().await;
        let _ = balancers
            .apply(DesiredState::Absent(&spec.balancer_ref))
            .await;
    }
    if let Some(clusters) = provider.clusters() {
        let _ = clusters.list().await;
    }
    gone
}

fn spec(nodes: &[NodeFacts]) -> LoadBalancerSpec {
    use cloudkeel_api as api;
    let target = |node: &NodeFacts| api::Target {
        node: node.clone().into(),
        by: api::TargetBy::Machine,
        state: api::TargetState::Serving,
    };
    LoadBalancerSpec {
        balancer_ref: api::BalancerRef::of(
            context("any").cluster,
            api::ServiceRef {
                namespace: "default".to_owned(),
                name: "web".to_owned(),
                uid: "u-1".to_owned(),
            },
        ),
        listeners: vec![api::Listener {
            name: None,
            protocol: api::Protocol::Tcp,
            port: 80,
            node_port: Some(30_080),
            app_protocol: None,
            health_check: api::HealthCheck::tcp(),
        }],
        targets: nodes.iter().map(|n| (n.name.clone(), target(n))).collect(),
        families: vec![api::IpFamily::V4],
        address: None,
        source_ranges: vec![],
        traffic_policy: api::TrafficPolicy::Cluster,
        health_check_node_port: None,
        affinity: api::Affinity::None,
        options: api::Options::default(),
    }
}

/// Every answer of a good life, each with the number of its call before the status.
fn record(cloud: &dyn Fn() -> Box<dyn Cloud>) -> Vec<Vec<u8>> {
    let life = paused().block_on(async { live(&*cloud(), None).await });
    let noted = life.noted.iter().enumerate();
    noted
        .map(|(number, answer)| write_answer(&number.to_string(), answer))
        .collect()
}

fn answers(cloud: fn() -> Box<dyn Cloud>) -> Reader {
    Box::new(move |input| {
        let message = Message::read(input);
        let first = text(message.first);
        let number = first.split(' ').next().and_then(|n| n.parse().ok());
        let number: usize = number.unwrap_or_default();
        let answer = message.answer();
        let status = answer.status();
        let life = paused().block_on(async { live(&*cloud(), Some((number, answer))).await });
        classify(&life, status)
    })
}

fn classify(life: &Life, status: StatusCode) -> Check {
    if life.calls > MOST_CALLS {
        return Err(format!("too many calls: {}", life.calls));
    }
    match &life.gone {
        Some(gone) if status != StatusCode::NOT_FOUND => {
            Err(format!("a machine is gone: after a {status}: {gone}"))
        }
        _ => Ok(()),
    }
}
