//! The program itself in the place of openstack-cloud-controller-manager, in a cluster that this made: every call and
//! every write of the Go CCM is made here, in its order and with its values.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudkeel_api::Secret;
use cloudkeel_emulator_openstack::{Kind, OpenStackCloud, Operation, Served, Settings};
use cloudkeel_http::{Client as Http, HeaderAuth, Request};
use cloudkeel_testkit::cluster::{NodeBuilder, ServiceBuilder, eventually, wait_for_service_gone};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::account::Account;
use crate::charts::account;
use crate::go_hetzner::FINALIZER;
use crate::harness::{DEADLINE, Manager};
use crate::pod;

const NAMESPACE: &str = "default";
const PREFIX: &str = "loadbalancer.openstack.org/";

/// The chart's command, with `controllerExtraArgs` for routes. `--cloud-config` names the file of the Secret `cloud-config`.
const COMMAND: [&str; 10] = [
    "/bin/openstack-cloud-controller-manager",
    "--v=2",
    "--cluster-name=kubernetes",
    "--cloud-provider=openstack",
    "--use-service-account-credentials=false",
    "--controllers=cloud-node,cloud-node-lifecycle,route,service",
    "--bind-address=127.0.0.1",
    "--allocate-node-cidrs=true",
    "--configure-cloud-routes=true",
    "--cluster-cidr=10.244.0.0/16",
];

/// A Service, its ports, and whether it is for the inside only.
const SERVICES: [(&str, &[i32], bool); 2] = [("web", &[80, 443], false), ("intern", &[5432], true)];

/// A cluster that runs openstack-cloud-controller-manager today.
struct GoCluster {
    plane: ControlPlane,
    client: Client,
    cloud: OpenStackCloud,
    served: Served,
    http: Http,
    account: Account,
    folder: TempDir,
}

impl GoCluster {
    async fn new() -> Self {
        let plane = ControlPlane::start_audited().await;
        let plane = plane.expect("a control plane");
        let client = plane.client();
        let settings = Settings {
            job_duration: Duration::from_millis(20),
            ..Settings::default()
        };
        let cloud = OpenStackCloud::new(settings);
        let served = cloud.serve_on_loopback().await.expect("a port on loopback");
        let cluster = Self {
            account: account(&client, "openstack").await,
            folder: TempDir::new().expect("a temporary folder"),
            http: log_in(&served.url()).await,
            plane,
            client,
            cloud,
            served,
        };
        let mut routes = Vec::new();
        for number in 1..=2 {
            routes.push(cluster.node(number).await);
        }
        let routes = json!({"routes": routes});
        cluster
            .cloud
            .set(Kind::Router, OpenStackCloud::ROUTER, &routes);
        for (name, ports, internal) in SERVICES {
            cluster.service(name, ports, internal).await;
        }
        cluster
    }

    /// The port of a server.
    fn port_of(&self, server: &str) -> Value {
        let ports = self.cloud.all(Kind::Port).into_iter();
        let mut ports = ports.filter(|port| port["device_id"] == server);
        ports.next().expect("a server has a port")
    }

