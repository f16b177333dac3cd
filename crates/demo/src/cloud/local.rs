//! The local cloud.

use std::path::Path;

use async_trait::async_trait;
use cloudkeel_local_cloud::simulated_cloud::wire::{Balancer, Machine, Route};
use cloudkeel_local_cloud::simulated_cloud::{
    Fault, FaultMatch, MachineSpec, Operation, Permission, SimulatedCloud,
};
use cloudkeel_local_cloud::{
    Addresses, BalancerStats, LocalCloud, Options, PlaneSettings, RouteMode,
};
use serde_json::{Value, json};

use super::{Calls, Cloud, OTHER_PROJECT, Place, STRANGER};
use crate::addresses::Block;
use crate::settings::DRAIN;

const ZONES: [&str; 3] = ["a", "b", "c"];

pub(super) struct Local {
    running: LocalCloud,
    /// The credential of the managers.
    token: String,
}

impl Local {
    pub(super) async fn start(folder: &Path, block: Block) -> Result<Self, String> {
        let mut options = Options::of(folder.join("cloud.json"));
        options.addresses = Addresses {
            public_v4: block.balancers(),
            ..Addresses::default()
        };
        options.plane = PlaneSettings {
            drain: DRAIN,
            ..PlaneSettings::default()
        };
        // Nothing on this host is changed.
        options.routes = RouteMode::Table;
        let running = LocalCloud::start(&options).await;
        let running = running.map_err(|error| error.to_string())?;
        let cloud = running.cloud();
        cloud.add_project(OTHER_PROJECT);
        let stranger = MachineSpec::named(STRANGER).in_project(OTHER_PROJECT);
        cloud.add_machine(stranger).map_err(|why| why.to_string())?;
        let file = &running.contact().token_file;
        let token = std::fs::read_to_string(file);
        let token = token.map_err(|error| format!("{}: {error}", file.display()))?;
        let token = token.trim().to_owned();
        Ok(Self { running, token })
    }

    const fn cloud(&self) -> &SimulatedCloud {
        self.running.cloud()
    }

    fn grant(&self, project: &str) {
        self.cloud()
            .grant(&self.token, project, Permission::ReadWrite);
    }
}

#[async_trait]
impl Cloud for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn provider(&self) -> &'static str {
        "local"
    }

    fn id_prefix(&self) -> &'static str {
        "local://"
    }

    fn service_uid_label(&self) -> &'static str {
        "cloudkeel.dev/service-uid"
    }

    fn url(&self) -> String {
        self.running.contact().url.clone()
    }

    fn config(&self) -> Value {
        let contact = self.running.contact();
        json!({"endpoint": contact.url, "tokenFile": contact.token_file})
    }

    fn machines(&self) -> Vec<Machine> {
        self.cloud().machines()
    }

    fn balancers(&self) -> Vec<Balancer> {
        self.cloud().balancers()
    }

    fn routes(&self) -> Vec<Route> {
        self.cloud().routes()
    }

    async fn stats(&self) -> Vec<BalancerStats> {
        self.running.stats().await.balancers
    }

    fn calls(&self) -> Calls {
        let calls = self.cloud().calls();
        Calls {
            all: calls.total(),
            mutations: calls.mutations(),
            of_machines: calls.of(Operation::GetMachine) + calls.of(Operation::ListMachines),
        }
    }

    fn add_machine(&self, place: Place<'_>) -> Result<u64, String> {
        let zone = ZONES.iter().cycle().nth(usize::from(place.number) - 1);
        let spec = MachineSpec::named(place.name)
            .size("demo-small")
            .zone(zone.copied().unwrap_or_default())
            .private(place.address);
        let made = self.cloud().add_machine(spec);
        made.map(|machine| machine.id)
            .map_err(|why| why.to_string())
    }

    fn power_off(&self, machine: u64) -> Result<(), String> {
        let done = self.cloud().power_off(machine);
        done.map(drop).map_err(|why| why.to_string())
    }

    fn power_on(&self, machine: u64) -> Result<(), String> {
        let done = self.cloud().power_on(machine);
        done.map(drop).map_err(|why| why.to_string())
    }

    fn destroy(&self, machine: u64) -> Result<(), String> {
        let done = self.cloud().destroy(machine);
        done.map(drop).map_err(|why| why.to_string())
    }

    async fn settle(&self) -> Result<(), String> {
        self.cloud().settle().await.map_err(|why| why.to_string())
    }

    fn break_down(&self) {
        let faults = self.cloud().faults();
        faults.clear();
        faults.always(FaultMatch::any(), Fault::status(503));
    }

    fn swap_token(&self) {
        self.grant(OTHER_PROJECT);
    }

    fn repair(&self) {
        self.cloud().faults().clear();
        self.grant(SimulatedCloud::PROJECT);
    }

    fn is_broken(&self) -> bool {
        !self.cloud().faults().rules().is_empty()
    }

    fn made_elsewhere(&self) -> usize {
        let cloud = self.cloud();
        cloud.balancers_of(OTHER_PROJECT).len() + cloud.routes_of(OTHER_PROJECT).len()
    }
}
