//! Some vCenters, and a provider that sees them through an interposer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, CloudProvider, ConfigSource, ErrorKind, Existence, Instance, InstanceList,
    Instances, KnownInstance, NodeFacts, ProviderContext, ProviderInput, Secret, SecretStore,
};
use cloudkeel_http::{HttpSettings, HyperTransport, TlsSettings};
use cloudkeel_provider_vsphere::{Config, VSphereProvider, Wiring};
use cloudkeel_testkit::conformance::interposer::{Classifier, Interposer, Rule};
use cloudkeel_testkit::vcsim::{NewVm, SimulatedVCenter, VCenterSpec};
use serde_json::{Value, json};

const CALLS: Classifier = Classifier {
    rules: &[Rule::Soap {
        reads: &["Retrieve", "Continue", "Find", "Login", "Logout"],
    }],
    page_param: None,
};

/// Secrets of a cluster, which a test can change.
#[derive(Default)]
pub(crate) struct Secrets(pub(crate) Mutex<BTreeMap<String, BTreeMap<String, Secret>>>);

impl Secrets {
    pub(crate) fn set(&self, name: &str, pairs: &[(String, &str)]) {
        let pairs = pairs.iter();
        let data = pairs.map(|(key, value)| (key.clone(), Secret::new(*value)));
        self.0
            .lock()
            .unwrap()
            .insert(name.to_owned(), data.collect());
    }
}

#[async_trait]
impl SecretStore for Secrets {
    async fn read(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BTreeMap<String, Secret>, CloudError> {
        let secrets = self.0.lock().unwrap();
        let found = secrets.get(&format!("{namespace}/{name}")).cloned();
        found.ok_or_else(|| CloudError::new("read secret", ErrorKind::NotFound, "no such Secret"))
    }
}

pub(crate) struct Lab {
    pub(crate) vcenters: Vec<SimulatedVCenter>,
    pub(crate) interposer: Interposer,
    pub(crate) settings: Value,
    pub(crate) secrets: Arc<Secrets>,
    /// How many objects one answer of a list has.
    pub(crate) page_size: Option<u32>,
}

impl Lab {
    /// With so many vCenters as they come.
    pub(crate) async fn new(vcenters: usize) -> Self {
        Self::with(vec![VCenterSpec::default(); vcenters]).await
    }

    pub(crate) async fn with(specs: Vec<VCenterSpec>) -> Self {
        let mut vcenters = Vec::new();
        let mut entries = serde_json::Map::new();
        for (number, spec) in specs.into_iter().enumerate() {
            let vcenter = SimulatedVCenter::new(spec).await.unwrap();
            let entry = json!({
                "server": vcenter.host(), "port": vcenter.port(), "user": SimulatedVCenter::USER,
                "password": "pass", "soapRoundtripCount": 1,
            });
            entries.insert(format!("vc{number}"), entry);
            vcenters.push(vcenter);
        }
        Self {
            vcenters,
            interposer: Interposer::new(CALLS),
            settings: json!({"vcenter": entries}),
            secrets: Arc::default(),
            page_size: None,
        }
    }

    pub(crate) fn config(&self) -> Config {
        let input = ProviderInput {
            config: ConfigSource::Own(self.settings.clone()),
            ..ProviderInput::default()
        };
        let mut config = Config::read(&input).unwrap();
        for vcenter in &mut config.vcenters {
            vcenter.page_size = self.page_size.unwrap_or(vcenter.page_size);
        }
        config
    }

    pub(crate) async fn try_connect(&self) -> Result<VSphereProvider, CloudError> {
        let http = HttpSettings {
            tls: TlsSettings::default().insecure(true),
            ..HttpSettings::default()
        };
        let connections = HyperTransport::new(http).unwrap();
        let wiring = Wiring::over(self.interposer.transport(Arc::new(connections)));
        VSphereProvider::connect(&self.config(), &self.context(), wiring).await
    }

    pub(crate) async fn connect(&self) -> VSphereProvider {
        self.try_connect().await.unwrap()
    }

    pub(crate) fn context(&self) -> ProviderContext {
        ProviderContext {
            secrets: Arc::<Secrets>::clone(&self.secrets),
            ..ProviderContext::detached("vsphere")
        }
    }

    /// Machines `node-<from>`, … with addresses by their numbers.
    pub(crate) async fn add_nodes(
        &self,
        vcenter: usize,
        numbers: std::ops::Range<u8>,
    ) -> Vec<(NewVm, NodeFacts)> {
        let mut nodes = Vec::new();
        for number in numbers {
            let name = format!("node-{number}");
            let ip = format!("10.0.0.{number}");
            let vm = self.vcenters[vcenter].add_vm(&name, &[&ip]).await.unwrap();
            let node = node(&name, &vm.uuid);
            nodes.push((vm, node));
        }
        nodes
    }
}

/// The Node of a machine once it is initialized.
pub(crate) fn node(name: &str, uuid: &str) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        provider_id: Some(format!("vsphere://{uuid}").parse().unwrap()),
        ..NodeFacts::default()
    }
}

pub(crate) fn instances(provider: &VSphereProvider) -> &dyn Instances {
    provider.instances().unwrap()
}

pub(crate) fn known_besides(list: &InstanceList, node: &NodeFacts) -> Option<KnownInstance> {
    list.known_instance_besides(node.provider_id.as_ref().unwrap(), |_| true)
}

pub(crate) fn present(existence: Existence) -> Instance {
    match existence {
        Existence::Present(instance) => *instance,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn names(list: &InstanceList) -> Vec<String> {
    let mut names: Vec<_> = list.instances().map(|it| it.name.clone()).collect();
    names.sort();
    names
}
