//! OpenStack on loopback: the calls of Keystone, Nova, Neutron, Octavia, Cinder and Barbican that cloud controller
//! managers make, with pending load balancers, immutable ones, quotas, lagging reads and faults by script. What you
//! would do with other tools (servers, networks) is a function of [`OpenStackCloud`].
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use cloudkeel_emulator_openstack::{OpenStackCloud, Settings};
//!
//! let cloud = OpenStackCloud::new(Settings::default());
//! cloud.add_server("node-1");
//! let served = cloud.serve_on_loopback().await?;
//! println!("auth-url={}/identity/v3", served.url());
//! # Ok(())
//! # }
//! ```
//!
//! Time is tokio's, so a paused runtime owns it. It is held against the real services by the tests of the tier
//! `openstack`, which run on both.

mod fault;
mod gateway;
mod operation;
mod refusal;
mod rest;
mod settings;
mod state;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
pub use cloudkeel_emulation as emulation;
use cloudkeel_emulation::ids::Ids;
use cloudkeel_emulation::jobs::RunsJobs as _;
use cloudkeel_emulation::{
    EmulatedClock, Gateway, Tokens, api_router, control_router, history::View,
};
pub use cloudkeel_emulation::{InProcess, Permission, Served};
use serde_json::{Value, json};
use tokio::time::Instant;

pub use self::fault::Fault;
pub use self::gateway::{CallCounts, FaultMatch, FaultRule, Faults, LoggedCall};
pub use self::operation::Operation;
pub use self::refusal::Refusal;
pub use self::settings::Settings;
pub use self::state::Kind;
use self::state::{Project, State, merge, text};

/// An emulated OpenStack. Clones are the same cloud.
#[derive(Debug, Clone)]
pub struct OpenStackCloud(Arc<Mutex<State>>);

impl OpenStackCloud {
    /// The project that every emulator has from the start, by ID.
    pub const PROJECT: &str = "00000000000000000000000000000abc";
    /// The user and the domain of every login.
    pub const USER: &str = "demo";
    /// The password that every login takes.
    pub const PASSWORD: &str = "correct-horse-battery";
    /// The region of all services.
    pub const REGION: &str = "RegionOne";
    /// The network of servers, by ID.
    pub const NETWORK: &str = "00000000-0000-4000-9000-000000000001";
    /// Its subnet, `10.6.0.0/16`.
    pub const SUBNET: &str = "00000000-0000-4000-9000-000000000002";
    /// The other subnet of the network of servers, `fd00:6::/64`.
    pub const SUBNET_V6: &str = "00000000-0000-4000-9000-000000000006";
    /// The external network.
    pub const EXTERNAL: &str = "00000000-0000-4000-9000-000000000003";
    /// The router between both.
    pub const ROUTER: &str = "00000000-0000-4000-9000-000000000005";
    /// The name of the network of servers.
    pub const NETWORK_NAME: &str = "private";
    /// The flavor of servers.
    pub const FLAVOR: &str = "m1.small";
    /// The availability zone of servers.
    pub const ZONE: &str = "nova";

