//! A simulated vCenter under the kit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::{
    BuildError, CloudProvider, ConfigSource, NodeAddress, ProviderContext, ProviderInput,
};
use cloudkeel_http::{Transport, TransportError};
use cloudkeel_provider_vsphere::{Config, VSphereProvider, Wiring};
use cloudkeel_testkit::conformance::interposer::{Classifier, Interposer, Rule};
use cloudkeel_testkit::conformance::{
    ActualInstance, ActualState, Answer, Change, FaultInjector, Interposed, ListShape,
    OrNotPlayable as _, Samples, Stop, TestCloud,
};
use cloudkeel_testkit::vcsim::{SimulatedVCenter, VCenterSpec};
use http::{Request, Response, StatusCode};
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

/// An interposer that knows vCenter's APIs.
pub(crate) fn interposer() -> Interposer {
    let list_shape = ListShape::Xml {
        item: "objects",
        next: "token",
    };
    let interposer = Interposer::new(CALLS).with_list_shape(list_shape);
    interposer.with_errors(refusal)
}

/// The way to another vCenter, in place of the one that is asked.
struct OtherVCenter {
    vcenter: SimulatedVCenter,
    connections: Arc<dyn Transport>,
}

#[async_trait]
impl Transport for OtherVCenter {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let (host, port) = (self.vcenter.host(), self.vcenter.port());
        let target = request.uri().path_and_query().map_or("/", |it| it.as_str());
        if let Ok(uri) = format!("https://{host}:{port}{target}").parse() {
            *request.uri_mut() = uri;
        }
        self.connections.send(request).await
    }
}

struct Machine {
    /// Its reference.
    id: String,
    actual: ActualInstance,
}

struct VSphereTestCloud {
    vcenter: SimulatedVCenter,
    interposed: Interposed,
    config: Config,
    machines: Mutex<Vec<Machine>>,
}

async fn vcenter(interposed: &Interposed) -> Result<SimulatedVCenter, Stop> {
    let spec = VCenterSpec {
        password: PASSWORD.to_owned(),
        ..VCenterSpec::default()
    };
    let vcenter = SimulatedVCenter::over(Some(interposed.direct()), spec).await;
    vcenter.or_not_playable()
}

/// A vCenter with nothing in it but tags, and another one with a machine.
pub(crate) async fn open(interposed: Interposed) -> Result<Box<dyn TestCloud>, Stop> {
    let (ours, other) = (vcenter(&interposed).await?, vcenter(&interposed).await?);
    other
        .add_vm("theirs", &["10.9.0.1"])
        .await
        .or_not_playable()?;
    for (category, name, path) in [
        ("zones", "z1", "/DC0/host/DC0_C0"),
        ("regions", "r1", "/DC0"),
    ] {
        ours.tag(category, name, path).await.or_not_playable()?;
    }
    let settings = json!({
        "vcenter": {"a": {
            "server": ours.host(), "port": ours.port(), "user": SimulatedVCenter::USER, "password": PASSWORD,
        }},
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
    }
    let other = OtherVCenter {
        vcenter: other,
        connections: interposed.direct(),
    };
    Ok(Box::new(VSphereTestCloud {
        vcenter: ours,
        interposed: interposed.with_other_project(Arc::new(other)),
        config,
        machines: Mutex::default(),
    }))
}

impl VSphereTestCloud {
    fn machines(&self) -> MutexGuard<'_, Vec<Machine>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id_of(&self, name: &str) -> Result<String, Stop> {
        let machines = self.machines();
        let found = machines.iter().rev().find(|it| it.actual.node.name == name);
        found
            .map(|it| it.id.clone())
            .ok_or_else(|| Stop::not_playable("no such machine"))
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
        let wiring = Wiring::over(self.interposed.transport());
        let provider = VSphereProvider::connect(&self.config, &context, wiring);
        Ok(Arc::new(provider.await?))
    }

    fn interposer(&self) -> &dyn FaultInjector {
        self.interposed.interposer()
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
                self.vcenter
                    .change(&self.id_of(name)?, json!({"off": true}))
                    .await
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
}
