//! The machines, the kubelets and the people: everything that happens around the managers.

use std::time::Duration;

use anyhow::Result;
use cloudkeel_api::names::HOLD;
use cloudkeel_api::{Clock as _, TokioClock};
use cloudkeel_controllers::wellknown::{AUTOSCALER_TAINT, EXCLUDE_LABEL};
use cloudkeel_testkit::simulated_cloud::wire::{MachineAddress, MachineState};
use cloudkeel_testkit::simulated_cloud::{MachineSpec, SimulatedCloud};
use serde_json::json;
use tokio::time::Instant;

use crate::action::{Action, MACHINES};
use crate::cluster::Cluster;
use crate::draw::Draw;

/// A kubelet that was not heard for this long is not Ready.
const SILENT: Duration = Duration::from_secs(40);

/// So many machines are never destroyed: a cluster without any machine is in doubt, and waits for a
/// person.
const LAST_MACHINES: usize = 2;

/// A machine and its kubelet.
#[derive(Debug, Clone)]
struct Machine {
    /// Its ID in the cloud; `None` if it is destroyed.
    id: Option<u64>,
    /// Silenced by trouble in the network.
    silenced: bool,
    heard: Instant,
    ready: bool,
}

/// What is going on in the world.
pub(crate) struct Nature {
    cluster: Cluster,
    cloud: SimulatedCloud,
    clock: TokioClock,
    draw: Draw,
    machines: [Option<Machine>; MACHINES],
    moves: u8,
}

pub(crate) fn node_name(machine: usize) -> String {
    format!("node-{machine}")
}

pub(crate) fn service_name(service: usize) -> String {
    format!("service-{service}")
}

impl Nature {
    pub(crate) fn new(
        cluster: Cluster,
        cloud: SimulatedCloud,
        clock: TokioClock,
        draw: Draw,
    ) -> Self {
        Self {
            cluster,
            cloud,
            clock,
            draw,
            machines: std::array::from_fn(|_| None),
            moves: 0,
        }
    }

    /// Does what is about machines, kubelets and people. What makes no sense now is passed over.
    pub(crate) async fn act(&mut self, action: &Action) -> Result<()> {
        match *action {
            Action::Join(machine) => self.join(machine).await,
            Action::Destroy(machine) => self.destroy(machine),
            Action::PowerOff(machine) => self.power(machine, MachineState::Off),
            Action::PowerOn(machine) => self.power(machine, MachineState::Running),
            Action::Silence(machine) => {
                self.silence(machine, true);
                Ok(())
            }
            Action::Wake(machine) => {
                self.silence(machine, false);
                Ok(())
            }
            Action::Move(machine) => self.move_house(machine),
            Action::Exclude(machine) => self.turn_label(machine).await,
            Action::Condemn(machine) => {
                let node = node_name(machine);
                self.cluster.turn_taint(&node, AUTOSCALER_TAINT).await
            }
            Action::Hold(machine) => self.turn_hold(machine).await,
            Action::Serve(service) => self.serve(service).await,
            Action::ChangePorts(service) => self.change_ports(service).await,
            Action::Retype(service) => self.retype(service).await,
            Action::Unserve(service) => self.unserve(service).await,
            Action::Drift(service) => self.drift(service).await,
            Action::LoseRoute(machine) => self.lose_route(machine),
            _ => Ok(()),
        }
    }

    /// A machine appears, and its kubelet registers, unless a Node of that name is still there.
    pub(crate) async fn join(&mut self, machine: usize) -> Result<()> {
        let name = node_name(machine);
        let exists = self.machine(machine).is_some_and(|m| m.id.is_some());
        if exists || self.cluster.node(&name).await?.is_some() {
            return Ok(());
        }
        let made = self.cloud.add_machine(MachineSpec::named(&name))?;
        let cidr = format!("10.244.{machine}.0/24");
        self.cluster.register(&name, &cidr, &json!({})).await?;
        self.cluster.heartbeat(&name, self.clock.now()).await?;
        if let Some(place) = self.machines.get_mut(machine) {
            *place = Some(Machine {
                id: Some(made.id),
                silenced: false,
                heard: Instant::now(),
                ready: true,
            });
        }
        Ok(())
    }

    fn machine(&mut self, machine: usize) -> Option<&mut Machine> {
        self.machines.get_mut(machine)?.as_mut()
    }

    fn id(&self, machine: usize) -> Option<u64> {
        self.machines.get(machine)?.as_ref()?.id
    }

    fn destroy(&mut self, machine: usize) -> Result<()> {
        let living = self.machines.iter().flatten();
        let living = living.filter(|machine| machine.id.is_some()).count();
        if let Some(id) = self.id(machine).filter(|_| living > LAST_MACHINES) {
            self.cloud.destroy(id)?;
            if let Some(machine) = self.machine(machine) {
                machine.id = None;
            }
        }
        Ok(())
    }

    fn power(&self, machine: usize, state: MachineState) -> Result<()> {
        if let Some(id) = self.id(machine) {
            self.cloud
                .edit_machine(id, |machine| machine.state = state)?;
        }
        Ok(())
    }

    fn silence(&mut self, machine: usize, silenced: bool) {
        if let Some(machine) = self.machine(machine) {
            machine.silenced = silenced;
        }
    }

