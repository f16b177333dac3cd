//! Projects of OpenStack's own services for the kit: made by the administrator, and used again once they are empty.

use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cloudkeel_http::{Client, HeaderAuth, Request, Transport};
use cloudkeel_testkit::conformance::interposer::in_real_time;
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::state::{Snapshot, refers, text};

/// How long anything may take, in polls of the services.
const POLLS: usize = 600;
const POLL_INTERVAL: Duration = Duration::from_millis(150);

pub(crate) const USER_PASSWORD: &str = "password-of-the-kit";

/// What the administrator does, and what all projects share.
pub(crate) struct Cloud {
    auth_url: String,
    public: String,
    admin: Clients,
    user: String,
    user_id: String,
    roles: Vec<String>,
    image: String,
    /// How many projects were made.
    made: AtomicUsize,
    /// Projects that no check uses at the moment.
    idle: Mutex<Vec<Project>>,
}

/// A project with a network and a router, and clients that see it.
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) token: String,
    clients: Clients,
    network: String,
    subnet: String,
    router: String,
    image: String,
    servers: Mutex<Servers>,
    /// Whether there may be load balancers in it.
    with_balancers: bool,
}

#[derive(Default)]
struct Servers {
    /// In the order in which they were added.
    added: Vec<String>,
    /// Soft-deleted ones, by name: Nova shows them in no list, and restores them faster than it boots new ones.
    spare: Vec<(String, String)>,
}

pub(crate) type Answered<T> = Result<T, String>;

fn in_words(error: impl Display) -> String {
    error.to_string()
}

/// Some time by the clock of the services, which no test can pause.
pub(crate) async fn pause(time: Duration) -> Answered<()> {
    let pause = in_real_time(async move { tokio::time::sleep(time).await });
    pause.await.map_err(in_words)
}

/// The ID of the youngest server of this name.
fn id_of(snapshot: &Snapshot, name: &str) -> String {
    let mut named = snapshot.servers.iter().rev();
    let found = named.find(|server| text(server, "name") == name);
    found.map_or_else(String::new, |server| text(server, "id").to_owned())
}

fn id_in(answer: &Value, kind: &str) -> String {
    text(answer.get(kind).unwrap_or(&Value::Null), "id").to_owned()
}

/// The items of a list, whatever its name is.
fn items(answer: &Value) -> Vec<Value> {
    let lists = answer.as_object().into_iter().flatten();
    let items = lists.filter(|(name, _)| !name.ends_with("_links"));
    let items = items.filter_map(|(_, list)| list.as_array()).flatten();
    items.cloned().collect()
}

struct Clients {
    identity: Client,
    compute: Client,
    network: Client,
    octavia: Client,
}

/// Logs in, and makes clients with the token.
async fn log_in(
    auth_url: &str,
    transport: &Arc<dyn Transport>,
    user: &str,
    password: &str,
    scope: Value,
) -> Answered<(String, Value, Clients)> {
    let client = |url: &str| Client::builder(url).transport(Arc::clone(transport));
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {
            "name": user, "password": password, "domain": {"name": "Default"},
        }}},
        "scope": {"project": scope},
    }});
    let keystone = client(auth_url).build().map_err(in_words)?;
    let answer = keystone
        .send(Request::post("/auth/tokens").json(body))
        .await;
    let answer = answer.map_err(in_words)?;
    let token = answer
        .header("x-subject-token")
        .unwrap_or_default()
        .to_owned();
    let answer: Value = answer.json().map_err(in_words)?;
    let facts = answer.get("token").cloned().unwrap_or_default();
    let url = |kind: &str| {
        let catalog = items(&json!({"catalog": facts.get("catalog")}));
        let service = catalog.iter().find(|service| text(service, "type") == kind);
        let url = service.and_then(|service| service.pointer("/endpoints/0/url"));
        url.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let header = http::HeaderName::from_static("x-auth-token");
    let with_token = |url: &str| {
        let token = HeaderAuth::header(header.clone(), token.as_str().into());
        client(url).authorizer(token)
    };
    let built = |client: cloudkeel_http::ClientBuilder| client.build().map_err(in_words);
    let clients = Clients {
        identity: built(with_token(auth_url))?,
        compute: built(with_token(&url("compute")))?,
        network: built(with_token(&format!("{}/v2.0", url("network"))))?,
        octavia: built(with_token(&format!("{}/v2.0", url("load-balancer"))))?,
    };
    Ok((token, facts, clients))
}

