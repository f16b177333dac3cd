//! A simulated vCenter under the kit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::{
    BuildError, CloudProvider, ConfigSource, NodeAddress, ProviderContext, ProviderInput,
};
use cloudkeel_emulation::Answer;
use cloudkeel_emulation::ListShape;
use cloudkeel_emulation::interposer::{Classifier, Interposer, Rule};
use cloudkeel_http::{HttpSettings, HyperTransport, TlsSettings};
use cloudkeel_provider_vsphere::{Config, VSphereProvider, Wiring};
use cloudkeel_testkit::conformance::{
    ActualInstance, ActualState, Change, FaultInjector, OrNotPlayable as _, Samples, Stop,
    TestCloud,
};
use cloudkeel_testkit::vcsim::{SimulatedVCenter, VCenterSpec};
use http::StatusCode;
use serde_json::json;

const PASSWORD: &str = "pa55word-of-vcenter";

const CALLS: Classifier = Classifier {
    rules: &[
        Rule::Soap {
            reads: &["Retrieve", "ContinueRetrieve", "Find", "Login", "Logout"],
        },
        Rule::Path {
            method: "POST",
            path: "/rest/com/vmware/cis/session",
            operation: "log in to REST",
            mutating: false,
        },
        Rule::Path {
            method: "POST",
            path: "/rest/com/vmware/cis/tagging/tag-association",
            operation: "list tags",
            mutating: false,
        },
    ],
    page_param: None,
};

/// Refusals as vCenter words them.
fn refusal(status: StatusCode) -> Answer {
    let (fault, status) = match status.as_u16() {
        401 => ("NotAuthenticated", StatusCode::INTERNAL_SERVER_ERROR),
        403 => ("NoPermission", StatusCode::INTERNAL_SERVER_ERROR),
        _ => ("RuntimeFault", status),
    };
    let body = format!(
        "<Envelope><Body><Fault><faultstring>by script</faultstring><detail><{fault}Fault/></detail></Fault>\
         </Body></Envelope>"
    );
    Answer::of(status, body.into_bytes())
}

struct Machine {
    /// Its reference.
    id: String,
    actual: ActualInstance,
}

pub(crate) struct VSphereTestCloud {
    vcenter: SimulatedVCenter,
    interposer: Interposer,
    config: Config,
    machines: Mutex<Vec<Machine>>,
}

impl VSphereTestCloud {
    pub(crate) async fn new() -> Result<Self, Stop> {
        let spec = VCenterSpec {
            password: PASSWORD.to_owned(),
            ..VCenterSpec::default()
        };
        let vcenter = SimulatedVCenter::new(spec).await.or_not_playable()?;
        for (category, name, path) in [("zones", "z1", "/DC0/host/DC0_C0"), ("regions", "r1", "/DC0")] {
            let tagged = vcenter.tag(category, name, path).await;
            tagged.or_not_playable()?;
        }
        let (server, port) = (vcenter.host(), vcenter.port());
        let settings = json!({
            "vcenter": {"a": {"server": server, "port": port, "user": SimulatedVCenter::USER, "password": PASSWORD}},
            "labels": {"zone": "zones", "region": "regions"},
            "nodeLabels": {"site": "lab"},
        });
        let input = ProviderInput {
            config: ConfigSource::Own(settings),
            ..ProviderInput::default()
        };
        let mut config = Config::read(&input).or_not_playable()?;
        for vcenter in &mut config.vcenters {
            // Ten machines and the datacenter: a list of thirty has three pages.
            vcenter.page_size = 11;
            vcenter.attempts = 1;
            vcenter.attempt_timeout = Duration::from_secs(5);
        }
        let list_shape = ListShape::Xml {
            item: "objects",
            next: "token",
        };
        Ok(Self {
            vcenter,
            interposer: Interposer::new(CALLS)
                .with_list_shape(list_shape)
                .with_errors(refusal),
            config,
            machines: Mutex::default(),
        })
    }

    fn machines(&self) -> MutexGuard<'_, Vec<Machine>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id_of(&self, name: &str) -> Result<String, Stop> {
        let machines = self.machines();
        let found = machines.iter().rev().find(|it| it.actual.node.name == name);
        found.map(|it| it.id.clone()).ok_or_else(|| Stop::not_playable("no such machine"))
    }

    async fn add(&self, name: &str) -> Result<(), Stop> {
        let ip = format!("10.0.0.{}", self.machines().len() + 1);
        let vm = self.vcenter.add_vm(name, &[&ip]).await.or_not_playable()?;
        let actual = ActualInstance::new(format!("vsphere://{}", vm.uuid), name, both(&ip)?)
            .of_type("vsphere-vm.cpu-2.mem-4gb.os-ubuntu")
            .at("z1", "r1")
            .labelled("site", "lab");
        self.machines().push(Machine { id: vm.id, actual });
        Ok(())
    }
}

fn both(ip: &str) -> Result<[NodeAddress; 2], Stop> {
    let ip = ip.parse().or_not_playable()?;
    Ok([NodeAddress::internal(ip), NodeAddress::external(ip)])
}

#[async_trait]
impl TestCloud for VSphereTestCloud {
    async fn connect(
        &self,
        context: ProviderContext,
    ) -> Result<Arc<dyn CloudProvider>, BuildError> {
        let http = HttpSettings {
            tls: TlsSettings::default().insecure(true),
            ..HttpSettings::default()
        };
        let transport = self.interposer.transport(Arc::new(HyperTransport::new(http)?));
        let wiring = Wiring::over(transport);
        Ok(Arc::new(VSphereProvider::connect(&self.config, &context, wiring).await?))
    }

    fn interposer(&self) -> &dyn FaultInjector {
        &self.interposer
    }

    async fn change(&self, change: Change<'_>) -> Result<(), Stop> {
        let done = match change {
            Change::AddInstance(name) => return self.add(name).await,
            Change::DestroyInstance(name) => {
                let id = self.id_of(name)?;
                self.machines().retain(|it| it.id != id);
                self.vcenter.destroy(&id).await
            }
            Change::SwitchOff(name) => {
                self.vcenter.change(&self.id_of(name)?, json!({"off": true})).await
            }
            Change::Modify(name) => {
                let (id, ip) = (self.id_of(name)?, "10.0.9.9");
                let addresses = both(ip)?;
                for machine in self.machines().iter_mut().filter(|it| it.id == id) {
                    machine.actual.node.addresses.truncate(1);
                    machine.actual.node.addresses.extend(addresses.clone());
                }
                let nics = json!([{"network": "VM Network", "addresses": [ip], "device": 4000}]);
                self.vcenter.change(&id, json!({"nics": nics})).await
            }
            change => return Err(change.not_playable()),
        };
        done.or_not_playable()
    }

    async fn state(&self) -> Result<ActualState, Stop> {
        let machines = self.machines();
        Ok(ActualState {
            instances: machines.iter().map(|it| it.actual.clone()).collect(),
            ..ActualState::default()
        })
    }

    fn samples(&self) -> Samples {
        Samples {
            secrets: vec![PASSWORD.to_owned()],
            page_size: Some(10),
            ..Samples::default()
        }
    }

    /// Nothing in the simulator takes time.
    async fn wait(&self, _: Duration) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