    /// A Node that was initialized, whose Pods' network may leave its port. Returns the route to it.
    async fn node(&self, number: u8) -> Value {
        let name = format!("node-{number}");
        let pods = format!("10.244.{number}.0/24");
        let id = self.cloud.add_server(&name);
        let port = self.port_of(&id);
        let pairs = json!({"allowed_address_pairs": [{"ip_address": pods}]});
        let port_id = port["id"].as_str().expect("an ID");
        self.cloud.set(Kind::Port, port_id, &pairs);
        let node = NodeBuilder::new(&name)
            .initialized()
            .provider_id(format!("openstack:///{id}"))
            .pod_cidr(&pods)
            .label("beta.kubernetes.io/instance-type", OpenStackCloud::FLAVOR)
            .label("node.kubernetes.io/instance-type", OpenStackCloud::FLAVOR)
            .label("failure-domain.beta.kubernetes.io/zone", "nova")
            .label("topology.kubernetes.io/zone", "nova")
            .label("failure-domain.beta.kubernetes.io/region", "RegionOne")
            .label("topology.kubernetes.io/region", "RegionOne");
        node.create(&self.client).await.expect("the node is made");
        let ips = port["fixed_ips"].as_array().expect("addresses");
        let address = |ip: &Value| json!({"type": "InternalIP", "address": ip["ip_address"]});
        let mut addresses: Vec<_> = ips.iter().map(address).collect();
        addresses.push(json!({"type": "Hostname", "address": name}));
        let reachable = json!({
            "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated",
            "message": "RouteController created a route",
        });
        let nodes: Api<Node> = Api::all(self.client.clone());
        let by = PatchParams::default();
        let addresses = Patch::Merge(json!({"status": {"addresses": addresses}}));
        let conditions = Patch::Strategic(json!({"status": {"conditions": [reachable]}}));
        let written = nodes.patch_status(&name, &by, &addresses).await;
        written.expect("the addresses are written");
        let written = nodes.patch_status(&name, &by, &conditions).await;
        written.expect("the condition is written");
        json!({"destination": pods, "nexthop": ips[0]["ip_address"]})
    }

    /// A Service with the finalizer, its load balancer and floating IP, both annotations, and its status.
    async fn service(&self, name: &str, ports: &[i32], internal: bool) {
        let mut service = ServiceBuilder::new(NAMESPACE, name).finalizer(FINALIZER);
        for port in ports {
            service = service.port(&format!("p{port}"), *port);
        }
        if internal {
            let key = "service.beta.kubernetes.io/openstack-internal-load-balancer";
            service = service.annotation(key, "true");
        }
        let service = service.create(&self.client).await;
        let service = service.expect("the service is made");
        let balancer = self.create_balancer(name, &service).await;
        let mut address = balancer["vip_address"].clone();
        if !internal {
            let description = format!(
                "Floating IP for Kubernetes external service {NAMESPACE}/{name} from cluster kubernetes"
            );
            let body = json!({"floatingip": {
                "floating_network_id": OpenStackCloud::EXTERNAL, "port_id": balancer["vip_port_id"],
                "description": description,
            }});
            let made = self.post("/network/v2.0/floatingips", body).await;
            address = made["floatingip"]["floating_ip_address"].clone();
        }
        let services = self.services();
        let by = PatchParams::default();
        let mut annotations = serde_json::Map::new();
        annotations.insert(format!("{PREFIX}load-balancer-id"), balancer["id"].clone());
        annotations.insert(format!("{PREFIX}load-balancer-address"), address.clone());
        let annotated = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let annotated = services.patch(name, &by, &annotated).await;
        annotated.expect("the annotations are written");
        let ingress = json!([{"ip": address, "ipMode": "VIP"}]);
        let status = Patch::Merge(json!({"status": {"loadBalancer": {"ingress": ingress}}}));
        let written = services.patch_status(name, &by, &status).await;
        written.expect("the status is written");
    }