async fn fetch(client: &Client, request: Request) -> Answered<Value> {
    client.fetch(request).await.map_err(in_words)
}

async fn send(client: &Client, request: Request) -> Answered<()> {
    client.send(request).await.map(drop).map_err(in_words)
}

async fn all(client: &Client, path: &'static str) -> Answered<Vec<Value>> {
    Ok(items(&fetch(client, Request::get(path)).await?))
}

impl Cloud {
    /// As the administrator, who makes a user for the kit.
    pub(crate) async fn open(transport: &Arc<dyn Transport>) -> Answered<Self> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| format!("{name} is not set: run the tier openstack"))
        };
        let auth_url = variable("OPENSTACK_AUTH_URL")?;
        let scope = json!({"name": "admin", "domain": {"name": "Default"}});
        let (_, _, admin) = log_in(&auth_url, transport, "admin", "admin", scope).await?;
        let user = format!("kit-{}", std::process::id());
        let body =
            json!({"user": {"name": user, "password": USER_PASSWORD, "domain_id": "default"}});
        let made = fetch(&admin.identity, Request::post("/users").json(body)).await?;
        let roles = all(&admin.identity, "/roles").await?;
        // The rights that the provider's page asks for, and no more.
        let needed = ["member", "reader", "load-balancer_member"];
        let roles = roles.iter().filter(|r| needed.contains(&text(r, "name")));
        let images = all(&admin.compute, "/images").await?;
        let image = images.iter().find(|image| text(image, "name") == "image");
        Ok(Self {
            public: variable("OPENSTACK_PUBLIC_NETWORK")?,
            user_id: id_in(&made, "user"),
            roles: roles.map(|role| text(role, "id").to_owned()).collect(),
            image: image
                .map(|image| text(image, "id").to_owned())
                .unwrap_or_default(),
            made: AtomicUsize::new(0),
            idle: Mutex::new(Vec::new()),
            auth_url,
            admin,
            user,
        })
    }

    /// An empty project: a new one, or one that is used again.
    pub(crate) async fn project(
        &self,
        transport: &Arc<dyn Transport>,
        with_balancers: bool,
    ) -> Answered<Project> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let Some(mut project) = idle else {
            return Box::pin(self.new_project(transport, with_balancers)).await;
        };
        Box::pin(project.clear()).await?;
        if project.with_balancers {
            self.set_balancer_quota(&project, None).await?;
        }
        project.with_balancers = with_balancers;
        Ok(project)
    }

    /// Gives a project back.
    pub(crate) fn put_back(&self, project: Project) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(project);
    }

    async fn new_project(
        &self,
        transport: &Arc<dyn Transport>,
        with_balancers: bool,
    ) -> Answered<Project> {
        let identity = &self.admin.identity;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.user);
        let body = json!({"project": {"name": name, "domain_id": "default"}});
        let made = fetch(identity, Request::post("/projects").json(body)).await?;
        let id = id_in(&made, "project");
        for role in &self.roles {
            let assign = Request::put("/projects/{project}/users/{user}/roles/{role}")
                .param("project", &id)
                .param("user", &self.user_id)
                .param("role", role);
            send(identity, assign).await?;
        }
        let scope = json!({"id": id});
        let (token, _, clients) =
            log_in(&self.auth_url, transport, &self.user, USER_PASSWORD, scope).await?;
        let neutron = &clients.network;
        let body = json!({"network": {"name": "nodes"}});
        let network = fetch(neutron, Request::post("/networks").json(body)).await?;
        let network = id_in(&network, "network");
        let router = json!({"router": {"name": "router", "external_gateway_info": {"network_id": self.public}}});
        let router = fetch(neutron, Request::post("/routers").json(router)).await?;
        let router = id_in(&router, "router");
        let mut subnets = Vec::new();
        for (version, range) in [(4, "10.6.0.0/16"), (6, "fd00:6::/64")] {
            let subnet =
                json!({"subnet": {"network_id": network, "ip_version": version, "cidr": range}});
            let subnet = fetch(neutron, Request::post("/subnets").json(subnet)).await?;
            let subnet = id_in(&subnet, "subnet");
            let attach = Request::put("/routers/{id}/add_router_interface").param("id", &router);
            send(neutron, attach.json(json!({"subnet_id": subnet}))).await?;
            subnets.push(subnet);
        }
        Ok(Project {
            id,
            token,
            network,
            subnet: subnets.swap_remove(0),
            router,
            image: self.image.clone(),
            servers: Mutex::default(),
            with_balancers,
            clients,
        })
    }

    /// A `cloud.conf` as an operator writes it.
    pub(crate) fn cloud_conf(&self, project: &Project) -> String {
        format!(
            "[Global]\nauth-url={}\nusername={}\npassword={USER_PASSWORD}\ntenant-id={}\ndomain-name=Default\n\
             region=RegionOne\n[LoadBalancer]\nsubnet-id={}\nfloating-network-id={}\ncreate-monitor=true\n\
             [Route]\nrouter-id={}\n",
            self.auth_url, self.user, project.id, project.subnet, self.public, project.router,
        )
    }

    /// How many load balancers a project may have; `None`: as many as it likes.
    pub(crate) async fn set_balancer_quota(
        &self,
        project: &Project,
        count: Option<usize>,
    ) -> Answered<()> {
        let path = "/lbaas/quotas/{id}";
        let count = count.map_or(json!(-1), |count| json!(count));
        let request = Request::put(path).param("id", &project.id);
        let request = request.json(json!({"quota": {"load_balancer": count}}));
        send(&self.admin.octavia, request).await
    }
}

