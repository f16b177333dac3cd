//! The machines, the kubelets and the users: everything around the managers.

mod services;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use cloudkeel_api::names::{CLOUD_LABEL, HOLD};
use cloudkeel_api::{Clock as _, TokioClock};
use cloudkeel_controllers::wellknown::{AUTOSCALER_TAINT, EXCLUDE_LABEL};
use cloudkeel_testkit::simulated_cloud::wire::{self, MachineAddress, MachineState};
use cloudkeel_testkit::simulated_cloud::{LocalId, MachineSpec, SimulatedCloud};
use jiff::SignedDuration;
use serde_json::json;
use tokio::time::Instant;

use crate::accounts::{Account, Clouds, Layout};
use crate::action::Action;
use crate::cluster::Cluster;
use crate::fault_class::FaultClass;
use crate::invariants::Checker;
use crate::managers::Backends;
use crate::rng::Rng;
use crate::topology::Topology;

/// A kubelet that was not heard for this long is not Ready.
const SILENT: Duration = Duration::from_secs(40);

/// So many machines of an account are never destroyed: a cloud without any machine of the cluster is in doubt, and
/// waits for the operator.
const fn last_machines(layout: Layout) -> usize {
    if layout.has_several() { 1 } else { 2 }
}

/// A machine and its kubelet.
#[derive(Debug, Clone)]
struct Machine {
    /// Its ID in the cloud; `None` if it is destroyed.
    id: Option<u64>,
    /// Its kubelet does not reach the API.
    stopped: bool,
    heard: Instant,
    ready: bool,
}

/// How a kubelet reports.
#[derive(Debug, Clone, Copy, Default)]
struct KubeletConfig {
    /// By so much its clock is wrong.
    skew: SignedDuration,
    /// It has no lease, and writes the status of its Node instead.
    without_lease: bool,
}

impl KubeletConfig {
    fn random(rng: &mut Rng) -> Self {
        let minutes = rng.one_of(&[0, 0, 0, -1, 1, -60, 60]).unwrap_or(0);
        Self {
            skew: SignedDuration::from_mins(minutes),
            without_lease: rng.chance(15),
        }
    }
}

/// The machines and their kubelets.
pub(crate) struct Environment {
    cluster: Cluster,
    clouds: Clouds,
    clock: TokioClock,
    rng: Rng,
    topology: Topology,
    checker: Arc<Checker>,
    machines: Vec<Option<Machine>>,
    kubelets: Vec<KubeletConfig>,
    address_changes: u8,
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

impl Environment {
    pub(crate) fn new(
        backends: &Backends,
        cluster: Cluster,
        clock: TokioClock,
        mut rng: Rng,
    ) -> Self {
        let topology = backends.topology;
        let machines = 0..topology.machines;
        Self {
            cluster,
            clouds: backends.clouds.clone(),
            checker: Arc::clone(&backends.checker),
            clock,
            topology,
            machines: machines.clone().map(|_| None).collect(),
            kubelets: machines.map(|_| KubeletConfig::random(&mut rng)).collect(),
            rng,
            address_changes: 0,
            shielded: None,
            cut_off_until: None,
        }
    }

    /// A machine, and another one whose kubelet will be heard: a zone that a cloud may hide. The Node of the other one has
    /// an ID, so that it shows the managers what is missing.
    pub(crate) async fn hide(&mut self, machine: usize) -> Result<BTreeSet<u64>> {
        let account = self.account_of(machine);
        let is_heard = |place: &usize| {
            let other = self.machines.get(*place).and_then(Option::as_ref);
            let other = other.filter(|other| *place != machine && !other.stopped && other.ready);
            other.is_some() && self.is_running(*place)
        };
        let others = (0..self.machines.len()).filter(|place| self.account_of(*place) == account);
        for other in others.filter(is_heard).collect::<Vec<_>>() {
            let node = self.cluster.node(&node_name(other)).await?;
            if node.is_some_and(|node| node.spec.is_some_and(|spec| spec.provider_id.is_some())) {
                self.shielded = Some(other);
                let hidden = [machine, other].into_iter();
                return Ok(hidden.filter_map(|place| self.id(place)).collect());
            }
        }
        Ok(BTreeSet::new())
    }

