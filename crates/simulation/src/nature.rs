//! The machines, the kubelets and the people: everything that happens around the managers.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use cloudkeel_api::names::{CLOUD_LABEL, HOLD};
use cloudkeel_api::{Clock as _, TokioClock};
use cloudkeel_controllers::wellknown::{AUTOSCALER_TAINT, EXCLUDE_LABEL};
use cloudkeel_testkit::simulated_cloud::wire::{MachineAddress, MachineState};
use cloudkeel_testkit::simulated_cloud::{MachineSpec, SimulatedCloud};
use jiff::SignedDuration;
use serde_json::json;
use tokio::time::Instant;

use crate::accounts::{Account, Clouds, Layout};
use crate::action::{Action, MACHINES};
use crate::cluster::Cluster;
use crate::draw::Draw;

/// A kubelet that was not heard for this long is not Ready.
const SILENT: Duration = Duration::from_secs(40);

/// So many machines of an account are never destroyed: a cloud without any machine of the cluster is in doubt, and
/// waits for a person.
const fn last_machines(layout: Layout) -> usize {
    if layout.has_two() { 1 } else { 2 }
}

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

/// How a kubelet reports.
#[derive(Debug, Clone, Copy, Default)]
struct Manner {
    /// By so much its clock is wrong.
    skew: SignedDuration,
    /// It has no lease, and writes the status of its Node instead.
    leaseless: bool,
}

impl Manner {
    fn draw(draw: &mut Draw) -> Self {
        let minutes = draw.one_of(&[0, 0, 0, -1, 1, -60, 60]).unwrap_or(0);
        Self {
            skew: SignedDuration::from_mins(minutes),
            leaseless: draw.chance(15),
        }
    }
}

/// What is going on in the world.
pub(crate) struct Nature {
    cluster: Cluster,
    clouds: Clouds,
    clock: TokioClock,
    draw: Draw,
    machines: [Option<Machine>; MACHINES],
    manners: [Manner; MACHINES],
    moves: u8,
    /// The machine whose kubelet has to be heard, because the cloud hides its zone.
    shielded: Option<usize>,
    /// Until then the API cannot be reached.
    cut_off_until: Option<Instant>,
}

pub(crate) fn node_name(machine: usize) -> String {
    format!("node-{machine}")
}

pub(crate) fn service_name(service: usize) -> String {
    format!("service-{service}")
}

impl Nature {
    pub(crate) fn new(cluster: Cluster, clouds: Clouds, clock: TokioClock, mut draw: Draw) -> Self {
        Self {
            cluster,
            clouds,
            clock,
            machines: std::array::from_fn(|_| None),
            manners: std::array::from_fn(|_| Manner::draw(&mut draw)),
            draw,
            moves: 0,
            shielded: None,
            cut_off_until: None,
        }
    }

    /// A machine, and another one whose kubelet will be heard: a zone that a cloud may hide.
    pub(crate) fn hide(&mut self, machine: usize) -> BTreeSet<u64> {
        let account = self.account_of(machine);
        let is_heard = |place: &usize| {
            let other = self.machines.get(*place).and_then(Option::as_ref);
            let other = other.filter(|other| *place != machine && !other.silenced && other.ready);
            other.is_some() && self.is_running(*place)
        };
        let mut others = (0..MACHINES).filter(|place| self.account_of(*place) == account);
        let Some(other) = others.find(is_heard) else {
            return BTreeSet::new();
        };
        self.shielded = Some(other);
        [machine, other]
            .into_iter()
            .filter_map(|place| self.id(place))
            .collect()
    }

    pub(crate) const fn shield_nothing(&mut self) {
        self.shielded = None;
    }

    /// No kubelet reaches the API for a while, nor anything that judges kubelets.
    pub(crate) fn cut_off(&mut self, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.cut_off_until = self.cut_off_until.max(Some(until));
    }

