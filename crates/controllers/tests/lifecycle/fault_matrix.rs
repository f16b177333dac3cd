//! Every fault of a cloud, on every way to ask: no Node whose machine exists is ever deleted.

use cloudkeel_testkit::simulated_cloud::LocalId;
use cloudkeel_testkit::simulated_cloud::wire::ErrorCode;
use cloudkeel_testkit::simulated_cloud::{
    Fault, FaultMatch, MachineSpec, Operation, Permission, Settings, SimulatedCloud,
};
use serde_json::json;

use crate::lab::{Lab, MINUTE, SECOND, TEN_MINUTES};

fn faults() -> Vec<(&'static str, Fault)> {
    let not_from_the_cloud = Fault::Status {
        status: 404,
        code: Some(ErrorCode::Unavailable),
        retry_after_seconds: None,
    };
    vec![
        ("401", Fault::status(401)),
        ("403", Fault::status(403)),
        ("404", Fault::status(404)),
        ("404 without the code for it", not_from_the_cloud),
        ("429 with Retry-After", Fault::too_many_calls(Some(30))),
        ("429 without Retry-After", Fault::too_many_calls(None)),
        ("500", Fault::status(500)),
        ("503", Fault::status(503)),
        ("no answer", Fault::NoAnswer),
        ("broken connection", Fault::BrokenBefore),
        ("lost answer", Fault::BrokenAfter),
        ("empty list", Fault::EmptyList),
        ("truncated page", Fault::TruncatedPage),
        ("missing next link", Fault::LostNextPage),
        ("malformed JSON", Fault::MalformedJson),
        ("HTML", Fault::Html),
        ("empty body", Fault::EmptyBody),
        ("slightly stale", Fault::Stale { by: SECOND * 10 }),
        ("very stale", Fault::Stale { by: MINUTE * 60 }),
        (
            "another project",
            Fault::OtherProject {
                project: "other".into(),
            },
        ),
    ]
}

/// Where a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    List,
    Get,
    /// A machine that lists do not show is asked for by itself.
    GetWhileListsAreEmpty,
    Any,
}

impl Place {
    const ALL: [Self; 4] = [
        Self::List,
        Self::Get,
        Self::GetWhileListsAreEmpty,
        Self::Any,
    ];

    fn strike(self, cloud: &SimulatedCloud, fault: &Fault) {
        let always = |on: FaultMatch| {
            cloud.faults().always(on, fault.clone());
        };
        match self {
            Self::List => always(Operation::ListMachines.into()),
            Self::Get => always(Operation::GetMachine.into()),
            Self::GetWhileListsAreEmpty => {
                always(Operation::GetMachine.into());
                let lists = Operation::ListMachines;
                cloud.faults().always(lists, Fault::EmptyList);
            }
            Self::Any => always(FaultMatch::any()),
        }
    }
}

/// Ten Nodes with machines, and another project with one.
async fn lab() -> Lab {
    let lab = Lab::settled(10).await;
    lab.cloud.add_project("other");
    let stranger = MachineSpec::named("stranger").in_project("other");
    lab.cloud.add_machine(stranger).unwrap();
    lab
}

