//! Steers an emulated Hetzner Cloud.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{CloudProvider, NodeAddress, NodeFacts, ProviderContext, TokioClock};
use cloudkeel_http::{Client, HeaderAuth, Request};
use cloudkeel_provider_hetzner::{Config, HetznerProvider, Wiring};
use cloudkeel_testkit::conformance::emulated::{self, ELSEWHERE};
use cloudkeel_testkit::conformance::{
    Calls, Emulator, Mark, SeenBalancer, SeenRoute, Stop, Strike, Thing, Trouble, cluster,
};
use cloudkeel_testkit::hetzner::{
    HetznerCloud, InProcess, Latency, Refusal, RobotServer, Server, ServerSpec, ServerStatus,
    Settings,
};
use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::seen;

/// The name of the private network.
const NETWORK: &str = "kube";

/// Servers that fit on a page.
const PAGE: usize = 50;

/// The address of a dedicated server, which is no Node of the cloud.
const FAR: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);

pub(crate) struct HetznerEmulator {
    cloud: HetznerCloud,
    network: u64,
}

fn refused(refusal: &Refusal) -> Stop {
    Stop::cannot_play(refusal.to_string())
}

impl HetznerEmulator {
    pub(crate) fn new() -> Result<Self, Stop> {
        let cloud = HetznerCloud::new(Settings {
            latency: Latency {
                fixed: Duration::from_millis(5),
                jitter: Duration::from_millis(5),
            },
            action_duration: Duration::from_secs(1),
            // Hundreds of retries in one hour are the kit's, not the provider's.
            rate_limit: None,
            ..Settings::default()
        });
        cloud.add_project(ELSEWHERE);
        let stranger = ServerSpec::named("stranger");
        cloud
            .add_server_in(ELSEWHERE, stranger)
            .map_err(|refusal| refused(&refusal))?;
        let range = "10.0.0.0/16"
            .parse()
            .map_err(|_| Stop::cannot_play("no network"))?;
        let network = cloud
            .add_network(NETWORK, range)
            .map_err(|refusal| refused(&refusal))?
            .id;
        cloud.add_robot_server(RobotServer::new(7, "metal", FAR));
        Ok(Self { cloud, network })
    }

    fn server(&self, name: &str) -> Result<Server, Stop> {
        let mut servers = self.cloud.servers().into_iter();
        let found = servers.find(|server| server.name == name);
        found.ok_or_else(|| Stop::cannot_play(format!("no server {name}")))
    }

    fn server_names(&self) -> BTreeMap<u64, String> {
        let servers = self.cloud.servers().into_iter();
        servers.map(|server| (server.id, server.name)).collect()
    }

    /// Where a server is in the private network.
    fn gateway(&self, server: &Server) -> Option<Ipv4Addr> {
        server.in_network(self.network).map(|net| net.ip)
    }

    /// The API, spoken by hand.
    async fn speak(&self, request: Request) -> Result<Value, Stop> {
        let client = Client::builder(format!("{}/v1", InProcess::URL))
            .transport(Arc::new(self.cloud.transport()))
            .authorizer(HeaderAuth::bearer(HetznerCloud::TOKEN.into()))
            .build()?;
        let answer = client.fetch(request).await;
        answer.map_err(|error| Stop::cannot_play(error.to_string()))
    }
}

