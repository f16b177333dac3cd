//! Two projects in one cluster, and a token of one that is replaced by the other's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, CloudProvider, Existence, InstanceList, Instances, KnownInstance, Match, NodeFacts,
    ProviderId, Recognition,
};
use cloudkeel_testkit::simulated_cloud::wire::{Machine, MachineAddress};
use cloudkeel_testkit::simulated_cloud::{MachineSpec, Permission, Settings, SimulatedCloud};
use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES, new_clock, provider_of, tainted};

/// A cloud whose token can be replaced by that of another project.
struct Switched {
    own: Arc<dyn CloudProvider>,
    other: Arc<dyn CloudProvider>,
    is_other: Arc<AtomicBool>,
}

impl Switched {
    fn machines(&self) -> &dyn Instances {
        let current = if self.is_other.load(Ordering::SeqCst) {
            &self.other
        } else {
            &self.own
        };
        current.instances().unwrap()
    }
}

#[async_trait]
impl Instances for Switched {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        self.machines().list().await
    }
    async fn find(&self, node: &NodeFacts, known_instance: Option<&KnownInstance>) -> Existence {
        self.machines().find(node, known_instance).await
    }
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        self.machines().identify(node, list)
    }
}

/// The cloud beside it, whose token can be replaced by that of the first.
struct Beside {
    own: Arc<dyn CloudProvider>,
    first: Arc<OnceLock<Arc<dyn CloudProvider>>>,
    is_first: Arc<AtomicBool>,
}

impl Beside {
    fn current(&self) -> &Arc<dyn CloudProvider> {
        let first = self.first.get();
        first
            .filter(|_| self.is_first.load(Ordering::SeqCst))
            .unwrap_or(&self.own)
    }
}

impl CloudProvider for Beside {
    fn name(&self) -> &str {
        self.own.name()
    }
    fn recognize(&self, id: &ProviderId) -> Recognition {
        self.own.recognize(id)
    }
    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}

#[async_trait]
impl Instances for Beside {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        self.current().instances().unwrap().list().await
    }
    async fn find(&self, node: &NodeFacts, known_instance: Option<&KnownInstance>) -> Existence {
        let instances = self.current().instances().unwrap();
        instances.find(node, known_instance).await
    }
    fn identify<'a>(&self, node: &NodeFacts, list: &'a InstanceList) -> Match<'a> {
        self.current().instances().unwrap().identify(node, list)
    }
}

/// A cluster with Nodes of two projects.
struct Projects {
    lab: Lab,
    /// Whether the token of the first is that of the second.
    is_swapped: Arc<AtomicBool>,
    /// Whether the token of the second is that of the first.
    is_exchanged: Arc<AtomicBool>,
    other: SimulatedCloud,
}

/// Four Nodes of one project and four of the other, whose machines have other numbers unless these
/// `overlap`. The Nodes are labelled with the cloud if `labelled`.
async fn projects(overlap: bool, labelled: bool) -> Projects {
    let other = SimulatedCloud::new(Settings::default());
    if !overlap {
        let passing = |i| MachineSpec::named(format!("passing-{i}"));
        for machine in other.add_machines(50, passing).unwrap() {
            other.destroy(machine.id).unwrap();
        }
    }
    let there = provider_of(&other, new_clock()).await;
    let is_swapped = Arc::new(AtomicBool::new(false));
    let first = Arc::<OnceLock<Arc<dyn CloudProvider>>>::default();
    let switch = |own: Arc<dyn CloudProvider>| {
        let _ = first.set(Arc::clone(&own));
        Switched {
            own,
            other: Arc::clone(&there),
            is_other: Arc::clone(&is_swapped),
        }
    };
    let is_exchanged = Arc::new(AtomicBool::new(false));
    let second: Arc<dyn CloudProvider> = Arc::new(Beside {
        own: Arc::clone(&there),
        first: Arc::clone(&first),
        is_first: Arc::clone(&is_exchanged),
    });
    let beside = [("other", second)];
    let mut lab = Lab::through_beside(switch, &beside).await;
    lab.add_machines(4);
    let theirs = other.add_machines(4, machine_there).unwrap();
    lab.machines.extend(theirs);
    for (index, machine) in lab.machines.iter().enumerate() {
        let cloud = if index < 4 { "local" } else { "other" };
        join(&lab, machine, labelled.then_some(cloud));
    }
    lab.pass(MINUTE * 12).await;
    lab.api.forget();
    Projects {
        lab,
        is_swapped,
        is_exchanged,
        other,
    }
}

/// A machine of the other project. What the simulated cloud gives by number would be the same in both.
fn machine_there(index: usize) -> MachineSpec {
    let uuid = format!("5ec00000-0000-4000-8000-{index:012}");
    MachineSpec::named(format!("there-{index}")).uuid(uuid)
}

