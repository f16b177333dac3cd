//! A cluster and a cloud as hcloud-cloud-controller-manager leaves them: every call and every write is made here, in
//! its order and with its values.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use cloudkeel_api::Secret;
use cloudkeel_emulator_hetzner::{
    HetznerCloud, LoadBalancer, Served, Server, ServerSpec, Settings,
};
use cloudkeel_http::{Client as Http, HeaderAuth, Request};
use cloudkeel_testkit::cluster::{NodeBuilder, ServiceBuilder};
use cloudkeel_testkit::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use crate::go_services::{Made, SERVICES};

/// Where people look for Services of this cloud.
const NAMESPACE: &str = "default";
const PREFIX: &str = "load-balancer.hetzner.cloud/";
pub(crate) const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A cluster that runs hcloud-cloud-controller-manager today.
pub(crate) struct GoCluster {
    pub(crate) plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) cloud: HetznerCloud,
    pub(crate) served: Served,
    pub(crate) network: u64,
    http: Http,
}

impl GoCluster {
    /// Four Nodes with their routes, one of them no target, and all [`SERVICES`].
    pub(crate) async fn new() -> Self {
        let plane = ControlPlane::start_audited().await;
        let plane = plane.expect("a control plane");
        let cloud = HetznerCloud::new(Settings::default());
        let range = "10.0.0.0/16".parse().expect("a network");
        let network = cloud.add_network("kube", range).expect("a network").id;
        let served = cloud.serve_on_loopback().await.expect("a port on loopback");
        let http = Http::builder(served.api_url())
            .authorizer(HeaderAuth::bearer(Secret::new(HetznerCloud::TOKEN)))
            .build();
        let cluster = Self {
            client: plane.client(),
            plane,
            http: http.expect("a client"),
            cloud,
            served,
            network,
        };
        cluster.node("control", &[(EXCLUDED, "")], true).await;
        cluster.node("node-1", &[], true).await;
        cluster.node("node-2", &[], false).await;
        cluster.node("node-3", &[("pool", "edge")], true).await;
        let certificate = cluster.certificate().await;
        for made in &SERVICES {
            cluster.service(made, certificate).await;
        }
        cluster
    }

    /// A server in the network.
    pub(crate) fn server(&self, name: &str) -> (Server, Ipv4Addr) {
        let spec = ServerSpec::named(name).in_network(self.network);
        let server = self.cloud.add_server(spec).expect("a server");
        let ip = server.in_network(self.network).expect("it is there").ip;
        (server, ip)
    }