#[tokio::test(start_paused = true)]
async fn no_fault_costs_a_node_whose_machine_exists_neither_while_it_lasts_nor_after() {
    for (name, fault) in faults() {
        for place in Place::ALL {
            let lab = lab().await;
            place.strike(&lab.cloud, &fault);
            (0..3).for_each(|index| lab.silence(index));
            lab.pass(TEN_MINUTES).await;
            assert_eq!(lab.deleted(), [""; 0], "{name} on {place:?}");
            // A single machine is asked for only if lists do not show it.
            let met = lab.cloud.call_log().iter().any(|call| call.fault.is_some());
            assert!(met || place == Place::Get, "{name} on {place:?}");
            lab.cloud.faults().clear();
            lab.pass(TEN_MINUTES).await;
            assert_eq!(lab.deleted(), [""; 0], "{name} on {place:?}, cleared");
            assert_eq!(lab.api.world().nodes().len(), 10, "{name} on {place:?}");
            assert!(!lab.are_deletions_stopped(), "{name} on {place:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn once_a_fault_is_over_only_the_node_whose_machine_is_gone_is_deleted() {
    for (name, fault) in faults() {
        for place in Place::ALL {
            let lab = lab().await;
            place.strike(&lab.cloud, &fault);
            (0..3).for_each(|index| lab.silence(index));
            lab.destroy(0);
            lab.pass(TEN_MINUTES).await;
            lab.cloud.faults().clear();
            lab.pass(MINUTE * 5).await;
            assert_eq!(lab.deleted(), [lab.name(0)], "{name} on {place:?}");
        }
    }
}

/// Ten Nodes that lists show, and three silent newcomers that lists do not show for the next half hour.
async fn lab_with_hidden_newcomers() -> Lab {
    let mut lab = lab().await;
    let half_an_hour = MINUTE * 30;
    lab.cloud.change_settings(|s| s.history = half_an_hour * 4);
    lab.pass(half_an_hour + MINUTE).await;
    lab.cloud
        .change_settings(|s| s.consistency.list = half_an_hour);
    let spec = |i| MachineSpec::named(format!("newcomer-{i}"));
    lab.machines = lab.cloud.add_machines(3, spec).unwrap();
    for machine in &lab.machines {
        let id = LocalId::new(SimulatedCloud::PROJECT, machine.id).provider_id();
        let node = json!({"spec": {"providerID": id}});
        lab.add_node_with(&machine.name, "True", &node);
    }
    lab.pass(MINUTE).await;
    lab.cloud.reset_calls();
    lab
}

#[tokio::test(start_paused = true)]
async fn no_fault_of_a_look_up_costs_a_node_that_lists_do_not_show() {
    // With these, look-up and list agree that there is no such machine: nothing else can show it.
    let agreeing = ["404", "very stale"];
    for (name, fault) in faults() {
        if agreeing.contains(&name) {
            continue;
        }
        let lab = lab_with_hidden_newcomers().await;
        Place::Get.strike(&lab.cloud, &fault);
        (0..3).for_each(|index| lab.silence(index));
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [""; 0], "{name}");
        let met = lab.cloud.call_log().iter().any(|call| call.fault.is_some());
        assert!(met, "{name}");
        lab.cloud.faults().clear();
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [""; 0], "{name}, cleared");
    }
}

#[tokio::test(start_paused = true)]
async fn the_token_of_another_project_costs_no_node() {
    for (name, strangers, tells) in [
        ("empty project", 0, true),
        ("busy project", 5, true),
        ("empty project of a cloud that does not tell", 0, false),
        ("busy project of a cloud that does not tell", 5, false),
    ] {
        let mut settings = Settings::default();
        settings.features.tells_project = tells;
        let lab = Lab::settled_on(settings, 10).await;
        lab.cloud.add_project("other");
        let spec = |i| MachineSpec::named(format!("stranger-{i}")).in_project("other");
        lab.cloud.add_machines(strangers, spec).unwrap();
        let swap = |project| {
            let token = SimulatedCloud::TOKEN;
            lab.cloud.grant(token, project, Permission::ReadWrite);
        };
        swap("other");
        (0..3).for_each(|index| lab.silence(index));
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [""; 0], "{name}");
        assert!(lab.are_deletions_stopped(), "{name}");
        assert_eq!(lab.api.events("NodeKept").len(), 3, "{name}");
        swap(SimulatedCloud::PROJECT);
        lab.pass(TEN_MINUTES).await;
        assert_eq!(lab.deleted(), [""; 0], "{name}, swapped back");
        assert!(!lab.are_deletions_stopped(), "{name}, swapped back");
        lab.destroy(0);
        lab.pass(MINUTE * 5).await;
        assert_eq!(lab.deleted(), [lab.name(0)], "{name}, really gone");
    }
}