    /// In one call, as the Go CCM does it, with its names, tags and numbers.
    async fn create_balancer(&self, name: &str, service: &Service) -> Value {
        let balancer = format!("kube_service_kubernetes_{NAMESPACE}_{name}");
        let servers = self.cloud.all(Kind::Server);
        let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
        let listeners = ports.expect("ports").iter().enumerate().map(|(i, port)| {
            let members = servers.iter().map(|server| {
                let id = server["id"].as_str().expect("an ID");
                json!({
                    "address": self.port_of(id)["fixed_ips"][0]["ip_address"], "protocol_port": port.node_port,
                    "name": server["name"], "subnet_id": OpenStackCloud::SUBNET,
                })
            });
            let members: Vec<_> = members.collect();
            json!({
                "name": format!("listener_{i}_{balancer}"), "protocol": "TCP", "protocol_port": port.port,
                "connection_limit": -1, "tags": [balancer], "allowed_cidrs": ["0.0.0.0/0"],
                "timeout_client_data": 50_000, "timeout_member_connect": 5_000, "timeout_member_data": 50_000,
                "timeout_tcp_inspect": 0,
                "default_pool": {
                    "name": format!("pool_{i}_{balancer}"), "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
                    "members": members,
                    "healthmonitor": {
                        "name": format!("monitor_{i}_{balancer}"), "type": "TCP", "delay": 5, "timeout": 3,
                        "max_retries": 1, "max_retries_down": 3,
                    },
                },
            })
        });
        let listeners: Vec<_> = listeners.collect();
        let body = json!({"loadbalancer": {
            "name": balancer, "provider": "amphora", "tags": [balancer], "vip_subnet_id": OpenStackCloud::SUBNET,
            "description": format!("Kubernetes external service {NAMESPACE}/{name} from cluster kubernetes"),
            "listeners": listeners,
        }});
        let made = self.post("/load-balancer/v2.0/lbaas/loadbalancers", body);
        let made = made.await["loadbalancer"].clone();
        eventually("an active load balancer", DEADLINE, || async {
            let all = self.cloud.all(Kind::LoadBalancer);
            let mut active = all.iter().filter(|b| b["provisioning_status"] == "ACTIVE");
            active.any(|balancer| balancer["id"] == made["id"])
        })
        .await;
        made
    }

    async fn post(&self, path: &'static str, body: Value) -> Value {
        let answer = self.http.fetch(Request::post(path).json(body)).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Everything that the Go CCM made.
    fn made(&self) -> Vec<Vec<Value>> {
        let kinds = [
            Kind::LoadBalancer,
            Kind::Listener,
            Kind::Pool,
            Kind::Member,
            Kind::Monitor,
            Kind::FloatingIp,
            Kind::Router,
            Kind::Port,
            Kind::SecurityGroup,
        ];
        kinds.map(|kind| self.cloud.all(kind)).into()
    }

    /// As the chart writes it: every value in quotes.
    fn cloud_conf(&self) -> String {
        format!(
            "[Global]\nauth-url = \"{}/identity/v3\"\nusername = \"{}\"\npassword = \"{}\"\ntenant-id = \"{}\"\n\
             domain-name = \"Default\"\nregion = \"{}\"\n\n[Networking]\n\n[LoadBalancer]\nsubnet-id = \"{}\"\n\
             floating-network-id = \"{}\"\ncreate-monitor = \"true\"\nmonitor-delay = \"5s\"\n\n\
             [BlockStorage]\nbs-version = \"v2\"\n\n[Metadata]\n\n[Route]\nrouter-id = \"{}\"\n",
            self.served.url(),
            OpenStackCloud::USER,
            OpenStackCloud::PASSWORD,
            OpenStackCloud::PROJECT,
            OpenStackCloud::REGION,
            OpenStackCloud::SUBNET,
            OpenStackCloud::EXTERNAL,
            OpenStackCloud::ROUTER,
        )
    }

    /// As the chart starts it, but for what Pods of one machine do not share and processes do.
    async fn start(&self) -> Manager {
        let program = env!("CARGO_BIN_EXE_cloudkeel");
        let folder = self.folder.path();
        let file = folder.join("cloud.conf");
        std::fs::write(&file, self.cloud_conf()).expect("the Secret is mounted");
        let mut container = pod::container(&self.plane, &self.account, folder, program).await;
        container
            .args(COMMAND)
            .arg(format!("--cloud-config={}", file.display()))
            .arg("--secure-port=0")
            .env("CLOUD_CONFIG", &file)
            .env("CLUSTER_NAME", "kubernetes");
        Manager::spawn(container, folder.join("log"))
    }

    /// Waits until servers, the router and load balancers with their parts have been looked at.
    async fn first_pass(&self) {
        eventually("a look at everything", DEADLINE, || async {
            let calls = self.cloud.calls();
            let looks = [
                Operation::ListServers,
                Operation::GetRouter,
                Operation::ListListeners,
                Operation::ListPools,
                Operation::ListMembers,
                Operation::ListFloatingIps,
            ];
            let missing = looks.iter().find(|look| calls.of(**look) == 0);
            missing.map_or(Ok(true), |look| Err(format!("no {look} yet")))
        })
        .await;
    }

    /// What the manager wrote besides Events and the lease, in words.
    fn written(&self) -> BTreeSet<String> {
        let writes = self.plane.writes_of(&self.account.user());
        let writes = writes.expect("a record").into_iter();
        let writes = writes.filter(|it| it.resource != "events" && it.resource != "leases");
        let in_words = writes.map(|it| format!("{} {}", it.resource, it.name));
        in_words.collect()
    }
}

/// A client with a token.
async fn log_in(url: &str) -> Http {
    let keystone = Http::builder(url).build().expect("a client");
    let user = json!({
        "name": OpenStackCloud::USER, "password": OpenStackCloud::PASSWORD, "domain": {"name": "Default"},
    });
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"project": {"id": OpenStackCloud::PROJECT}},
    }});
    let login = Request::post("/identity/v3/auth/tokens").json(body);
    let answer = keystone.send(login).await.expect("a token");
    let token = answer.header("x-subject-token").expect("a token");
    let header = http::HeaderName::from_static("x-auth-token");
    let token = HeaderAuth::header(header, Secret::new(token));
    let client = Http::builder(url).authorizer(token);
    client.build().expect("a client")
}