    fn move_house(&mut self, machine: usize) -> Result<()> {
        if let Some(id) = self.id(machine) {
            self.moves = self.moves.wrapping_add(1);
            let address = std::net::Ipv4Addr::new(10, 9, 0, self.moves);
            self.cloud
                .set_addresses(id, vec![MachineAddress::private(address.into())])?;
        }
        Ok(())
    }

    async fn turn_label(&self, machine: usize) -> Result<()> {
        let name = node_name(machine);
        let Some(node) = self.cluster.node(&name).await? else {
            return Ok(());
        };
        let labels = node.metadata.labels.unwrap_or_default();
        let wanted = (!labels.contains_key(EXCLUDE_LABEL)).then_some("true");
        self.cluster.label(&name, EXCLUDE_LABEL, wanted).await
    }

    async fn turn_hold(&self, machine: usize) -> Result<()> {
        let name = node_name(machine);
        let Some(node) = self.cluster.node(&name).await? else {
            return Ok(());
        };
        let annotations = node.metadata.annotations.unwrap_or_default();
        let wanted = (!annotations.contains_key(HOLD.name())).then_some("true");
        self.cluster.annotate(&name, HOLD.name(), wanted).await
    }

    /// Whatever people held back they let go.
    pub(crate) async fn let_go(&self) -> Result<()> {
        for machine in 0..MACHINES {
            let name = node_name(machine);
            if self.cluster.node(&name).await?.is_some() {
                self.cluster.annotate(&name, HOLD.name(), None).await?;
            }
        }
        Ok(())
    }

    async fn serve(&self, service: usize) -> Result<()> {
        let name = service_name(service);
        if self.cluster.service(&name).await?.is_some() {
            return Ok(());
        }
        self.cluster.serve(&name, 80).await
    }

    async fn change_ports(&mut self, service: usize) -> Result<()> {
        let name = service_name(service);
        let choices: [&[u16]; 4] = [&[80], &[80, 443], &[8080], &[443, 8080, 9000]];
        let ports = self.draw.one_of(&choices).unwrap_or(&[80]);
        if self.is_there(&name).await? {
            self.cluster.set_ports(&name, ports).await?;
        }
        Ok(())
    }

    async fn retype(&self, service: usize) -> Result<()> {
        let name = service_name(service);
        let Some(found) = self.cluster.service(&name).await? else {
            return Ok(());
        };
        let kind = found.spec.and_then(|spec| spec.type_);
        let other = match kind.as_deref() {
            Some("LoadBalancer") => "ClusterIP",
            _ => "LoadBalancer",
        };
        self.cluster.set_type(&name, other).await
    }

    async fn unserve(&self, service: usize) -> Result<()> {
        let name = service_name(service);
        if self.is_there(&name).await? {
            self.cluster.delete_service(&name).await?;
        }
        Ok(())
    }

    async fn is_there(&self, service: &str) -> Result<bool> {
        let found = self.cluster.service(service).await?;
        Ok(found.is_some_and(|service| service.metadata.deletion_timestamp.is_none()))
    }

    /// Somebody changes a balancer by hand.
    async fn drift(&mut self, service: usize) -> Result<()> {
        let Some(found) = self.cluster.service(&service_name(service)).await? else {
            return Ok(());
        };
        let uid = found.metadata.uid.unwrap_or_default();
        let ours = |labels: &std::collections::BTreeMap<String, String>| {
            labels.values().any(|value| *value == uid)
        };
        let balancers = self.cloud.balancers();
        let Some(balancer) = balancers.iter().find(|balancer| ours(&balancer.labels)) else {
            return Ok(());
        };
        let how = self.draw.between(0, 2);
        self.cloud
            .edit_balancer(balancer.id, |balancer| match how {
                0 => balancer.listeners.clear(),
                1 => balancer.targets.truncate(1),
                _ => {
                    for listener in &mut balancer.listeners {
                        listener.target_port ^= 1;
                    }
                }
            })?;
        Ok(())
    }

    fn lose_route(&self, machine: usize) -> Result<()> {
        let cidr = format!("10.244.{machine}.0/24");
        let routes = self.cloud.routes();
        if let Some(route) = routes.iter().find(|r| r.destination.to_string() == cidr) {
            self.cloud.drop_route(route.id)?;
        }
        Ok(())
    }

    /// Kubelets are heard, or are not; the cluster draws its conclusions.
    pub(crate) async fn beat(&mut self, renew: bool) -> Result<()> {
        for machine in 0..MACHINES {
            let name = node_name(machine);
            let running = self.id(machine).is_some_and(|id| self.is_running(id));
            let Some(state) = self.machine(machine).cloned() else {
                continue;
            };
            let speaks = running && !state.silenced;
            let ready = speaks || state.heard.elapsed() < SILENT;
            let turned = ready != state.ready;
            if (turned || (speaks && renew)) && self.cluster.node(&name).await?.is_some() {
                if speaks {
                    self.cluster.heartbeat(&name, self.clock.now()).await?;
                }
                if turned {
                    let status = if ready { "True" } else { "Unknown" };
                    self.cluster.set_ready(&name, status).await?;
                }
            }
            if let Some(state) = self.machine(machine) {
                state.ready = ready;
                if speaks {
                    state.heard = Instant::now();
                }
            }
        }
        Ok(())
    }

    fn is_running(&self, id: u64) -> bool {
        let machine = self.cloud.machine(id);
        machine.is_some_and(|machine| machine.state == MachineState::Running)
    }
}