    /// A Node that was initialized and has its route. Its kubelet has `--node-ip`, or not.
    async fn node(&self, name: &str, labels: &[(&str, &str)], reported: bool) {
        let (server, ip) = self.server(name);
        let number = self.cloud.servers().len();
        let cidr = format!("10.244.{number}.0/24");
        let mut node = NodeBuilder::new(name)
            .initialized()
            .provider_id(format!("hcloud://{}", server.id))
            .pod_cidr(&cidr)
            .label("beta.kubernetes.io/instance-type", "cx22")
            .label("node.kubernetes.io/instance-type", "cx22")
            .label("failure-domain.beta.kubernetes.io/region", "fsn1")
            .label("topology.kubernetes.io/region", "fsn1")
            .label("failure-domain.beta.kubernetes.io/zone", "fsn1-dc14")
            .label("topology.kubernetes.io/zone", "fsn1-dc14")
            .label("instance.hetzner.cloud/provided-by", "cloud");
        for (key, value) in labels {
            node = node.label(*key, *value);
        }
        if reported {
            node = node.node_ip(ip.into());
        }
        node.create(&self.client).await.expect("the node is made");

        let address = |kind: &str, address: &str| json!({"type": kind, "address": address});
        let public = server.ipv4.expect("a public address").to_string();
        let mut addresses = vec![
            address("Hostname", name),
            address("ExternalIP", &public),
            address("InternalIP", &ip.to_string()),
        ];
        if reported {
            // The address of `--node-ip` comes first.
            addresses.rotate_right(1);
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        let by = PatchParams::default();
        let addresses = Patch::Merge(json!({"status": {"addresses": addresses}}));
        let written = nodes.patch_status(name, &by, &addresses).await;
        written.expect("the addresses are written");

        self.route(&cidr, ip).await;
        let condition = Patch::Strategic(json!({"status": {"conditions": [{
            "type": "NetworkUnavailable",
            "status": "False",
            "reason": "RouteCreated",
            "message": "RouteController created a route",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        }]}}));
        let written = nodes.patch_status(name, &by, &condition).await;
        written.expect("the condition is written");
    }

    async fn route(&self, cidr: &str, gateway: Ipv4Addr) {
        let path = format!("/networks/{}/actions/add_route", self.network);
        let route = json!({"destination": cidr, "gateway": gateway});
        self.post(&path, route).await;
    }

    /// An uploaded certificate.
    async fn certificate(&self) -> u64 {
        let certificate = json!({
            "name": "shop",
            "type": "uploaded",
            "certificate": self.plane.ca_pem(),
            "private_key": "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
        });
        let made = self.post("/certificates", certificate).await;
        number(&made["certificate"]["id"])
    }

    /// A Service with the finalizer, its balancer, and its status.
    async fn service(&self, made: &Made, uploaded: u64) {
        let mut service = ServiceBuilder::new(NAMESPACE, made.name).finalizer(FINALIZER);
        for (key, value) in made.annotations {
            service = service.annotation(format!("{PREFIX}{key}"), *value);
        }
        for (protocol, port) in made.ports {
            let name = format!("{}-{port}", protocol.to_lowercase());
            service = match *protocol {
                "UDP" => service.udp_port(&name, *port),
                _ => service.port(&name, *port),
            };
        }
        if made.local {
            service = service.external_traffic_local();
        }
        let service = service.create(&self.client).await;
        let service = service.expect("the service is made");
        let uid = service.uid().expect("a UID");
        let id = self.create_balancer(made, &uid).await;
        let certificate = match made.name {
            "managed" => self.managed_certificate(&uid).await,
            _ => uploaded,
        };
        let ports = service.spec.and_then(|spec| spec.ports).unwrap_or_default();
        for port in ports {
            if port.protocol.as_deref() == Some("TCP") {
                let node_port = port.node_port.expect("a node port");
                let wanted = (made.service)(port.port, node_port, certificate);
                self.act(id, "add_service", wanted.clone()).await;
                // So does every later pass.
                self.act(id, "update_service", wanted).await;
            }
        }
        self.add_targets(made, id).await;
        let ingress = (made.ingress)(&self.balancer(id));
        let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
        let services: Api<Service> = Api::namespaced(self.client.clone(), NAMESPACE);
        let by = PatchParams::default();
        let status = Patch::Merge(status);
        let written = services.patch_status(made.name, &by, &status).await;
        written.expect("the status is written");
    }

    async fn create_balancer(&self, made: &Made, uid: &str) -> u64 {
        let mut name = format!("a{}", uid.replace('-', ""));
        name.truncate(32);
        let mut body = json!({
            "name": name,
            "load_balancer_type": 1,
            "labels": {"hcloud-ccm/service-uid": uid},
        });
        extend(&mut body, &(made.creation)());
        let created = self.post("/load_balancers", body).await;
        let id = number(&created["load_balancer"]["id"]);
        if let Some(name) = made.pointer {
            let ip = self.balancer(id).public.expect("addresses").ipv4;
            let pointer = json!({"ip": ip, "dns_ptr": name});
            self.act(id, "change_dns_ptr", pointer).await;
        }
        let mut attachment = json!({"network": self.network});
        extend(&mut attachment, &(made.attachment)());
        self.act(id, "attach_to_network", attachment).await;
        id
    }

    async fn managed_certificate(&self, uid: &str) -> u64 {
        let certificate = json!({
            "name": format!("ccm-managed-certificate-{uid}"),
            "type": "managed",
            "domain_names": ["a.example.com", "b.example.com"],
            "labels": {"hcloud-ccm/service-uid": uid},
        });
        let made = self.post("/certificates", certificate).await;
        number(&made["certificate"]["id"])
    }

    async fn add_targets(&self, made: &Made, id: u64) {
        let (names, private) = made.targets;
        // The order is random there.
        for server in self.cloud.servers().iter().rev() {
            if names.contains(&server.name.as_str()) {
                let target = json!({
                    "type": "server",
                    "server": {"id": server.id},
                    "use_private_ip": private,
                });
                self.act(id, "add_target", target).await;
            }
        }
    }

    async fn act(&self, balancer: u64, verb: &str, body: Value) {
        let path = format!("/load_balancers/{balancer}/actions/{verb}");
        self.post(&path, body).await;
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.http.fetch(Request::post(path.to_owned()).json(body));
        let answer: Value = answer
            .await
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        let ended = &answer["action"]["status"];
        assert!(ended.is_null() || ended == "success", "{path}: {answer}");
        answer
    }

    fn balancer(&self, id: u64) -> LoadBalancer {
        let all = self.cloud.load_balancers();
        let mut all = all.into_iter().filter(|balancer| balancer.id == id);
        all.next().expect("the balancer is there")
    }

    /// The balancer of a Service.
    pub(crate) async fn balancer_of(&self, service: &str) -> LoadBalancer {
        let services: Api<Service> = Api::namespaced(self.client.clone(), NAMESPACE);
        let service = services.get(service).await.expect("the service is there");
        let uid = service.uid().expect("a UID");
        let all = self.cloud.load_balancers().into_iter();
        let mut own = all.filter(|it| it.labels.get("hcloud-ccm/service-uid") == Some(&uid));
        own.next().expect("it has a balancer")
    }

    /// Every Node and every Service, with the version of its last write.
    pub(crate) async fn versions(&self) -> BTreeMap<String, Option<String>> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let services: Api<Service> = Api::all(self.client.clone());
        let all = ListParams::default();
        let nodes = nodes.list(&all).await.expect("nodes can be listed");
        let services = services.list(&all).await.expect("services can be listed");
        let nodes = nodes.iter().map(|node| ("Node", node.meta()));
        let services = services.iter().map(|service| ("Service", service.meta()));
        let name = |kind: &str, meta: &ObjectMeta| format!("{kind} {:?}", meta.name);
        nodes
            .chain(services)
            .map(|(kind, meta)| (name(kind, meta), meta.resource_version.clone()))
            .collect()
    }

    pub(crate) async fn delete_service(&self, name: &str) {
        let services: Api<Service> = Api::namespaced(self.client.clone(), NAMESPACE);
        let deleted = services.delete(name, &DeleteParams::default()).await;
        deleted.expect("the service can be deleted");
    }
}

fn extend(body: &mut Value, more: &Value) {
    let more = more.as_object().expect("fields").clone();
    body.as_object_mut().expect("fields").extend(more);
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}
