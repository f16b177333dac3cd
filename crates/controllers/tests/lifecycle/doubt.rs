//! A picture that makes no sense: nothing is deleted until it does.

use std::time::Duration;

use cloudkeel_testkit::simulated_cloud::{MachineSpec, Permission, Settings, SimulatedCloud};

use crate::lab::{Lab, MINUTE, TEN_MINUTES};
use crate::support::gate::What;

#[tokio::test(start_paused = true)]
async fn when_every_machine_looks_gone_nothing_is_deleted_and_somebody_is_told() {
    for (case, strangers) in [("an empty project", 0), ("machines of others", 3)] {
        let lab = Lab::settled(10).await;
        let spec = |i| MachineSpec::named(format!("stranger-{i}"));
        lab.cloud.add_machines(strangers, spec).unwrap();
        lab.lose(0..10);
        lab.pass(TEN_MINUTES * 3).await;
        assert_eq!(lab.written(What::Delete), 0, "{case}");
        assert!(lab.is_halted(), "{case}");
        let told = lab.api.told("NodeKept");
        assert_eq!(told.len(), 10, "{case}: once for each Node: {told:?}");
        let why = "none of the 10 machines of this cluster is seen";
        assert!(told[0].message.contains(why), "{case}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_halt_ends_by_itself_when_a_machine_is_seen_again() {
    let mut lab = Lab::settled(10).await;
    let spec = MachineSpec::named("stranger");
    lab.cloud.add_machine(spec).unwrap();
    lab.lose(0..10);
    lab.pass(TEN_MINUTES).await;
    assert!(lab.is_halted());
    let gone: Vec<_> = lab.machines.iter().map(|m| m.name.clone()).collect();
    let newcomer = lab.cloud.add_machine(MachineSpec::named("newcomer"));
    lab.machines = vec![newcomer.unwrap()];
    lab.add_node("newcomer", "True");
    lab.pass(MINUTE * 5).await;
    assert_eq!(lab.deleted(), gone);
    assert!(!lab.is_halted());
}

#[tokio::test(start_paused = true)]
async fn a_ready_node_without_a_machine_stops_all_deletions_until_it_is_not_ready_either() {
    let lab = Lab::settled(10).await;
    lab.destroy(0);
    lab.lose([1, 2]);
    lab.pass(TEN_MINUTES).await;
    assert_eq!(lab.written(What::Delete), 0);
    assert!(lab.is_halted());
    let told = lab.api.told("NodeKept");
    let why = format!(
        "the machine of {}, which is Ready, looks gone too",
        lab.name(0)
    );
    for index in [1, 2] {
        let of_it: Vec<_> = told.iter().filter(|t| t.about == lab.name(index)).collect();
        assert_eq!(of_it.len(), 1, "{told:?}");
        assert!(of_it[0].message.contains(&why), "{told:?}");
    }
    lab.silence(0);
    lab.pass(MINUTE * 3).await;
    assert_eq!(lab.deleted(), [lab.name(0), lab.name(1), lab.name(2)]);
    assert!(!lab.is_halted());
}

#[tokio::test(start_paused = true)]
async fn a_halt_ends_when_people_have_removed_what_made_no_sense() {
    let lab = Lab::settled(10).await;
    lab.destroy(0);
    lab.lose([1]);
    lab.pass(TEN_MINUTES).await;
    assert!(lab.is_halted());
    for index in [0, 1] {
        lab.api.world().remove(lab.name(index));
    }
    lab.pass(MINUTE * 2).await;
    assert!(!lab.is_halted(), "no suspect is left to end it");
}

#[tokio::test(start_paused = true)]
async fn what_another_project_said_does_not_count_when_the_right_one_is_back() {
    // A call takes a while, so the credential may come back between the answer and its judgement.
    let latency = Duration::from_secs(3);
    for moment in 0..40_u32 {
        let mut settings = Settings::default();
        settings.features.tells_project = false;
        let lab = Lab::settled_on(settings, 4).await;
        lab.cloud
            .change_settings(|settings| settings.latency.fixed = latency);
        lab.cloud.add_project("other");
        let stranger = MachineSpec::named("stranger").in_project("other");
        lab.cloud.add_machine(stranger).unwrap();
        let swap = |project| {
            let token = SimulatedCloud::TOKEN;
            lab.cloud.grant(token, project, Permission::ReadWrite);
        };
        swap("other");
        lab.silence(0);
        lab.pass(MINUTE * 2 + latency / 2 * moment).await;
        assert!(lab.is_halted(), "{moment}");
        swap(SimulatedCloud::PROJECT);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [""; 0], "{moment}");
    }
}
