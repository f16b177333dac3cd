//! Simulated vCenters of the tier `vsphere`: made, filled and made to fail through the second API of the program in
//! `xtask/stacks/vsphere`. Tests that use them carry `#[ignore]` with the tier, which starts the program.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudkeel_http::{Client, Request, Transport};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Names the second API.
const CONTROL: &str = "VCSIM_CONTROL";

/// A simulated vCenter with its own inventory. It is removed with this value.
#[derive(Debug)]
pub struct SimulatedVCenter {
    control: Client,
    about: About,
}

#[derive(Debug, Clone, Deserialize)]
struct About {
    id: String,
    host: String,
    port: String,
    sha1: String,
    sha256: String,
    ca: String,
}

/// What a vCenter begins with: `DC0`, `DC1`, …, each with clusters `DC0_C0`, …, and hosts `DC0_C0_H0`, ….
#[derive(Debug, Clone, Serialize)]
pub struct VCenterSpec {
    /// How many datacenters.
    pub datacenters: u32,
    /// How many of them are in folders `F0`, ….
    pub folders: u32,
    /// How many clusters each datacenter has.
    pub clusters: u32,
    /// How many hosts each cluster has.
    pub hosts: u32,
    /// The one password that is taken.
    pub password: String,
}

impl Default for VCenterSpec {
    fn default() -> Self {
        Self {
            datacenters: 1,
            folders: 0,
            clusters: 1,
            hosts: 2,
            password: "pass".to_owned(),
        }
    }
}

/// A new virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVm {
    /// Its reference, such as `vm-42`.
    pub id: String,
    /// Its BIOS UUID.
    pub uuid: String,
}

impl SimulatedVCenter {
    /// The one user.
    pub const USER: &'static str = "user";

    /// A new one.
    pub async fn new(spec: VCenterSpec) -> Result<Self, String> {
        Self::over(None, spec).await
    }

    /// A new one, controlled over this transport, such as one that works under a paused clock.
    pub async fn over(
        transport: Option<Arc<dyn Transport>>,
        spec: VCenterSpec,
    ) -> Result<Self, String> {
        let url = std::env::var(CONTROL);
        let url = url.map_err(|_| {
            format!("{CONTROL} is not set: run the test by `cargo xtask test --tier vsphere`")
        })?;
        let control = Client::builder(url);
        let control = match transport {
            Some(transport) => control.transport(transport),
            None => control,
        };
        let control = control.build().map_err(|error| error.to_string())?;
        let body = serde_json::to_value(spec).map_err(|error| error.to_string())?;
        let about = fetch(&control, Request::post("/vcenters").json(body)).await?;
        Ok(Self { control, about })
    }

    /// Its address.
    pub fn host(&self) -> &str {
        &self.about.host
    }

    /// Its port.
    pub fn port(&self) -> &str {
        &self.about.port
    }

    /// The thumbprints of its certificate, by SHA-1 and SHA-256.
    pub fn thumbprints(&self) -> [&str; 2] {
        [&self.about.sha1, &self.about.sha256]
    }

    /// The CA of its certificate, in PEM.
    pub fn ca(&self) -> &str {
        &self.about.ca
    }

    /// Adds a running machine whose guest reports this host name and these addresses.
    pub async fn add_vm(&self, host_name: &str, addresses: &[&str]) -> Result<NewVm, String> {
        let nics = [json!({"network": "VM Network", "addresses": addresses, "device": 4000})];
        let vm = json!({"name": format!("vm-of-{host_name}"), "hostName": host_name, "nics": nics});
        self.add(vm).await
    }

    /// Adds a machine with these fields of `Machine` in `xtask/stacks/vsphere/machines.go`.
    pub async fn add(&self, vm: Value) -> Result<NewVm, String> {
        let request = self.request(Request::post("/vcenters/{id}/vms"));
        let mut made: BTreeMap<String, String> = fetch(&self.control, request.json(vm)).await?;
        let mut take = |key: &str| made.remove(key).unwrap_or_default();
        Ok(NewVm {
            id: take("id"),
            uuid: take("uuid"),
        })
    }

    /// Changes these fields of a machine, by its reference.
    pub async fn change(&self, vm: &str, fields: Value) -> Result<(), String> {
        let request = self.request(Request::patch("/vcenters/{id}/vms/{vm}"));
        self.send(request.param("vm", vm).json(fields)).await
    }

    /// Switches a machine off and deletes it.
    pub async fn destroy(&self, vm: &str) -> Result<(), String> {
        let request = self.request(Request::delete("/vcenters/{id}/vms/{vm}"));
        self.send(request.param("vm", vm)).await
    }

    /// Attaches a tag to what is at an inventory path, such as `/DC0/host/DC0_C0`.
    pub async fn tag(&self, category: &str, name: &str, path: &str) -> Result<(), String> {
        let tag = json!({"category": category, "name": name, "path": path});
        let request = self.request(Request::post("/vcenters/{id}/tags"));
        self.send(request.json(tag)).await
    }

    /// Makes it fail: `down` and `failing` (yes or no), `expire` (ends all sessions), `password` (another one).
    pub async fn set_faults(&self, faults: Value) -> Result<(), String> {
        let request = self.request(Request::post("/vcenters/{id}/faults"));
        self.send(request.json(faults)).await
    }

    /// How often each method was called, by its SOAP name, or by HTTP method and path.
    pub async fn calls(&self) -> Result<BTreeMap<String, u64>, String> {
        let request = self.request(Request::get("/vcenters/{id}/calls"));
        fetch(&self.control, request).await
    }

    fn request(&self, request: Request) -> Request {
        request.param("id", &self.about.id)
    }

    async fn send(&self, request: Request) -> Result<(), String> {
        let sent = self.control.send(request).await;
        sent.map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for SimulatedVCenter {
    fn drop(&mut self) {
        let request = self.request(Request::delete("/vcenters/{id}"));
        let control = self.control.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { control.send(request).await });
        }
    }
}

async fn fetch<T: DeserializeOwned>(control: &Client, request: Request) -> Result<T, String> {
    let answer = control.fetch(request).await;
    answer.map_err(|error| error.to_string())
}
