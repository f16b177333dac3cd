//! What goes wrong with vCenters, with the whole program at work: no Node is deleted for it.

use cloudkeel_testkit::cluster::{eventually, wait_for_node_gone};
use cloudkeel_testkit::either_api::EitherApi;
use cloudkeel_testkit::vcsim::{NewVm, SimulatedVCenter, VCenterSpec};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::{Value, json};

use crate::cluster::{
    FAST_DELETION, events, register, report_ready, stop_reporting, wait_for_initialized,
};
use crate::harness::{DEADLINE, Manager, World};

struct Site {
    world: World,
    vcenters: [SimulatedVCenter; 2],
    nodes: Vec<(String, NewVm)>,
    manager: Manager,
}

impl Site {
    /// Three Nodes in each of two vCenters.
    async fn new() -> Self {
        let world = World::on(EitherApi::Embedded).await;
        let vcenter = || SimulatedVCenter::new(VCenterSpec::default());
        let vcenters = [vcenter().await, vcenter().await].map(|made| made.expect("a vCenter"));
        let mut entries = serde_json::Map::new();
        for (number, vcenter) in vcenters.iter().enumerate() {
            let entry = json!({"server": vcenter.host(), "port": vcenter.port(), "insecureFlag": true,
                               "user": "user", "password": "pass"});
            entries.insert(format!("vc{number}"), entry);
        }
        let file = json!({"vcenter": entries}).to_string();
        std::fs::write(world.config(), file).expect("the file is written");
        let flags = [&FAST_DELETION[..], &["--cloud-provider=vsphere"]].concat();
        let manager = world.start(&flags);
        let mut nodes = Vec::new();
        for (number, vcenter) in vcenters.iter().enumerate() {
            for index in 0..3 {
                let name = format!("node-{number}-{index}");
                let vm = vcenter
                    .add_vm(&name, &[&format!("10.{number}.0.{}", index + 1)])
                    .await;
                register(&world, &name).await;
                nodes.push((name, vm.expect("a virtual machine")));
            }
        }
        for (name, _) in &nodes {
            wait_for_initialized(&world, name).await;
            report_ready(&world, name).await;
        }
        Self {
            world,
            vcenters,
            nodes,
            manager,
        }
    }

    async fn set(&self, vcenter: usize, faults: Value) {
        let set = self.vcenters[vcenter].set_faults(faults).await;
        set.expect("the fault is set");
    }

    /// How often a vCenter was called for anything.
    async fn calls(&self, vcenter: usize) -> u64 {
        let calls = self.vcenters[vcenter].calls().await.expect("calls");
        calls.values().sum()
    }

    /// Lets all kubelets fall silent, and waits until vCenters were asked about their Nodes several times.
    async fn questions(&self, asked: usize) {
        for (name, _) in &self.nodes {
            stop_reporting(&self.world, name).await;
        }
        let before = self.calls(asked).await;
        eventually("several questions", DEADLINE, || async {
            self.calls(asked).await >= before + 12
        })
        .await;
    }

    async fn all_are_kept(&self, case: &str) {
        let all: Api<Node> = Api::all(self.world.client.clone());
        for (name, _) in &self.nodes {
            let node = all.get_opt(name).await.expect("an answer");
            assert!(node.is_some(), "{case}: {name}: {}", self.manager.log());
            let deletions = events(&self.world.client, "default", name, "DeletingNode").await;
            assert_eq!(deletions, [], "{case}: {name}");
        }
        for (name, _) in &self.nodes {
            report_ready(&self.world, name).await;
        }
    }
}

#[tokio::test]
#[ignore = "needs vcsim: cargo xtask test --tier vsphere"]
async fn no_fault_of_a_vcenter_deletes_a_node_and_a_deleted_machine_does() {
    let mut site = Site::new().await;
    // That nothing is deleted later on means something only if a deletion can happen.
    let (gone, vm) = site.nodes.remove(5);
    let destroyed = site.vcenters[1].destroy(&vm.id).await;
    destroyed.expect("it is deleted");
    stop_reporting(&site.world, &gone).await;
    wait_for_node_gone(&site.world.client, &gone, DEADLINE).await;
    site.all_are_kept("the machine of another was deleted")
        .await;

    site.set(1, json!({"down": true})).await;
    site.questions(1).await;
    site.all_are_kept("one of two vCenters is down").await;
    site.set(1, json!({"down": false, "expire": true})).await;

    let (name, vm) = site.nodes[3].clone();
    let moved = site.vcenters[1]
        .change(&vm.id, json!({"host": "DC0_C0_H1"}))
        .await;
    moved.expect("it moves");
    let twin = json!({"name": "template", "hostName": name, "off": true, "template": true});
    site.vcenters[1].add(twin).await.expect("a template");
    site.questions(1).await;
    site.all_are_kept("moved, and a template of the same name")
        .await;

    let logins = |calls: std::collections::BTreeMap<String, u64>| calls["Login"];
    let before = logins(site.vcenters[0].calls().await.expect("calls"));
    site.set(0, json!({"password": "another", "expire": true}))
        .await;
    // The login is refused once and then left alone, so the other one shows that questions are asked.
    site.questions(1).await;
    site.all_are_kept("login refused").await;
    let after = logins(site.vcenters[0].calls().await.expect("calls"));
    assert_eq!(after, before + 1, "it was refused");
    site.manager.signal("TERM");
    assert_eq!(site.manager.ended().await.code(), Some(0));
}
