//! Where a scenario runs: an emulator on a socket, or the services that `xtask` started.

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::{
    CloudError, CloudProvider, ClusterIdentity, ConfigSource, DesiredState, LoadBalancers, Outcome,
    ProviderContext, ProviderFactory as _, ProviderInput,
};
use cloudkeel_emulator_openstack::emulation::interposer::{Classifier, Interposer, Rule};
use cloudkeel_emulator_openstack::{OpenStackCloud, Served, Settings};
use cloudkeel_http::{Client, HeaderAuth, HttpSettings, HyperTransport, Request};
use cloudkeel_provider_openstack::{OpenStackFactory, Wiring};
use serde_json::{Value, json};

/// A login changes nothing, wherever Keystone is.
const fn login(path: &'static str) -> Rule {
    Rule::Path {
        method: "POST",
        path,
        operation: "log in",
        mutating: false,
    }
}

pub(crate) const CALLS: Classifier = Classifier {
    rules: &[login("/v3/auth/tokens"), login("/identity/v3/auth/tokens")],
    page_param: None,
};

/// How long the services may take for anything.
const READY_TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) struct Site {
    /// Kept for as long as it serves.
    emulator: Option<(OpenStackCloud, Served)>,
    auth_url: String,
    ids: Ids,
    pub(crate) interposer: Interposer,
    pub(crate) provider: Arc<dyn CloudProvider>,
    compute: Client,
    network: Client,
    octavia: Client,
}

/// What the site has from the start.
#[derive(Clone)]
pub(crate) struct Ids {
    pub(crate) subnet: String,
    pub(crate) private: String,
    pub(crate) public: String,
    pub(crate) router: String,
}

impl Site {
    pub(crate) async fn emulated() -> Self {
        let settings = Settings {
            job_duration: Duration::from_millis(20),
            ..Settings::default()
        };
        let cloud = OpenStackCloud::new(settings);
        let served = cloud.serve_on_loopback().await.unwrap();
        let url = format!("{}/identity/v3", served.url());
        let ids = Ids {
            subnet: OpenStackCloud::SUBNET.to_owned(),
            private: OpenStackCloud::NETWORK.to_owned(),
            public: OpenStackCloud::EXTERNAL.to_owned(),
            router: OpenStackCloud::ROUTER.to_owned(),
        };
        Self::connect(url, OpenStackCloud::PASSWORD, ids, Some((cloud, served))).await
    }

    pub(crate) async fn served() -> Self {
        let variable = |name: &str| {
            std::env::var(name).unwrap_or_else(|_| panic!("{name} is set by the tier openstack"))
        };
        let ids = Ids {
            subnet: variable("OPENSTACK_PRIVATE_SUBNET"),
            private: variable("OPENSTACK_PRIVATE_NETWORK"),
            public: variable("OPENSTACK_PUBLIC_NETWORK"),
            router: variable("OPENSTACK_ROUTER"),
        };
        Self::connect(variable("OPENSTACK_AUTH_URL"), "demo", ids, None).await
    }

    async fn connect(
        auth_url: String,
        password: &str,
        ids: Ids,
        emulator: Option<(OpenStackCloud, Served)>,
    ) -> Self {
        let interposer = Interposer::new(CALLS);
        let real = HyperTransport::new(HttpSettings::default()).unwrap();
        let transport = interposer.transport(Arc::new(real));
        let text = format!(
            "[Global]\nauth-url={auth_url}\nusername=demo\npassword={password}\ntenant-name=demo\ndomain-name=Default\n\
             region=RegionOne\n[LoadBalancer]\nsubnet-id={}\nfloating-network-id={}\ncreate-monitor=true\n\
             [Route]\nrouter-id={}\n",
            ids.subnet, ids.public, ids.router,
        );
        let input = ProviderInput {
            config: ConfigSource::File {
                path: "cloud.conf".into(),
                text,
            },
            ..ProviderInput::default()
        };
        let context = ProviderContext {
            cluster: ClusterIdentity {
                name: "kubernetes".to_owned(),
                uid: Some("c-1".to_owned()),
                pod_cidrs: vec![],
            },
            ..ProviderContext::detached("openstack")
        };
        let factory = OpenStackFactory::wired(Wiring::over(transport));
        let provider = factory.build(input, context).await.unwrap();
        let [compute, network, octavia] = clients(&auth_url, password).await;
        Self {
            emulator,
            auth_url,
            ids,
            interposer,
            provider,
            compute,
            network,
            octavia,
        }
    }

    pub(crate) const fn ids(&self) -> &Ids {
        &self.ids
    }

    pub(crate) fn balancers(&self) -> &dyn LoadBalancers {
        self.provider.load_balancers().unwrap()
    }

    /// Calls that could change something, since the last question.
    pub(crate) fn mutating(&self) -> u64 {
        use cloudkeel_emulator_openstack::emulation::FaultInjector as _;
        let count = self.interposer.call_totals().mutating;
        self.interposer.reset_calls();
        count
    }

    /// Starts a server, and returns its ID once it is active.
    pub(crate) async fn start_server(&self, name: &str) -> String {
        if let Some((cloud, _)) = &self.emulator {
            return cloud.add_server(name);
        }
        let server = json!({"server": {
            "name": name, "flavorRef": "1", "imageRef": self.image().await, "networks": [{"uuid": self.ids.private}],
        }});
        let made: Value = self
            .compute
            .fetch(Request::post("/servers").json(server))
            .await
            .unwrap();
        let id = made["server"]["id"].as_str().unwrap().to_owned();
        self.wait_for_server(&id, "ACTIVE").await;
        id
    }