    /// Does what is about machines, kubelets and people. What makes no sense now is passed over.
    pub(crate) async fn act(&mut self, action: &Action) -> Result<()> {
        match *action {
            Action::Join(machine) => self.join(machine).await,
            Action::Destroy(machine)
            | Action::Rebuild(machine)
            | Action::PowerOff(machine)
            | Action::Silence(machine)
                if self.shielded == Some(machine) =>
            {
                Ok(())
            }
            Action::Destroy(machine) => self.destroy(machine),
            Action::Rebuild(machine) => self.rebuild(machine).await,
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
            Action::Cordon => self.turn_cordon().await,
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
        let spec = self.spec_of(machine);
        let made = self.cloud_of(machine).add_machine(spec)?;
        let cidr = format!("10.244.{machine}.0/24");
        let label = self.clouds.layout.label_of(self.account_of(machine));
        let labels = label.map(|label| json!({CLOUD_LABEL: label}));
        let reported = json!({"metadata": {"labels": labels},
                              "status": {"nodeInfo": {"systemUUID": made.uuid}}});
        self.cluster.register(&name, &cidr, &reported).await?;
        self.report(machine).await?;
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

    const fn account_of(&self, machine: usize) -> Account {
        self.clouds.layout.account_of(machine)
    }

    /// The cloud that a machine is in.
    fn cloud_of(&self, machine: usize) -> &SimulatedCloud {
        self.clouds.of_machine(machine)
    }

    /// A new machine. Those of the second account have addresses and system UUIDs that none of the first has.
    fn spec_of(&mut self, machine: usize) -> MachineSpec {
        let spec = MachineSpec::named(node_name(machine));
        match self.account_of(machine) {
            Account::First => spec,
            Account::Second => {
                let spec = spec.private(self.new_address());
                spec.uuid(format!("5ec00000-0000-4000-8000-{:012x}", self.moves))
            }
        }
    }

    fn new_address(&mut self) -> IpAddr {
        self.moves = self.moves.wrapping_add(1);
        IpAddr::from([10, 9, 0, self.moves])
    }

    /// The kubelet is heard.
    async fn report(&self, machine: usize) -> Result<()> {
        let manner = self.manners.get(machine).copied().unwrap_or_default();
        let (name, now) = (node_name(machine), self.clock.now() + manner.skew);
        if manner.leaseless {
            self.cluster.report_status(&name, now).await
        } else {
            self.cluster.heartbeat(&name, now).await
        }
    }

    async fn turn_cordon(&self) -> Result<()> {
        for machine in 0..MACHINES {
            let name = node_name(machine);
            if let Some(node) = self.cluster.node(&name).await? {
                let was = node.spec.and_then(|spec| spec.unschedulable);
                self.cluster.cordon(&name, was != Some(true)).await?;
            }
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
        let account = self.account_of(machine);
        let living = (0..MACHINES).filter(|place| self.account_of(*place) == account);
        let living = living.filter(|place| self.id(*place).is_some()).count();
        let last = last_machines(self.clouds.layout);
        if let Some(id) = self.id(machine).filter(|_| living > last) {
            self.cloud_of(machine).destroy(id)?;
            if let Some(machine) = self.machine(machine) {
                machine.id = None;
            }
        }
        Ok(())
    }

    async fn rebuild(&mut self, machine: usize) -> Result<()> {
        let Some(id) = self.id(machine) else {
            return Ok(());
        };
        self.cloud_of(machine).destroy(id)?;
        self.cluster.delete_node(&node_name(machine)).await?;
        if let Some(place) = self.machines.get_mut(machine) {
            *place = None;
        }
        self.join(machine).await
    }

    fn power(&self, machine: usize, state: MachineState) -> Result<()> {
        if let Some(id) = self.id(machine) {
            self.cloud_of(machine)
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
            let address = MachineAddress::private(self.new_address());
            self.cloud_of(machine).set_addresses(id, vec![address])?;
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
        if !self.clouds.layout.has_services() || self.cluster.service(&name).await?.is_some() {
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
        let cloud = self.clouds.of(Account::First);
        let balancers = cloud.balancers();
        let Some(balancer) = balancers.iter().find(|balancer| ours(&balancer.labels)) else {
            return Ok(());
        };
        let how = self.draw.between(0, 2);
        cloud.edit_balancer(balancer.id, |balancer| match how {
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
        let cloud = self.cloud_of(machine);
        let routes = cloud.routes();
        if let Some(route) = routes.iter().find(|r| r.destination.to_string() == cidr) {
            cloud.drop_route(route.id)?;
        }
        Ok(())
    }

    /// Kubelets are heard, or are not; the cluster draws its conclusions.
    pub(crate) async fn beat(&mut self, renew: bool) -> Result<()> {
        if self
            .cut_off_until
            .is_some_and(|until| Instant::now() < until)
        {
            return Ok(());
        }
        for machine in 0..MACHINES {
            let name = node_name(machine);
            let running = self.is_running(machine);
            let Some(state) = self.machine(machine).cloned() else {
                continue;
            };
            let speaks = running && !state.silenced;
            let ready = speaks || state.heard.elapsed() < SILENT;
            let turned = ready != state.ready;
            if (turned || (speaks && renew)) && self.cluster.node(&name).await?.is_some() {
                if speaks {
                    self.report(machine).await?;
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

    fn is_running(&self, machine: usize) -> bool {
        let found = self.id(machine);
        let found = found.and_then(|id| self.cloud_of(machine).machine(id));
        found.is_some_and(|found| found.state == MachineState::Running)
    }
}
