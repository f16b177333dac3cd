//! Machines that come and go all the time: what is proven gone goes soon, whatever else is going on.

use std::collections::BTreeMap;

use cloudkeel_testkit::simulated_cloud::{Fault, MachineSpec, Operation};
use serde_json::json;
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE, SECOND, tainted};

/// How long a Node stays Ready after its machine went.
const STILL_READY: Duration = Duration::from_secs(45);
const SOON: Duration = Duration::from_secs(90);

/// A cluster in which machines are replaced.
struct Churn {
    lab: Lab,
    /// Nodes whose machines went, when that was, and whether the cluster has noticed.
    lost: BTreeMap<String, (Duration, Option<Duration>)>,
    next: usize,
}

impl Churn {
    /// So many Nodes, all of whose kubelets live.
    async fn settled(nodes: usize) -> Self {
        let lab = Lab::settled(nodes).await;
        lab.machines
            .iter()
            .for_each(|machine| lab.live(&machine.name));
        Self {
            lab,
            lost: BTreeMap::new(),
            next: 0,
        }
    }

    /// The next machine goes, and with it its kubelet.
    fn lose_next(&mut self) {
        let machine = &self.lab.machines[self.next];
        self.next += 1;
        self.lab.cloud.destroy(machine.id).unwrap();
        self.lab.mute(&machine.name);
        self.lost
            .insert(machine.name.clone(), (self.lab.now(), None));
    }

    /// The same, and another machine takes its place.
    fn replace_next(&mut self) {
        self.lose_next();
        let name = format!("newcomer-{:03}", self.next);
        let spec = MachineSpec::named(&name);
        let machine = self.lab.cloud.add_machine(spec).unwrap();
        self.lab.add_new_node_with(&name, "True", &tainted());
        self.lab.live(&name);
        self.lab.machines.push(machine);
    }

    /// Time passes, and the cluster notices which kubelets are silent.
    async fn pass(&mut self, time: Duration) {
        let end = self.lab.now() + time;
        while self.lab.now() < end {
            let left = end.saturating_sub(self.lab.now());
            self.lab.pass(SECOND.min(left)).await;
            let now = self.lab.now();
            for (name, (lost, noticed)) in &mut self.lost {
                if noticed.is_none() && now >= *lost + STILL_READY {
                    self.lab.set_ready_of(name, "Unknown");
                    *noticed = Some(now);
                }
            }
        }
    }

    /// How long after its kubelet was noticed to be silent each lost Node was there.
    fn stayed(&self) -> BTreeMap<&str, Option<Duration>> {
        let deletions: BTreeMap<_, _> = self.lab.api.deletions().into_iter().collect();
        let lost = self.lost.iter();
        lost.map(|(name, (_, noticed))| {
            let deleted = deletions.get(name);
            let stayed = deleted
                .zip(*noticed)
                .map(|(at, noticed)| at.saturating_sub(noticed));
            (name.as_str(), stayed)
        })
        .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_replaced_one_after_the_other_go_soon_after_they_are_not_ready() {
    let mut churn = Churn::settled(12).await;
    for _ in 0..8 {
        churn.lose_next();
        churn.pass(SECOND * 30).await;
    }
    churn.pass(MINUTE * 3).await;
    let stayed = churn.stayed();
    assert_eq!(stayed.len(), 8);
    for (name, stayed) in stayed {
        assert!(stayed.is_some_and(|it| it <= SOON), "{name}: {stayed:?}");
    }
    assert_eq!(churn.lab.deleted().len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_spot_pool_that_replaces_a_machine_every_few_seconds_keeps_no_dead_nodes() {
    let mut churn = Churn::settled(100).await;
    for _ in 0..60 {
        churn.replace_next();
        churn.pass(SECOND * 5).await;
    }
    churn.pass(MINUTE * 3).await;
    for (name, stayed) in churn.stayed() {
        assert!(stayed.is_some_and(|it| it <= SOON), "{name}: {stayed:?}");
    }
    assert_eq!(churn.lab.deleted().len(), 60);
    assert!(!churn.lab.are_deletions_stopped());
}

#[tokio::test(start_paused = true)]
async fn dead_nodes_of_a_storm_are_gone_minutes_after_it() {
    let mut churn = Churn::settled(100).await;
    let cloud = churn.lab.cloud.clone();
    for round in 0..250 {
        churn.replace_next();
        // A fault that passes, now and then.
        if round % 20 == 0 {
            for operation in [Operation::GetMachine, Operation::ListMachines] {
                cloud.faults().once(operation, Fault::status(503));
            }
        }
        churn.pass(Duration::from_millis(1200)).await;
    }
    churn.pass(MINUTE * 5).await;
    let left: Vec<_> = churn
        .stayed()
        .into_iter()
        .filter(|(_, it)| it.is_none())
        .collect();
    assert_eq!(left, [], "of 250");
    assert_eq!(churn.lab.api.world().nodes().len(), 100);
    let [_, lifecycle] = churn.lab.reports();
    assert_eq!(lifecycle.deletions[0].limiter.waiting, 0, "{lifecycle:?}");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_lists_show_late_do_not_hold_up_others() {
    let lab = Lab::settled(20).await;
    lab.cloud.change_settings(|s| {
        s.history = MINUTE * 60;
        s.consistency.list = MINUTE * 2;
    });
    lab.pass(MINUTE * 3).await;
    let machine = lab
        .cloud
        .add_machine(MachineSpec::named("newcomer"))
        .unwrap();
    let id = json!({"spec": {"providerID": format!("local://demo/{}", machine.id)}});
    lab.add_node_with("newcomer", "True", &id);
    lab.live("newcomer");
    lab.lose([3]);
    lab.pass(MINUTE * 4).await;
    assert_eq!(lab.deleted(), [lab.name(3)]);
    assert!(!lab.are_deletions_stopped());
}