    async fn image(&self) -> String {
        // Glance has no client of its own here: Nova lists images as well.
        let images: Value = self.compute.fetch(Request::get("/images")).await.unwrap();
        let images = images["images"].as_array().unwrap();
        let image = images
            .iter()
            .find(|image| image["name"] == "image")
            .unwrap();
        image["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn stop_server(&self, id: &str) {
        if let Some((cloud, _)) = &self.emulator {
            return cloud.set(
                cloudkeel_emulator_openstack::Kind::Server,
                id,
                &json!({"status": "SHUTOFF"}),
            );
        }
        let action = Request::post("/servers/{id}/action")
            .param("id", id)
            .json(json!({"os-stop": null}));
        self.compute.send(action).await.unwrap();
        self.wait_for_server(id, "SHUTOFF").await;
    }

    pub(crate) async fn destroy_server(&self, id: &str) {
        if let Some((cloud, _)) = &self.emulator {
            return cloud.destroy_server(id);
        }
        // Nova keeps what is only deleted, so that it can be restored.
        let action = Request::post("/servers/{id}/action")
            .param("id", id)
            .json(json!({"forceDelete": null}));
        self.compute.send(action).await.unwrap();
        self.until("the server is gone", || async {
            let found = self
                .compute
                .send(Request::get("/servers/{id}").param("id", id))
                .await;
            found.is_err().then_some(())
        })
        .await;
    }

    async fn wait_for_server(&self, id: &str, status: &str) {
        self.until(status, || async {
            let server: Value = self
                .compute
                .fetch(Request::get("/servers/{id}").param("id", id))
                .await
                .unwrap();
            assert_ne!(server["server"]["status"], "ERROR", "{server}");
            (server["server"]["status"] == status).then_some(())
        })
        .await;
    }

    /// Asks again until there is an answer.
    pub(crate) async fn until<T, F>(&self, what: &str, mut ask: impl FnMut() -> F) -> T
    where
        F: Future<Output = Option<T>>,
    {
        let began = tokio::time::Instant::now();
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(
                began.elapsed() < READY_TIMEOUT,
                "{what} did not come true at {}",
                self.auth_url
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn until_active(&self, balancer: &str) {
        self.until("the load balancer is active", || async {
            let request = Request::get("/lbaas/loadbalancers/{id}").param("id", balancer);
            let now = self.octavia(request).await;
            (now["loadbalancer"]["provisioning_status"] == "ACTIVE").then_some(())
        })
        .await;
    }

    pub(crate) async fn neutron(&self, request: Request) -> Value {
        self.network.fetch(request).await.unwrap()
    }

    pub(crate) async fn octavia(&self, request: Request) -> Value {
        self.octavia.fetch(request).await.unwrap()
    }

    /// All of a kind, such as `/lbaas/listeners`.
    pub(crate) async fn octavia_all(&self, path: &'static str) -> Vec<Value> {
        let answer = self.octavia(Request::get(path)).await;
        let fields = answer.as_object().unwrap().values();
        fields
            .filter_map(Value::as_array)
            .flatten()
            .filter(|item| item.get("rel").is_none())
            .cloned()
            .collect()
    }

    /// Applies until the cloud is done, as the controller does.
    pub(crate) async fn apply(&self, desired: DesiredState<'_>) -> Result<Outcome, CloudError> {
        let began = tokio::time::Instant::now();
        loop {
            match self.balancers().apply(desired).await? {
                Outcome::Pending { .. } => tokio::time::sleep(Duration::from_millis(200)).await,
                outcome => return Ok(outcome),
            }
            assert!(began.elapsed() < READY_TIMEOUT, "it is still pending");
        }
    }
}

/// Clients of Nova, Neutron and Octavia that do not pass through the interposer.
async fn clients(auth_url: &str, password: &str) -> [Client; 3] {
    let keystone = Client::builder(auth_url).build().unwrap();
    let body = json!({"auth": {
        "identity": {"methods": ["password"], "password": {"user": {
            "name": "demo", "password": password, "domain": {"name": "Default"},
        }}},
        "scope": {"project": {"name": "demo", "domain": {"name": "Default"}}},
    }});
    let answer = keystone
        .send(Request::post("/auth/tokens").json(body))
        .await
        .unwrap();
    let token = answer.header("x-subject-token").unwrap().to_owned();
    let answer: Value = answer.json().unwrap();
    ["compute", "network", "load-balancer"].map(|kind| {
        let catalog = answer["token"]["catalog"].as_array().unwrap();
        let service = catalog
            .iter()
            .find(|service| service["type"] == kind)
            .unwrap();
        let endpoints = service["endpoints"].as_array().unwrap();
        let public = endpoints
            .iter()
            .find(|endpoint| endpoint["interface"] == "public")
            .unwrap();
        let url = public["url"].as_str().unwrap();
        let url = if kind == "compute" {
            url.to_owned()
        } else {
            format!("{url}/v2.0")
        };
        let header = http::HeaderName::from_static("x-auth-token");
        let client =
            Client::builder(url).authorizer(HeaderAuth::header(header, token.as_str().into()));
        client.build().unwrap()
    })
}