    /// A new cloud with a project, its networks and a router. Must be called inside the runtime if that pauses its
    /// clock.
    pub fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let state = State {
            tokens: Tokens::default(),
            sessions: std::collections::BTreeMap::new(),
            gateway: Gateway::new(settings.seed, now),
            projects: std::collections::BTreeMap::new(),
            clock: EmulatedClock::starting_at(jiff::Timestamp::UNIX_EPOCH),
            ids: Ids::default(),
            settings,
        };
        let cloud = Self(Arc::new(Mutex::new(state)));
        cloud.add_project(Self::PROJECT);
        cloud
    }

    /// Reads the state, or changes it, at this moment. The lock is never held across an await.
    fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        for project in state.projects.values_mut() {
            project.advance(now);
        }
        act(&mut state, now)
    }

    fn in_project<R>(
        &self,
        project: &str,
        act: impl FnOnce(&mut Project, &mut Ids, Instant) -> R,
    ) -> R {
        self.with(|state, now| {
            let keep = state.settings.history;
            let project = state.projects.entry(project.to_owned());
            act(
                project.or_insert_with(|| Project::new(keep)),
                &mut state.ids,
                now,
            )
        })
    }

    /// Adds a project with a network, an external network and a router between them.
    pub fn add_project(&self, name: &str) {
        self.in_project(name, |project, _, now| {
            let network = |id: &str, name: &str, is_external: bool, subnet: &str| {
                json!({"id": id, "name": name, "router:external": is_external, "subnets": [subnet]})
            };
            let hidden = "00000000-0000-4000-9000-000000000004";
            project.put(Kind::Network, network(Self::NETWORK, Self::NETWORK_NAME, false, Self::SUBNET), now);
            project.put(Kind::Network, network(Self::EXTERNAL, "public", true, hidden), now);
            let subnet = |id: &str, name: &str, network: &str, cidr: &str| {
                json!({"id": id, "name": name, "network_id": network, "cidr": cidr, "ip_version": 4, "tags": []})
            };
            project.put(Kind::Subnet, subnet(Self::SUBNET, "private-v4", Self::NETWORK, "10.6.0.0/16"), now);
            project.put(Kind::Subnet, subnet(hidden, "public-v4", Self::EXTERNAL, "203.0.113.0/24"), now);
            let router = json!({"id": Self::ROUTER, "name": "router", "routes": [], "revision_number": 1});
            project.put(Kind::Router, router, now);
            project.put(Kind::Port, rest::network::port("router-port", Self::ROUTER, "10.6.255.254", 0), now);
            project.put(Kind::Flavor, json!({"id": "1", "name": Self::FLAVOR}), now);
        });
    }

    /// Adds a running server with a port to the first project, and returns its ID.
    pub fn add_server(&self, name: &str) -> String {
        self.add_server_in(Self::PROJECT, name)
    }

    /// Adds a running server with a port to a project, and returns its ID.
    pub fn add_server_in(&self, project_id: &str, name: &str) -> String {
        self.in_project(project_id, |project, ids, now| {
            let (id, port, number) = (ids.uuid(), ids.uuid(), ids.number());
            let ip = rest::network::address("10.6", number);
            let ip_v6 = rest::network::address_v6(number);
            let server = json!({
                "id": id, "name": name, "status": "ACTIVE", "tenant_id": project_id,
                "accessIPv4": "", "accessIPv6": "", "metadata": {},
                "flavor": {"original_name": Self::FLAVOR},
                "addresses": {Self::NETWORK_NAME: [
                    {"addr": ip, "version": 4, "OS-EXT-IPS:type": "fixed"},
                    {"addr": ip_v6, "version": 6, "OS-EXT-IPS:type": "fixed"},
                ]},
                "OS-EXT-AZ:availability_zone": Self::ZONE,
                "order": number,
            });
            project.put(Kind::Server, server, now);
            project.put(
                Kind::Port,
                rest::network::port(&port, &id, &ip, number),
                now,
            );
            id
        })
    }

    /// Removes a server of the first project and its ports, at once.
    pub fn destroy_server(&self, id: &str) {
        self.in_project(Self::PROJECT, |project, _, now| {
            project.remove(Kind::Server, id, now);
            for port in project.those(Kind::Port, |port| text(port, "device_id") == id) {
                project.remove(Kind::Port, text(&port, "id"), now);
            }
        });
    }

    /// Adds a resource to the first project, without the API. It gets an ID if it has none, which is returned.
    pub fn add(&self, kind: Kind, mut value: Value) -> String {
        self.in_project(Self::PROJECT, |project, ids, now| {
            if text(&value, "id").is_empty() {
                merge(&mut value, &json!({"id": ids.uuid()}));
            }
            let id = text(&value, "id").to_owned();
            project.put(kind, value, now);
            id
        })
    }

    /// Sets fields of a resource of the first project, without the API.
    pub fn set(&self, kind: Kind, id: &str, fields: &Value) {
        self.in_project(Self::PROJECT, |project, _, now| {
            project.set(kind, id, fields, now);
        });
    }

    /// Removes a resource of the first project, without the API. A pool goes with what is in it.
    pub fn remove(&self, kind: Kind, id: &str) {
        self.in_project(Self::PROJECT, |project, _, now| match kind {
            Kind::Pool => project.forget_pool(id, now),
            kind => project.remove(kind, id, now),
        });
    }

    /// All resources of a kind in the first project, as they really are.
    pub fn all(&self, kind: Kind) -> Vec<Value> {
        self.in_project(Self::PROJECT, |project, _, _| project.all(kind, View::Now))
    }

    /// A load balancer as Octavia shows it, which is active at once.
    pub fn add_load_balancer(&self, name: &str, tags: &[String]) -> String {
        let port = self.in_project(Self::PROJECT, |project, ids, now| {
            let (port, number) = (ids.uuid(), ids.number());
            let ip = rest::network::address("10.6", number);
            project.put(Kind::Port, rest::network::port(&port, "", &ip, number), now);
            (port, ip)
        });
        self.add(Kind::LoadBalancer, json!({
            "name": name, "description": "", "tags": tags, "provider": "amphora", "flavor_id": null,
            "provisioning_status": "ACTIVE", "vip_address": port.1, "vip_port_id": port.0,
            "vip_subnet_id": Self::SUBNET, "vip_network_id": Self::NETWORK, "availability_zone": null,
        }))
    }

    /// All services below one address, and `/control`.
    pub fn router(&self) -> Router {
        api_router(self).merge(control_router(self, &[]))
    }

    /// A transport that reaches it without sockets.
    pub fn transport(&self) -> InProcess {
        InProcess::new(self.router())
    }

    /// Serves everything on a free port of the loopback interface.
    pub async fn serve_on_loopback(&self) -> io::Result<Served> {
        Served::on_loopback(self.router()).await
    }
}