impl Project {
    fn servers(&self) -> std::sync::MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn act(&self, server: &str, action: Value) -> Answered<()> {
        let request = Request::post("/servers/{id}/action").param("id", server);
        send(&self.clients.compute, request.json(action)).await
    }

    async fn update(&self, server: &str, change: Value) -> Answered<()> {
        let request = Request::put("/servers/{id}").param("id", server);
        let request = request.json(json!({"server": change}));
        send(&self.clients.compute, request).await
    }

    async fn wait_for_server(&self, id: &str, status: &str) -> Answered<()> {
        for _ in 0..POLLS {
            let request = Request::get("/servers/{id}").param("id", id);
            let found = self.clients.compute.fetch::<Value>(request).await;
            let found = match &found {
                Ok(answer) => answer.pointer("/server/status").and_then(Value::as_str),
                Err(_) => Some("GONE"),
            };
            if found == Some(status) {
                return Ok(());
            }
            pause(POLL_INTERVAL).await?;
        }
        Err(format!("server {id} does not become {status}"))
    }

    /// A running server of this name.
    pub(crate) async fn add_server(&self, name: &str) -> Answered<()> {
        let spare = {
            let spare = &mut self.servers().spare;
            let fitting = spare.iter().position(|(known, _)| known == name);
            let place = fitting.or_else(|| spare.len().checked_sub(1));
            place.map(|place| spare.swap_remove(place))
        };
        let id = if let Some((known, id)) = spare {
            self.act(&id, json!({"restore": null})).await?;
            if known != name {
                self.update(&id, json!({"name": name})).await?;
            }
            id
        } else {
            let server = json!({"server": {
                "name": name, "flavorRef": "1", "imageRef": self.image, "networks": [{"uuid": self.network}],
            }});
            let request = Request::post("/servers").json(server);
            id_in(&fetch(&self.clients.compute, request).await?, "server")
        };
        self.wait_for_server(&id, "ACTIVE").await?;
        self.servers().added.push(id);
        Ok(())
    }

    /// The youngest server of this name.
    async fn server(&self, name: &str) -> Answered<String> {
        Ok(id_of(&self.servers_and_ports().await?, name))
    }

    pub(crate) async fn destroy_server(&self, name: &str) -> Answered<()> {
        let id = self.server(name).await?;
        self.act(&id, json!({"forceDelete": null})).await?;
        self.wait_for_server(&id, "GONE").await
    }

    pub(crate) async fn stop_server(&self, name: &str) -> Answered<()> {
        let id = self.server(name).await?;
        self.act(&id, json!({"os-stop": null})).await?;
        self.wait_for_server(&id, "SHUTOFF").await
    }

    pub(crate) async fn modify_server(&self, name: &str) -> Answered<()> {
        let id = self.server(name).await?;
        self.update(&id, json!({"accessIPv4": "198.51.100.7"}))
            .await
    }