/// A Node joins whose kubelet knows its ID, labelled with its cloud if there is one to name.
fn join(lab: &Lab, machine: &Machine, cloud: Option<&str>) {
    let labels = cloud.map(|cloud| json!({"cloudkeel.dev/cloud": cloud}));
    let id = format!("local://demo/{}", machine.id);
    let node = json!({"metadata": {"labels": labels}, "spec": {"providerID": id},
                      "status": {"nodeInfo": {"systemUUID": machine.uuid}}});
    lab.add_node_with(&machine.name, "True", &node);
    lab.live(&machine.name);
}

impl Projects {
    /// Some Nodes of the first project are cut off from the cluster, while their machines run.
    fn cut_off(&self, indexes: impl IntoIterator<Item = usize>) {
        indexes
            .into_iter()
            .for_each(|index| self.lab.silence(index));
    }
}

#[tokio::test(start_paused = true)]
async fn the_token_of_the_other_project_costs_no_live_node_that_is_cut_off() {
    for (case, overlap, labelled) in [
        ("IDs of their own", false, false),
        ("IDs of their own, labelled", false, true),
        ("overlapping IDs, labelled", true, true),
        ("overlapping IDs", true, false),
    ] {
        for cut_off in [1, 2, 4] {
            let projects = projects(overlap, labelled).await;
            projects.is_swapped.store(true, Ordering::SeqCst);
            projects.cut_off(0..cut_off);
            projects.lab.pass(TEN_MINUTES).await;
            assert_eq!(projects.lab.deleted(), [""; 0], "{case}, {cut_off} cut off");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_its_own_project_did_not_list_yet_does_not_confirm_the_other() {
    let projects = projects(false, false).await;
    let new = projects.other.add_machine(machine_there(4));
    join(&projects.lab, &new.unwrap(), None);
    projects.is_swapped.store(true, Ordering::SeqCst);
    projects.cut_off(0..3);
    projects.lab.pass(TEN_MINUTES).await;
    assert_eq!(projects.lab.deleted(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_exchanged_for_each_other_cost_no_live_node_that_is_cut_off() {
    let projects = projects(false, false).await;
    let new = projects.other.add_machine(machine_there(4));
    join(&projects.lab, &new.unwrap(), None);
    projects.is_swapped.store(true, Ordering::SeqCst);
    projects.is_exchanged.store(true, Ordering::SeqCst);
    projects.cut_off(0..4);
    projects.lab.pass(MINUTE * 30).await;
    assert_eq!(projects.lab.deleted(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_list_with_the_token_of_another_attributes_no_node_later() {
    for silence_first in [true, false] {
        for seconds in [1, 60, 200] {
            let projects = projects(false, false).await;
            let lab = &projects.lab;
            projects.is_exchanged.store(true, Ordering::SeqCst);
            lab.pass(MINUTE * 12).await;
            // Both tokens change: the one is its own again, and the other is that of a third project.
            if silence_first {
                projects.cut_off(0..4);
            }
            lab.pass(SECOND * seconds).await;
            projects.is_exchanged.store(false, Ordering::SeqCst);
            lab.cloud.add_project("third");
            let (token, everything) = (SimulatedCloud::TOKEN, Permission::ReadWrite);
            lab.cloud.grant(token, "third", everything);
            if !silence_first {
                projects.cut_off(0..4);
            }
            lab.pass(MINUTE * 20).await;
            assert_eq!(lab.deleted(), [""; 0], "{silence_first}, {seconds} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_never_follows_the_machine_of_its_number_in_the_other_project() {
    let projects = projects(true, true).await;
    let lab = &projects.lab;
    let (name, number) = (lab.name(0), lab.machines[0].id);
    let addresses = || lab.api.world().node(name).unwrap()["status"]["addresses"].clone();
    let before = addresses();
    let theirs = MachineAddress::private([10, 9, 9, 9].into());
    projects.other.set_addresses(number, vec![theirs]).unwrap();
    projects.other.power_off(number).unwrap();
    projects.is_swapped.store(true, Ordering::SeqCst);
    projects.cut_off([0]);
    lab.pass(MINUTE * 12).await;
    assert_eq!(addresses(), before);
    let shutdown = "node.cloudprovider.kubernetes.io/shutdown";
    assert!(!lab.taints(0).contains(&shutdown.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn nodes_of_the_project_that_is_in_order_go_all_the_same() {
    for labelled in [false, true] {
        let projects = projects(false, labelled).await;
        let lab = &projects.lab;
        projects.is_swapped.store(true, Ordering::SeqCst);
        projects.cut_off([0]);
        projects.other.destroy(lab.machines[4].id).unwrap();
        lab.silence(4);
        lab.pass(MINUTE * 2).await;
        assert_eq!(lab.deleted(), [lab.name(4)], "labelled: {labelled}");
        projects.is_swapped.store(false, Ordering::SeqCst);
        lab.destroy(0);
        lab.pass(MINUTE * 3).await;
        assert_eq!(
            lab.deleted(),
            [lab.name(0), lab.name(4)],
            "labelled: {labelled}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_project_without_any_node_does_not_stop_the_other() {
    let empty = SimulatedCloud::new(Settings::default());
    let mut lab = Lab::beside(Settings::default(), &[&empty]).await;
    lab.add_machines(5);
    for machine in &lab.machines {
        lab.add_node(&machine.name, "True");
    }
    lab.pass(MINUTE * 12).await;
    lab.lose([0]);
    lab.pass(MINUTE * 2).await;
    assert_eq!(lab.deleted(), [lab.name(0)]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_the_same_name_in_another_project_is_not_taken_while_no_node_is_ready() {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let mut lab = Lab::settled_on(settings, 2).await;
    lab.cloud.add_project("other");
    let name = lab.name(0).to_owned();
    let uuid = "5ec00000-0000-4000-8000-000000000000";
    let namesake = MachineSpec::named(&name).in_project("other").uuid(uuid);
    lab.cloud.add_machine(namesake).unwrap();
    lab.silence(1);
    let see = |lab: &Lab, project: &str| {
        let everything = Permission::ReadWrite;
        lab.cloud.grant(SimulatedCloud::TOKEN, project, everything);
    };
    see(&lab, "other");
    lab.destroy(0);
    lab.api.world().remove(&name);
    lab.machines[0] = lab.cloud.add_machine(MachineSpec::named(&name)).unwrap();
    let mut node = json!({"status": {"nodeInfo": {"systemUUID": lab.machines[0].uuid}}});
    json_patch::merge(&mut node, &tainted());
    lab.add_new_node_with(&name, "True", &node);
    lab.pass(MINUTE * 3).await;
    assert!(lab.is_tainted(&name), "its machine is not seen");
    assert_eq!(lab.deleted(), [""; 0], "the other Node exists");
    see(&lab, SimulatedCloud::PROJECT);
    lab.pass(MINUTE * 3).await;
    assert!(!lab.is_tainted(&name));
    let id = &lab.api.world().node(&name).unwrap()["spec"]["providerID"];
    assert_eq!(*id, format!("local://demo/{}", lab.machines[0].id));
}

/// One Node is left, whose machine is rebuilt under its name while the credential is that of another project, which has
/// a machine of that name. System UUIDs are right, or made up by the cloud.
async fn rebuilt_in_another_project(makes_uuids_up: bool) -> Lab {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let mut lab = Lab::empty(settings).await;
    lab.cloud.add_project("other");
    let join = |lab: &Lab, uuid: &str| {
        let made_up = "5ec00000-0000-4000-8000-000000000001";
        let uuid = if makes_uuids_up { made_up } else { uuid };
        let mut node = json!({"status": {"nodeInfo": {"systemUUID": uuid}}});
        json_patch::merge(&mut node, &tainted());
        lab.add_new_node_with("sole", "True", &node);
    };
    let add = |lab: &Lab| lab.cloud.add_machine(MachineSpec::named("sole")).unwrap();
    let first = add(&lab);
    join(&lab, &first.uuid);
    lab.pass(MINUTE * 10).await;
    assert!(!lab.is_tainted("sole"));
    let uuid = "5ec00000-0000-4000-8000-000000000000";
    let namesake = MachineSpec::named("sole").in_project("other").uuid(uuid);
    lab.cloud.add_machine(namesake).unwrap();
    let everything = Permission::ReadWrite;
    lab.cloud.grant(SimulatedCloud::TOKEN, "other", everything);
    lab.cloud.destroy(first.id).unwrap();
    lab.api.world().remove("sole");
    lab.machines = vec![add(&lab)];
    join(&lab, &lab.machines[0].uuid);
    lab.pass(MINUTE * 3).await;
    lab
}

#[tokio::test(start_paused = true)]
async fn the_last_machine_is_not_taken_for_its_namesake_in_another_project() {
    let lab = rebuilt_in_another_project(false).await;
    assert!(lab.is_tainted("sole"), "UUIDs were right until now");
    let (token, project) = (SimulatedCloud::TOKEN, SimulatedCloud::PROJECT);
    lab.cloud.grant(token, project, Permission::ReadWrite);
    lab.pass(MINUTE * 3).await;
    assert!(!lab.is_tainted("sole"));
    let id = &lab.api.world().node("sole").unwrap()["spec"]["providerID"];
    assert_eq!(*id, format!("local://demo/{}", lab.machines[0].id));
}

#[tokio::test(start_paused = true)]
async fn uuids_that_the_cloud_makes_up_do_not_keep_the_last_machine_waiting() {
    let lab = rebuilt_in_another_project(true).await;
    assert!(!lab.is_tainted("sole"), "nothing contradicts it");
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_uuid_the_cloud_made_up_is_taken_by_its_name() {
    let lab = Lab::empty(Settings::default()).await;
    lab.cloud.add_machine(MachineSpec::named("plain")).unwrap();
    let mut node =
        json!({"status": {"nodeInfo": {"systemUUID": "5ec00000-0000-4000-8000-000000000001"}}});
    json_patch::merge(&mut node, &tainted());
    lab.add_new_node_with("plain", "True", &node);
    lab.pass(MINUTE).await;
    assert!(!lab.is_tainted("plain"), "nothing contradicts it");
}
