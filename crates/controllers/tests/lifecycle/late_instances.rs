//! Machines that the cloud shows late.

use cloudkeel_testkit::simulated_cloud::LocalId;
use cloudkeel_testkit::simulated_cloud::{
    Consistency, MachineSpec, Permission, Settings, SimulatedCloud,
};
use serde_json::json;
use tokio::time::Duration;

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES, tainted};
use crate::support::gate::What;

const fn lag(list: Duration, get: Duration) -> Consistency {
    Consistency { list, get }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_that_the_cloud_shows_late_is_initialised_and_not_deleted() {
    let cases = [
        ("lists lag", lag(MINUTE * 3, Duration::ZERO)),
        ("single reads lag", lag(Duration::ZERO, MINUTE * 3)),
        ("both lag a little", Consistency::both(SECOND * 20)),
        ("both lag a lot", Consistency::both(MINUTE * 4)),
    ];
    for (case, consistency) in cases {
        for knows_its_id in [false, true] {
            let lab = Lab::settled(10).await;
            lab.pass(TEN_MINUTES).await;
            lab.api.forget();
            lab.cloud.change_settings(|s| s.consistency = consistency);
            let machine = lab
                .cloud
                .add_machine(MachineSpec::named("newcomer"))
                .unwrap();
            let mut node = tainted();
            if knows_its_id {
                let id = LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id();
                node["spec"]["providerID"] = json!(id);
            }
            lab.add_new_node_with("newcomer", "False", &node);
            lab.pass(TEN_MINUTES).await;
            let case = format!("{case}, knows its ID: {knows_its_id}");
            assert_eq!(lab.written(What::Delete), 0, "{case}");
            assert!(!lab.is_tainted("newcomer"), "{case}");
            lab.pass(TEN_MINUTES).await;
            assert_eq!(lab.written(What::Delete), 0, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_never_initialised_is_left_alone_for_the_grace_period() {
    let lab = Lab::settled(10).await;
    let mut node = tainted();
    let id = LocalId::new(SimulatedCloud::PROJECT, 9999).provider_id();
    node["spec"]["providerID"] = json!(id);
    lab.add_new_node_with("newcomer", "False", &node);
    lab.pass(SECOND * 299).await;
    assert_eq!(lab.written(What::Delete), 0);
    lab.pass(MINUTE * 3).await;
    assert_eq!(lab.deleted(), ["newcomer"]);
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_is_not_taken_for_the_machine_of_its_name_in_another_project() {
    for (case, newcomers) in [("one, looked up", 1), ("many, listed", 8)] {
        let mut settings = Settings::default();
        settings.features.tells_project = false;
        let mut lab = Lab::settled_on(settings, 3).await;
        lab.cloud.add_project("other");
        let names: Vec<String> = (0..newcomers).map(|i| format!("new-{i}")).collect();
        for name in &names {
            let namesake = MachineSpec::named(name).in_project("other");
            lab.cloud.add_machine(namesake).unwrap();
        }
        let swap = |lab: &Lab, project| {
            let token = SimulatedCloud::TOKEN;
            lab.cloud.grant(token, project, Permission::ReadWrite);
        };
        swap(&lab, "other");
        for name in &names {
            lab.add_node(name, "False");
        }
        lab.pass(MINUTE * 5).await;
        for name in &names {
            assert!(lab.is_tainted(name), "{case}: {name}");
        }
        let events = lab.api.events("InitializationDelayed");
        let why = "none of the machines of the 3 Ready Nodes";
        assert!(events[0].message.contains(why), "{case}: {events:?}");
        for name in &names {
            let own = lab.cloud.add_machine(MachineSpec::named(name)).unwrap();
            lab.machines.push(own);
        }
        swap(&lab, SimulatedCloud::PROJECT);
        lab.pass(MINUTE * 3).await;
        for machine in &lab.machines[3..] {
            let node = lab.api.world().node(&machine.name).unwrap();
            let id = LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id();
            assert_eq!(node["spec"]["providerID"], id.as_str(), "{case}");
        }
    }
}