#[tokio::test]
async fn a_cluster_of_the_go_ccm_is_taken_over_without_a_write_and_then_followed() {
    let cluster = GoCluster::new().await;
    let before = cluster.made();
    cluster.cloud.reset_calls();
    let mut manager = cluster.start().await;
    cluster.first_pass().await;

    // A new Node shows that everything was seen before; until it was there, nothing was changed.
    let calls = cluster.cloud.calls();
    assert_eq!(calls.mutations(), 0, "{:#?}", cluster.cloud.call_log());
    assert_eq!(cluster.made(), before);
    assert_eq!(cluster.written(), BTreeSet::new(), "{}", manager.log());
    cluster.cloud.add_server("node-3");
    let node = NodeBuilder::new("node-3").pod_cidr("10.244.3.0/24");
    let made = node.create(&cluster.client).await;
    made.expect("the node is made");
    let pools: usize = SERVICES.iter().map(|(_, ports, _)| ports.len()).sum();
    eventually("the new members and the new route", DEADLINE, || async {
        let members = cluster.cloud.all(Kind::Member);
        let new = members.iter().filter(|m| m["name"] == "node-3").count();
        let routers = cluster.cloud.all(Kind::Router);
        let routes = routers[0]["routes"].as_array().map_or(0, Vec::len);
        new == pools && routes == 3
    })
    .await;
    let deleted = cluster
        .services()
        .delete("web", &DeleteParams::default())
        .await;
    deleted.expect("the service can be deleted");
    wait_for_service_gone(&cluster.client, NAMESPACE, "web", DEADLINE).await;
    let left = cluster.cloud.all(Kind::LoadBalancer);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["name"], "kube_service_kubernetes_default_intern");
    assert!(cluster.cloud.all(Kind::FloatingIp).is_empty());
    let calls = cluster.cloud.calls();
    let changes = calls
        .iter()
        .filter(|(operation, _)| operation.is_mutating());
    let mut expected = vec![
        (Operation::UpdatePort, 1),
        (Operation::AddRoutes, 1),
        (Operation::DeleteFloatingIp, 1),
        (Operation::DeleteLoadBalancer, 1),
        (Operation::SetMembers, pools as u64),
    ];
    expected.sort();
    assert_eq!(changes.collect::<Vec<_>>(), expected);
    manager.signal("TERM");
    assert_eq!(manager.ended().await.code(), Some(0), "{}", manager.log());
    let errors = pod::lines(&manager, &["ERROR"]);
    assert!(errors.is_empty(), "{errors:#?}");
}