#[async_trait]
impl Emulator for HetznerEmulator {
    async fn connect(&self) -> Result<Arc<dyn CloudProvider>, Stop> {
        let mut config = Config::new(HetznerCloud::TOKEN);
        config.endpoint = format!("{}/v1", InProcess::URL);
        config.robot.endpoint = format!("{}/robot", InProcess::URL);
        config.attached_check = false;
        config.network = Some(NETWORK.to_owned());
        config.load_balancers.location = Some("fsn1".to_owned());
        config.load_balancers.kind = Some("lb11".to_owned());
        let context = ProviderContext {
            cluster: cluster(),
            clock: Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)),
            ..ProviderContext::detached("hcloud")
        };
        let wiring = Wiring {
            transport: Some(Arc::new(self.cloud.transport())),
            metadata: None,
            seed: Some(1),
        };
        let provider = HetznerProvider::connect(&config, &context, wiring).await;
        let provider = provider.map_err(|error| Stop::wrong(error.to_string()))?;
        Ok(Arc::new(provider))
    }

    fn calls(&self) -> Calls {
        emulated::calls(&self.cloud)
    }

    async fn add_machine(&self, name: &str) -> Result<NodeFacts, Stop> {
        let spec = ServerSpec::named(name).in_network(self.network);
        let server = self
            .cloud
            .add_server(spec)
            .map_err(|refusal| refused(&refusal))?;
        let private = self.gateway(&server).map(IpAddr::from);
        let public = server.ipv4.map(IpAddr::from);
        let addresses = private.map(NodeAddress::internal).into_iter();
        Ok(NodeFacts {
            uid: format!("uid-{}", server.id),
            provider_id: format!("hcloud://{}", server.id).parse().ok(),
            addresses: addresses.chain(public.map(NodeAddress::external)).collect(),
            name: server.name,
            ..NodeFacts::default()
        })
    }

    async fn destroy_machine(&self, name: &str) -> Result<(), Stop> {
        let id = self.server(name)?.id;
        self.cloud
            .destroy_server(id)
            .map_err(|refusal| refused(&refusal))
    }

    async fn switch_off_machine(&self, name: &str) -> Result<(), Stop> {
        let id = self.server(name)?.id;
        let off = self.cloud.set_status(id, ServerStatus::Off);
        off.map_err(|refusal| refused(&refusal))
    }

    fn pages(&self, machines: usize) -> Result<u64, Stop> {
        Ok(machines.div_ceil(PAGE).max(1) as u64)
    }

    async fn strike(&self, strike: Strike, trouble: Trouble) -> Result<(), Stop> {
        emulated::strike(&self.cloud, strike, trouble);
        Ok(())
    }

    async fn heal(&self) {
        emulated::heal(&self.cloud);
    }

    fn things(&self) -> Vec<Thing> {
        let thing = |kind, id: String| Thing { kind, id };
        let balancers = self.cloud.load_balancers().into_iter();
        let certificates = self.cloud.certificates().into_iter();
        balancers
            .map(|balancer| thing("load balancer", balancer.id.to_string()))
            .chain(certificates.map(|c| thing("certificate", c.id.to_string())))
            .chain(
                self.routes()
                    .into_iter()
                    .map(|route| thing("route", route.destination.to_string())),
            )
            .collect()
    }

    fn balancers(&self) -> Vec<SeenBalancer> {
        let names = self.server_names();
        let balancers = self.cloud.load_balancers();
        balancers
            .iter()
            .map(|balancer| seen::balancer(balancer, &names))
            .collect()
    }

    async fn add_balancer(&self, name: &str, mark: Mark) -> Result<String, Stop> {
        let labels = match mark {
            Mark::Nobody => json!({}),
            Mark::OtherCluster => json!({
                "hcloud-ccm/service-uid": "another-service",
                "cloudkeel.dev/cluster-uid": "another-cluster",
            }),
        };
        let wanted = json!({
            "name": name,
            "load_balancer_type": "lb11",
            "location": "fsn1",
            "labels": labels,
        });
        let made = self
            .speak(Request::post("/load_balancers").json(wanted))
            .await?;
        self.wait(Duration::from_secs(10)).await;
        let id = made.pointer("/load_balancer/id").and_then(Value::as_u64);
        let id = id.ok_or_else(|| Stop::cannot_play(format!("no ID in {made}")))?;
        Ok(id.to_string())
    }

    async fn protect_balancer(&self, id: &str) -> Result<(), Stop> {
        let id = id.parse().unwrap_or_default();
        let protected = self
            .cloud
            .change_load_balancer(id, |balancer| balancer.protected = true);
        protected.map_err(|refusal| refused(&refusal))
    }

    async fn damage_balancer(&self, id: &str) -> Result<(), Stop> {
        let id = id.parse().unwrap_or_default();
        let damaged = self.cloud.change_load_balancer(id, |balancer| {
            balancer.services.pop();
            balancer.targets.clear();
        });
        damaged.map_err(|refusal| refused(&refusal))
    }

    fn sizes(&self) -> Option<[&str; 2]> {
        Some(["lb11", "lb21"])
    }

    fn far_address(&self) -> Option<NodeAddress> {
        Some(NodeAddress::external(FAR.into()))
    }

    fn routes(&self) -> Vec<SeenRoute> {
        let servers = self.cloud.servers();
        let hop = |gateway: Ipv4Addr| {
            let at = |server: &&Server| self.gateway(server) == Some(gateway);
            let server = servers.iter().find(at);
            server.map_or_else(|| gateway.to_string(), |server| server.name.clone())
        };
        let networks = self.cloud.networks().into_iter();
        networks
            .filter(|network| network.id == self.network)
            .flat_map(|network| network.routes)
            .map(|route| SeenRoute {
                destination: route.destination.into(),
                hop: hop(route.gateway),
            })
            .collect()
    }

    async fn add_route(&self, destination: IpNet) -> Result<(), Stop> {
        let route = json!({"destination": destination, "gateway": "10.0.99.99"});
        let path = "/networks/{id}/actions/add_route";
        let request = Request::post(path).param("id", self.network).json(route);
        self.speak(request).await?;
        self.wait(Duration::from_secs(10)).await;
        Ok(())
    }
}
