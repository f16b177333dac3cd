//! Machines that are recreated under their old names. A Node gets the ID of its own machine, never that of
//! the machine before it: `spec.providerID` can never be changed again.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::{
    CloudError, CloudProvider, Existence, InstanceList, Instances, KnownInstance, NodeFacts,
};
use cloudkeel_testkit::simulated_cloud::wire::{Machine, MachineAddress};
use cloudkeel_testkit::simulated_cloud::{
    Consistency, Latency, LocalId, MachineSpec, Settings, SimulatedCloud,
};
use serde_json::{Value, json};
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE, SECOND, tainted};
use crate::support::gate::What;

/// Destroys a machine and deletes its Node; both come back under the same name.
fn recreate(lab: &Lab, machine: &Machine) -> Machine {
    let name = &machine.name;
    lab.cloud.destroy(machine.id).unwrap();
    lab.api.world().remove(name);
    let new = lab.cloud.add_machine(MachineSpec::named(name)).unwrap();
    lab.add_new_node_with(name, "True", &tainted());
    new
}

/// A cloud that takes this long for every answer.
fn answering_after(fixed: Duration) -> Settings {
    Settings {
        latency: Latency {
            fixed,
            ..Latency::default()
        },
        ..Settings::default()
    }
}

fn id_of(machine: &Machine) -> Value {
    json!(LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id())
}

fn has_id_of(lab: &Lab, machine: &Machine, case: &str) {
    let node = lab.api.world().node(&machine.name).unwrap();
    let id = &node["spec"]["providerID"];
    assert_eq!(*id, id_of(machine), "{case}: {}", machine.name);
}

#[tokio::test(start_paused = true)]
async fn nodes_of_recreated_machines_get_the_new_ids() {
    let cases = [
        ("one", 1, Duration::ZERO),
        ("a few", 8, Duration::ZERO),
        ("a few, while a list is fresh", 8, SECOND * 30),
        ("many", 120, SECOND * 30),
    ];
    for (case, count, later) in cases {
        let lab = Lab::settled(count).await;
        lab.pass(later).await;
        let new: Vec<_> = lab.machines.iter().map(|old| recreate(&lab, old)).collect();
        lab.pass(MINUTE).await;
        for machine in &new {
            assert!(!lab.is_tainted(&machine.name), "{case}: {}", machine.name);
            has_id_of(&lab, machine, case);
        }
    }
}

/// A cloud whose lists are on their way for a while.
struct SlowLists(Arc<dyn CloudProvider>);

#[async_trait]
impl Instances for SlowLists {
    async fn list(&self) -> Result<InstanceList, CloudError> {
        let seen = self.0.instances().unwrap().list().await;
        tokio::time::sleep(SECOND * 10).await;
        seen
    }
    async fn find(&self, node: &NodeFacts, known_instance: Option<&KnownInstance>) -> Existence {
        self.0.instances().unwrap().find(node, known_instance).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_while_a_list_is_under_way_is_not_matched_by_that_list() {
    let mut lab = Lab::through(SlowLists).await;
    lab.add_machines(20);
    for machine in &lab.machines {
        lab.add_node(&machine.name, "False");
    }
    lab.pass(SECOND * 5).await;
    assert_eq!(lab.written(What::Write), 0, "the list is under way");
    let new = recreate(&lab, &lab.machines[0]);
    lab.pass(MINUTE * 3).await;
    has_id_of(&lab, &new, "recreated under way");
    for machine in &lab.machines[1..] {
        has_id_of(&lab, machine, "the others");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_id_does_not_follow_the_machine_before_its_own() {
    let lab = Lab::settled(3).await;
    let address = |last: u8| MachineAddress::private([10, 9, 9, last].into());
    let with_address = |last: u8| {
        let machine = lab.cloud.add_machine(MachineSpec::named("plain")).unwrap();
        let addresses = vec![address(last)];
        lab.cloud.set_addresses(machine.id, addresses).unwrap();
        machine
    };
    // A zone that the deprecated label has, so that the Node is looked at as soon as it comes.
    let labels = json!({
        "cloudkeel.dev/cloud": "local", "failure-domain.beta.kubernetes.io/zone": "z",
    });
    let node = json!({"metadata": {"labels": labels}});
    let old = with_address(1);
    lab.add_new_node_with("plain", "True", &node);
    lab.pass(MINUTE * 11).await;
    assert_eq!(lab.written(What::WriteStatus), 1, "its own machine");
    lab.api.forget();
    lab.cloud.destroy(old.id).unwrap();
    with_address(2);
    lab.api.world().remove("plain");
    lab.add_new_node_with("plain", "True", &node);
    lab.pass(MINUTE * 11).await;
    let writes = lab.api.writes();
    let mut written = writes.iter().map(|write| write.body.to_string());
    assert!(
        !written.any(|body| body.contains("10.9.9.1\"")),
        "{writes:?}"
    );
    assert_eq!(lab.written(What::WriteStatus), 1, "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn newcomers_that_come_one_after_the_other_share_lists() {
    let mut lab = Lab::empty(answering_after(Duration::from_millis(20))).await;
    lab.add_machines(400);
    lab.pass(MINUTE).await;
    lab.cloud.reset_calls();
    for machine in &lab.machines {
        lab.add_new_node_with(&machine.name, "False", &tainted());
        lab.pass(Duration::from_millis(5)).await;
    }
    lab.pass(MINUTE).await;
    for machine in &lab.machines {
        has_id_of(&lab, machine, "one after the other");
    }
    let calls = lab.cloud.calls();
    assert!(calls.total() < 100, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_lags_behind_delays_a_recreated_node_and_does_not_mislead_it() {
    for (case, count) in [("one", 1), ("many", 8)] {
        let lab = Lab::empty(Settings::default()).await;
        let join = |name: &str| {
            let machine = lab.cloud.add_machine(MachineSpec::named(name)).unwrap();
            let mut node = tainted();
            node["status"]["nodeInfo"]["systemUUID"] = json!(machine.uuid);
            lab.add_new_node_with(name, "True", &node);
            machine
        };
        let names: Vec<_> = (0..count).map(|number| format!("node-{number}")).collect();
        let old: Vec<_> = names.iter().map(|name| join(name)).collect();
        lab.pass(MINUTE).await;
        let lag = Consistency::both(SECOND * 30);
        lab.cloud.change_settings(|s| s.consistency = lag);
        for machine in &old {
            has_id_of(&lab, machine, case);
            lab.cloud.destroy(machine.id).unwrap();
            lab.api.world().remove(&machine.name);
        }
        let new: Vec<_> = names.iter().map(|name| join(name)).collect();
        lab.pass(SECOND * 29).await;
        assert!(
            lab.is_tainted(&names[0]),
            "{case}: its machine is not known"
        );
        lab.pass(MINUTE * 2).await;
        for machine in &new {
            has_id_of(&lab, machine, case);
        }
    }
}