    pub(crate) async fn add_route(&self, destination: &str) -> Answered<()> {
        let route = json!({"destination": destination, "nexthop": "10.6.99.99"});
        let request = Request::put("/routers/{id}/add_extraroutes").param("id", &self.router);
        let request = request.json(json!({"router": {"routes": [route]}}));
        send(&self.clients.network, request).await
    }

    /// What is in it. Load balancers take six calls more, so they are read where checks are about them.
    pub(crate) async fn snapshot(&self) -> Answered<Snapshot> {
        let mut snapshot = self.servers_and_ports().await?;
        if self.with_balancers {
            self.add_balancers(&mut snapshot).await?;
        } else {
            snapshot.routers = all(&self.clients.network, "/routers").await?;
        }
        Ok(snapshot)
    }

    async fn servers_and_ports(&self) -> Answered<Snapshot> {
        // From this version on, servers name their flavor.
        let servers =
            Request::get("/servers/detail").header("openstack-api-version", "compute 2.47");
        let (servers, ports) = futures::try_join!(
            fetch(&self.clients.compute, servers),
            all(&self.clients.network, "/ports"),
        )?;
        let (servers, added) = (items(&servers), self.servers().added.clone());
        let by_id = |id: &String| servers.iter().find(|server| text(server, "id") == id);
        Ok(Snapshot {
            servers: added.iter().filter_map(by_id).cloned().collect(),
            ports,
            ..Snapshot::default()
        })
    }

    async fn add_balancers(&self, snapshot: &mut Snapshot) -> Answered<()> {
        let (octavia, neutron) = (&self.clients.octavia, &self.clients.network);
        let (balancers, listeners, pools, monitors, floating_ips, groups) = futures::try_join!(
            all(octavia, "/lbaas/loadbalancers"),
            all(octavia, "/lbaas/listeners"),
            all(octavia, "/lbaas/pools"),
            all(octavia, "/lbaas/healthmonitors"),
            all(neutron, "/floatingips"),
            all(neutron, "/security-groups"),
        )?;
        let members = pools.iter().map(|pool| async {
            let id = text(pool, "id");
            let request = Request::get("/lbaas/pools/{id}/members").param("id", id);
            let mut members = items(&fetch(octavia, request).await?);
            for member in &mut members {
                if let Some(fields) = member.as_object_mut() {
                    fields.insert("pool_id".to_owned(), json!(id));
                }
            }
            Answered::Ok(members)
        });
        snapshot.members = try_join_all(members).await?.concat();
        let groups = groups.into_iter();
        snapshot.security_groups = groups
            .filter(|group| text(group, "name") != "default")
            .collect();
        snapshot.balancers = balancers;
        snapshot.listeners = listeners;
        snapshot.pools = pools;
        snapshot.monitors = monitors;
        snapshot.floating_ips = floating_ips;
        Ok(())
    }

    /// Changes a load balancer by hand, and waits until Octavia is done with it.
    async fn change_balancer(&self, balancer: &str, request: Request) -> Answered<()> {
        send(&self.clients.octavia, request).await?;
        self.wait_for_balancer(balancer).await
    }

    async fn wait_for_balancer(&self, id: &str) -> Answered<()> {
        for _ in 0..POLLS {
            let request = Request::get("/lbaas/loadbalancers/{id}").param("id", id);
            let answer = fetch(&self.clients.octavia, request).await?;
            let status = answer.pointer("/loadbalancer/provisioning_status");
            if matches!(status.and_then(Value::as_str), Some("ACTIVE" | "ERROR")) {
                return Ok(());
            }
            pause(POLL_INTERVAL).await?;
        }
        Err(format!("load balancer {id} does not become active"))
    }

    pub(crate) async fn add_balancer(&self, name: &str, tags: &[String]) -> Answered<()> {
        let balancer = json!({"name": name, "tags": tags, "vip_subnet_id": self.subnet});
        let request = Request::post("/lbaas/loadbalancers");
        let request = request.json(json!({"loadbalancer": balancer}));
        let made = fetch(&self.clients.octavia, request).await?;
        self.wait_for_balancer(&id_in(&made, "loadbalancer")).await
    }