#[tokio::test]
async fn an_exhausted_quota_is_said_in_one_event() {
    let cluster = GoCluster::new().await;
    cluster
        .cloud
        .change_settings(|settings| settings.load_balancers = SERVICES.len());
    cluster.cloud.reset_calls();
    let manager = cluster.start().await;
    let service = ServiceBuilder::new(NAMESPACE, "third").port("http", 80);
    let made = service.create(&cluster.client).await;
    made.expect("the service is made");
    // Each change makes the controller try again, and it has nothing new to say.
    for attempt in 1..=3 {
        eventually("another attempt", DEADLINE, || async {
            cluster.cloud.calls().of(Operation::CreateLoadBalancer) >= attempt
        })
        .await;
        let port = json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 80 + attempt}]);
        let port = serde_json::from_value(port).expect("a patch");
        let patch: Patch<Service> = Patch::Json(port);
        let by = PatchParams::default();
        let changed = cluster.services().patch("third", &by, &patch).await;
        changed.expect("the port is changed");
    }
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let of_service = ListParams::default().fields("involvedObject.name=third,type=Warning");
    let events = events
        .list(&of_service)
        .await
        .expect("events can be listed");
    let messages: Vec<_> = events.iter().filter_map(|it| it.message.clone()).collect();
    let [message] = messages.as_slice() else {
        panic!("{messages:#?}\n{}", manager.log());
    };
    let words = "Quota has been met for resources: Load Balancer";
    assert!(message.contains(words), "{message}");
    assert_eq!(cluster.cloud.all(Kind::LoadBalancer).len(), SERVICES.len());
}

#[tokio::test]
async fn what_the_go_ccm_left_behind_is_listed_and_not_removed() {
    let cluster = GoCluster::new().await;
    let described = |service: &str| {
        format!(
            "Floating IP for Kubernetes external service {NAMESPACE}/{service} from cluster kubernetes"
        )
    };
    // Of a Service that is gone, and of one that is there.
    for (address, service) in [("203.0.113.201", "gone"), ("203.0.113.202", "intern")] {
        cluster.cloud.add(
            Kind::FloatingIp,
            json!({"floating_ip_address": address, "port_id": null, "description": described(service)}),
        );
    }
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let system = namespaces.get("kube-system").await.expect("kube-system");
    let uid = system.metadata.uid.expect("a UID");
    let owned = format!("{} (Service UID u-1, cluster UID {uid})", described("ours"));
    let ours =
        json!({"floating_ip_address": "203.0.113.203", "port_id": null, "description": owned});
    let ours = cluster.cloud.add(Kind::FloatingIp, ours);
    let file = cluster.folder.path().join("cloud.conf");
    std::fs::write(&file, cluster.cloud_conf()).expect("the file is written");
    let kubeconfig = cluster
        .plane
        .kubeconfig_for("operator", &["system:masters"]);
    let mut before = cluster.made();
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_cloudkeel"));
    command.args(["plan", "--orphans", "--apply", "--yes", "--output=json"]);
    command.args(["--cloud-provider=openstack", "--cluster-name=kubernetes"]);
    command.arg(format!("--cloud-config={}", file.display()));
    command.arg(format!("--kubeconfig={}", kubeconfig.display()));
    let output = command.output().await.expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let removed = found["results"].as_array().expect("results");
    assert_eq!(
        (removed.len(), &removed[0]["object"]),
        (1, &json!("Service default/ours"))
    );
    let kept: Vec<_> = found["kept"].as_array().expect("a list").iter().collect();
    let [kept] = kept.as_slice() else {
        panic!("{kept:#?}");
    };
    let kept = kept.as_str().expect("a line");
    assert!(
        kept.contains("203.0.113.201") && kept.contains("by hand"),
        "{kept}"
    );
    for resources in &mut before {
        resources.retain(|resource| resource["id"] != ours);
    }
    assert_eq!(cluster.made(), before);
}