    /// Whether a machine of an account runs whose Node has an ID and is Ready.
    pub(crate) async fn has_initialised_node(&self, account: Account) -> Result<bool> {
        for (place, machine) in self.machines.iter().enumerate() {
            let is_ready = machine.as_ref().is_some_and(|machine| machine.ready);
            if !is_ready || self.account_of(place) != account || !self.is_running(place) {
                continue;
            }
            let node = self.cluster.node(&node_name(place)).await?;
            if node.is_some_and(|node| node.spec.is_some_and(|spec| spec.provider_id.is_some())) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) const fn shield_nothing(&mut self) {
        self.shielded = None;
    }

    /// No kubelet reaches the API for a while, nor does the node controller.
    pub(crate) fn cut_off(&mut self, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.cut_off_until = self.cut_off_until.max(Some(until));
    }

    /// Carries out actions on machines, kubelets and objects. Those that make no sense now are skipped.
    pub(crate) async fn act(&mut self, action: &Action) -> Result<()> {
        match *action {
            Action::Join(machine) => self.join(machine).await,
            Action::Destroy(machine)
            | Action::Rebuild(machine)
            | Action::PowerOff(machine)
            | Action::StopKubelet(machine)
                if self.shielded == Some(machine) =>
            {
                Ok(())
            }
            Action::Destroy(machine) => self.destroy(machine),
            Action::Rebuild(machine) => self.rebuild(machine).await,
            Action::PowerOff(machine) => self.power(machine, MachineState::Off),
            Action::PowerOn(machine) => self.power(machine, MachineState::Running),
            Action::StopKubelet(machine) => {
                self.stop_kubelet(machine, true);
                Ok(())
            }
            Action::StartKubelet(machine) => {
                self.stop_kubelet(machine, false);
                Ok(())
            }
            Action::ChangeAddress(machine) => self.change_address(machine),
            Action::ToggleExclusion(machine) => self.toggle_exclusion(machine).await,
            Action::ToggleAutoscalerTaint(machine) => {
                let node = node_name(machine);
                self.cluster.toggle_taint(&node, AUTOSCALER_TAINT).await
            }
            Action::ToggleHold(machine) => self.toggle_hold(machine).await,
            Action::ToggleCordon => self.toggle_cordon().await,
            Action::CreateService(service) => self.serve(service).await,
            Action::ChangePorts(service) => self.change_ports(service).await,
            Action::ChangeServiceType(service) => self.change_type(service).await,
            Action::DeleteService(service) => self.delete_service(service).await,
            Action::Annotate {
                service,
                annotation,
                value,
            } => {
                if self.annotate(service, annotation, value).await? {
                    self.checker.met(FaultClass::ProviderAnnotation);
                }
                Ok(())
            }
            Action::PauseService(service) => self.pause_service(service).await,
            Action::ChangeFamilies(service) => self.change_families(service).await,
            Action::EditBalancer(service) => self.edit_balancer(service).await,
            Action::DeleteRoute(machine) => self.delete_route(machine).await,
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
        self.register(machine, &made).await?;
        if let Some(place) = self.machines.get_mut(machine) {
            *place = Some(Machine {
                id: Some(made.id),
                stopped: false,
                heard: Instant::now(),
                ready: true,
            });
        }
        Ok(())
    }

    /// The kubelet of a machine makes its Node, and reports.
    async fn register(&self, machine: usize, made: &wire::Machine) -> Result<()> {
        let name = node_name(machine);
        let cidrs = if self.topology.ipam {
            Vec::new()
        } else {
            self.topology.pod_cidrs(machine)
        };
        let label = self.clouds.layout.label_of(self.account_of(machine));
        let labels = label.map(|label| json!({CLOUD_LABEL: label}));
        let reported = json!({"metadata": {"labels": labels},
                              "status": {"nodeInfo": {"systemUUID": made.uuid}}});
        self.cluster.register(&name, &cidrs, &reported).await?;
        self.report(machine).await
    }

    /// A Node that got the ID of a machine which is gone, because the cloud still showed it, keeps that ID for good.
    /// The operator deletes it, and its kubelet registers again.
    pub(crate) async fn register_mistaken_again(&self) -> Result<()> {
        for machine in 0..self.machines.len() {
            let name = node_name(machine);
            let node = self.cluster.node(&name).await?;
            let id = node.and_then(|node| node.spec?.provider_id?.parse().ok());
            let id = id.and_then(|id| LocalId::read(&id).ok());
            let own = self
                .id(machine)
                .and_then(|id| self.cloud_of(machine).machine(id));
            if let (Some(id), Some(own)) = (id, own)
                && id.machine != own.id
            {
                self.cluster.delete_node(&name).await?;
                self.register(machine, &own).await?;
            }
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

    /// A new machine. Each account has addresses and system UUIDs that no other has.
    fn spec_of(&mut self, machine: usize) -> MachineSpec {
        let spec = MachineSpec::named(node_name(machine));
        let account = self.account_of(machine);
        if account == Account::First {
            return spec;
        }
        let spec = spec.private(self.new_address(account));
        let (number, count) = (account as usize, self.address_changes);
        spec.uuid(format!("5ec{number:05}-0000-4000-8000-{count:012x}"))
    }

    fn new_address(&mut self, account: Account) -> IpAddr {
        self.address_changes = self.address_changes.wrapping_add(1);
        IpAddr::from([10, 9, account as u8, self.address_changes])
    }

    /// The kubelet is heard.
    async fn report(&self, machine: usize) -> Result<()> {
        let kubelet = self.kubelets.get(machine).copied().unwrap_or_default();
        let (name, now) = (node_name(machine), self.clock.now() + kubelet.skew);
        if kubelet.without_lease {
            self.cluster.report_status(&name, now).await
        } else {
            self.cluster.heartbeat(&name, now).await
        }
    }

    async fn toggle_cordon(&self) -> Result<()> {
        for machine in 0..self.machines.len() {
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
        let living = (0..self.machines.len()).filter(|place| self.account_of(*place) == account);
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

    fn stop_kubelet(&mut self, machine: usize, stopped: bool) {
        if let Some(machine) = self.machine(machine) {
            machine.stopped = stopped;
        }
    }

    fn change_address(&mut self, machine: usize) -> Result<()> {
        if let Some(id) = self.id(machine) {
            let address = MachineAddress::private(self.new_address(self.account_of(machine)));
            self.cloud_of(machine).set_addresses(id, vec![address])?;
        }
        Ok(())
    }

    async fn toggle_exclusion(&self, machine: usize) -> Result<()> {
        let name = node_name(machine);
        let Some(node) = self.cluster.node(&name).await? else {
            return Ok(());
        };
        let labels = node.metadata.labels.unwrap_or_default();
        let wanted = (!labels.contains_key(EXCLUDE_LABEL)).then_some("true");
        self.cluster.label(&name, EXCLUDE_LABEL, wanted).await
    }

    async fn toggle_hold(&self, machine: usize) -> Result<()> {
        let name = node_name(machine);
        let Some(node) = self.cluster.node(&name).await? else {
            return Ok(());
        };
        let annotations = node.metadata.annotations.unwrap_or_default();
        let wanted = (!annotations.contains_key(HOLD.name())).then_some("true");
        self.cluster.annotate(&name, HOLD.name(), wanted).await
    }

    /// Removes the hold annotation from all Nodes.
    pub(crate) async fn remove_holds(&self) -> Result<()> {
        for machine in 0..self.machines.len() {
            let name = node_name(machine);
            if self.cluster.node(&name).await?.is_some() {
                self.cluster.annotate(&name, HOLD.name(), None).await?;
            }
        }
        Ok(())
    }

    async fn delete_route(&self, machine: usize) -> Result<()> {
        let node = self.cluster.node(&node_name(machine)).await?;
        let Some(cidr) = node.and_then(|node| node.spec?.pod_cidr) else {
            return Ok(());
        };
        let cloud = self.cloud_of(machine);
        let routes = cloud.routes();
        if let Some(route) = routes.iter().find(|r| r.destination.to_string() == cidr) {
            cloud.drop_route(route.id)?;
        }
        Ok(())
    }

    /// Kubelets report, or do not; the node controller sets their Nodes' conditions.
    pub(crate) async fn beat(&mut self, renew: bool) -> Result<()> {
        if self
            .cut_off_until
            .is_some_and(|until| Instant::now() < until)
        {
            return Ok(());
        }
        for machine in 0..self.machines.len() {
            let name = node_name(machine);
            let running = self.is_running(machine);
            let Some(state) = self.machine(machine).cloned() else {
                continue;
            };
            let speaks = running && !state.stopped;
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