    /// One listener and all members go.
    pub(crate) async fn damage(&self, id: &str) -> Answered<()> {
        let now = self.snapshot().await?;
        let first = now.listeners_of(id).next();
        let first = first
            .map(|listener| text(listener, "id"))
            .unwrap_or_default();
        for pool in now.pools_of(id) {
            let pool_id = text(pool, "id");
            let change = if refers(pool, "listeners", first) {
                Request::delete("/lbaas/pools/{id}")
            } else {
                Request::put("/lbaas/pools/{id}/members").json(json!({"members": []}))
            };
            self.change_balancer(id, change.param("id", pool_id))
                .await?;
        }
        let delete = Request::delete("/lbaas/listeners/{id}").param("id", first);
        self.change_balancer(id, delete).await
    }

    pub(crate) async fn add_member(&self, id: &str, server: &str) -> Answered<()> {
        let now = self.snapshot().await?;
        let ip = now.ips_of(&id_of(&now, server)).into_iter().next();
        let member = json!({"member": {"address": ip, "protocol_port": 31_000, "name": server}});
        for pool in now.pools_of(id) {
            let request = Request::post("/lbaas/pools/{id}/members").param("id", text(pool, "id"));
            self.change_balancer(id, request.json(member.clone()))
                .await?;
        }
        Ok(())
    }

    pub(crate) async fn change_tags(
        &self,
        id: &str,
        change: impl FnOnce(&mut Vec<Value>),
    ) -> Answered<()> {
        let path = "/lbaas/loadbalancers/{id}";
        let answer = fetch(&self.clients.octavia, Request::get(path).param("id", id)).await?;
        let tags = answer
            .pointer("/loadbalancer/tags")
            .and_then(Value::as_array);
        let mut tags = tags.cloned().unwrap_or_default();
        change(&mut tags);
        let request = Request::put(path).param("id", id);
        let request = request.json(json!({"loadbalancer": {"tags": tags}}));
        self.change_balancer(id, request).await
    }

    /// Deletes everything but the network and the router. Servers that are as they were made become spare ones.
    async fn clear(&self) -> Answered<()> {
        let now = self.snapshot().await?;
        try_join_all(
            now.balancers
                .iter()
                .map(|b| self.delete_balancer(text(b, "id"))),
        )
        .await?;
        try_join_all(now.servers.iter().map(|server| self.retire(server))).await?;
        self.servers().added.clear();
        let neutron = &self.clients.network;
        for ip in &now.floating_ips {
            let request = Request::delete("/floatingips/{id}").param("id", text(ip, "id"));
            send(neutron, request).await?;
        }
        let is_open = |part: &Value, list: &str| part.get(list).is_some_and(|l| *l != json!([]));
        for router in now.routers.iter().filter(|r| is_open(r, "routes")) {
            let request = Request::put("/routers/{id}").param("id", text(router, "id"));
            send(neutron, request.json(json!({"router": {"routes": []}}))).await?;
        }
        // Ports of load balancers went with them.
        let is_servers = |port: &Value| text(port, "device_owner").starts_with("compute:");
        let opened = |port: &&Value| is_servers(port) && is_open(port, "allowed_address_pairs");
        for port in now.ports.iter().filter(opened) {
            let request = Request::put("/ports/{id}").param("id", text(port, "id"));
            send(
                neutron,
                request.json(json!({"port": {"allowed_address_pairs": []}})),
            )
            .await?;
        }
        Ok(())
    }

    async fn retire(&self, server: &Value) -> Answered<()> {
        let (id, name) = (text(server, "id"), text(server, "name"));
        let is_as_made =
            text(server, "status") == "ACTIVE" && text(server, "accessIPv4").is_empty();
        if !is_as_made {
            self.act(id, json!({"forceDelete": null})).await?;
            return self.wait_for_server(id, "GONE").await;
        }
        let request = Request::delete("/servers/{id}").param("id", id);
        send(&self.clients.compute, request).await?;
        self.wait_for_server(id, "SOFT_DELETED").await?;
        self.servers().spare.push((name.to_owned(), id.to_owned()));
        Ok(())
    }

    async fn delete_balancer(&self, id: &str) -> Answered<()> {
        self.wait_for_balancer(id).await?;
        let path = "/lbaas/loadbalancers/{id}";
        let request = Request::delete(path).param("id", id).query("cascade", true);
        send(&self.clients.octavia, request).await?;
        for _ in 0..POLLS {
            let left = self
                .clients
                .octavia
                .send(Request::get(path).param("id", id))
                .await;
            if left.is_err() {
                return Ok(());
            }
            pause(POLL_INTERVAL).await?;
        }
        Err(format!("load balancer {id} is not deleted"))
    }
}
