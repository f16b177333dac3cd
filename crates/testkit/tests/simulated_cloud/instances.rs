//! Machines through the provider.

use std::time::Duration;

use cloudkeel_api::{
    AddressKind, Doubt, ErrorKind, Evidence, Existence, InstanceState, Match, NodeFacts, Shared,
};
use cloudkeel_provider_local::wire::{MachineAddress, MachineState};
use cloudkeel_testkit::simulated_cloud::{
    Consistency, Fault, MachineSpec, Operation, Permission, Settings, SimulatedCloud,
};
use tokio::time::advance;

use crate::support::{Lab, SECOND, node_of};

#[tokio::test(start_paused = true)]
async fn a_list_shows_every_machine_with_all_that_a_node_is_given() {
    let lab = Lab::with(120).await;
    let spec = MachineSpec::named("db")
        .hostname("db-0.internal")
        .size("xl")
        .zone("sim-1-b")
        .private([10, 9, 9, 9].into())
        .public([192, 0, 2, 9].into())
        .label("local.cloudkeel.dev/rack", "r1")
        .label("team", "a")
        .state(MachineState::Off);
    let machine = lab.cloud.add_machine(spec).unwrap();
    let list = lab.instances().list().await.unwrap();
    assert_eq!(list.instances().len(), 121);
    assert!(list.is_complete());
    assert_eq!(lab.cloud.calls().of(Operation::ListMachines), 3);

    let instance = list.get(&node_of(&machine).provider_id.unwrap()).unwrap();
    assert_eq!(instance.id.as_str(), format!("local://demo/{}", machine.id));
    assert_eq!(instance.state, InstanceState::ShutDown);
    assert_eq!(instance.instance_type.as_deref(), Some("xl"));
    assert_eq!(instance.zone.as_deref(), Some("sim-1-b"));
    assert_eq!(instance.region.as_deref(), Some("sim-1"));
    let addresses: Vec<_> = instance
        .addresses
        .iter()
        .map(|a| (a.kind, a.address.as_str()))
        .collect();
    assert_eq!(
        addresses,
        [
            (AddressKind::Hostname, "db-0.internal"),
            (AddressKind::InternalIp, "10.9.9.9"),
            (AddressKind::ExternalIp, "192.0.2.9"),
        ]
    );
    let labels: Vec<_> = instance.labels.keys().map(String::as_str).collect();
    assert_eq!(
        labels,
        ["local.cloudkeel.dev/rack"],
        "labels of people stay in the cloud"
    );
}

#[tokio::test(start_paused = true)]
async fn states_are_distinguished() {
    let lab = Lab::with(1).await;
    let id = lab.machines[0].id;
    for (state, expected) in [
        (MachineState::Running, InstanceState::Running),
        (MachineState::Starting, InstanceState::Changing),
        (MachineState::Stopping, InstanceState::Changing),
        (MachineState::Off, InstanceState::ShutDown),
    ] {
        lab.cloud
            .edit_machine(id, |machine| machine.state = state)
            .unwrap();
        let found = lab.instances().find(&lab.node(0), None).await;
        assert_eq!(found.instance().unwrap().state, expected, "{state:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_destroyed_machine_is_gone_with_proof_from_two_questions() {
    let lab = Lab::with(2).await;
    let known_instance = lab.known_instance_besides(0).await;
    lab.cloud.destroy(lab.machines[0].id).unwrap();
    lab.cloud.reset_calls();
    let found = lab
        .instances()
        .find(&lab.node(0), known_instance.as_ref())
        .await;
    let Existence::Gone(proof) = found else {
        panic!("{found:?}");
    };
    assert_eq!(Some(proof.machine()), lab.node(0).provider_id.as_ref());
    let Evidence::NoSuchMachine {
        known_instance,
        request_id,
        ..
    } = proof.evidence()
    else {
        panic!("{proof}");
    };
    assert_eq!(Some(known_instance), lab.node(1).provider_id.as_ref());
    assert!(request_id.as_deref().unwrap().starts_with("req-"));
    let calls = lab.cloud.calls();
    assert_eq!(calls.of(Operation::GetMachine), 1);
    assert_eq!(calls.of(Operation::ListMachines), 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_fresh_sighting_of_another_machine_nothing_is_gone() {
    let lab = Lab::with(2).await;
    let known_instance = lab.known_instance_besides(0).await;
    lab.cloud.destroy(lab.machines[0].id).unwrap();
    let found = lab.instances().find(&lab.node(0), None).await;
    assert!(
        matches!(found, Existence::Unknown(Doubt::NothingElseSeen { .. })),
        "{found:?}"
    );
    advance(Duration::from_mins(6)).await;
    let found = lab
        .instances()
        .find(&lab.node(0), known_instance.as_ref())
        .await;
    assert!(
        matches!(found, Existence::Unknown(Doubt::NothingElseSeen { .. })),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_known_instance_that_is_gone_itself_confirms_nothing() {
    let lab = Lab::with(2).await;
    let known_instance = lab.known_instance_besides(0).await;
    for machine in &lab.machines {
        lab.cloud.destroy(machine.id).unwrap();
    }
    let found = lab
        .instances()
        .find(&lab.node(0), known_instance.as_ref())
        .await;
    assert!(
        matches!(found, Existence::Unknown(Doubt::NothingElseSeen { .. })),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_shown_as_deleted_is_its_own_proof() {
    let settings = Settings {
        keep_deleted: Duration::from_mins(10),
        ..Settings::default()
    };
    let lab = Lab::set_up(2, settings).await;
    lab.cloud.destroy(lab.machines[0].id).unwrap();
    let found = lab.instances().find(&lab.node(0), None).await;
    let Existence::Gone(proof) = found else {
        panic!("{found:?}");
    };
    assert!(matches!(proof.evidence(), Evidence::Terminated { state, .. } if state == "deleted"));
    let list = lab.instances().list().await.unwrap();
    assert_eq!(list.instances().len(), 1, "it is left out of lists");
}

#[tokio::test(start_paused = true)]
async fn many_are_looked_up_with_few_calls_and_the_missing_ones_asked_for_again() {
    let lab = Lab::with(120).await;
    let known_instance = lab.known_instance_besides(0).await;
    for index in [3, 77] {
        lab.cloud.destroy(lab.machines[index].id).unwrap();
    }
    let mut nodes: Vec<_> = (0..120).map(|index| lab.node(index)).collect();
    nodes.push(NodeFacts {
        provider_id: "hcloud://1".parse().ok(),
        ..lab.node(0)
    });
    nodes.push(NodeFacts {
        provider_id: None,
        ..lab.node(5)
    });
    lab.cloud.reset_calls();
    let found = lab
        .instances()
        .find_many(&Shared::of_each(&nodes), known_instance.as_ref())
        .await;
    assert_eq!(found.len(), 122);
    for (index, found) in found.iter().enumerate() {
        match index {
            3 | 77 => assert!(matches!(found, Existence::Gone(_)), "{index}: {found:?}"),
            120 => assert!(
                matches!(found, Existence::Unknown(Doubt::NotOurs { .. })),
                "{found:?}"
            ),
            121 => assert_eq!(found.instance().unwrap().name, "node-5"),
            _ => assert_eq!(found.instance().unwrap().name, format!("node-{index}")),
        }
    }
    let calls = lab.cloud.calls();
    assert_eq!(
        calls.of(Operation::GetMachine),
        2,
        "only for the missing ones"
    );
    assert_eq!(
        calls.of(Operation::ListMachines),
        5,
        "three batches, one that confirms the credential for the missing ones, one by UUID"
    );
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_shows_too_little_is_no_proof() {
    for fault in [
        Fault::EmptyList,
        Fault::Stale {
            by: Duration::from_hours(1),
        },
    ] {
        let lab = Lab::with(3).await;
        let known_instance = lab.known_instance_besides(0).await;
        let nodes = [lab.node(0), lab.node(1)];
        lab.cloud
            .faults()
            .always(Operation::ListMachines, fault.clone());
        let found = lab
            .instances()
            .find_many(&Shared::of_each(&nodes), known_instance.as_ref())
            .await;
        for found in found {
            assert!(found.instance().is_some(), "{fault:?}: {found:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_another_project_says_nothing() {
    let lab = Lab::with(3).await;
    lab.cloud.add_project("other");
    let known_instance = lab.known_instance_besides(0).await;
    let nodes = [lab.node(0), lab.node(1)];
    let project = "other".into();
    lab.cloud
        .faults()
        .always(Operation::ListMachines, Fault::OtherProject { project });
    let found = lab
        .instances()
        .find_many(&Shared::of_each(&nodes), known_instance.as_ref())
        .await;
    for found in found {
        let is_unknown = matches!(&found, Existence::Unknown(Doubt::ScopeChanged { .. }));
        assert!(is_unknown, "{found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_id_is_found_by_uuid_then_by_name_or_hostname() {
    let lab = Lab::with(2).await;
    lab.cloud
        .add_machine(MachineSpec::named("db").hostname("db-0"))
        .unwrap();
    lab.cloud.add_machine(MachineSpec::named("twin")).unwrap();
    lab.cloud.add_machine(MachineSpec::named("twin")).unwrap();
    lab.cloud
        .add_machine(MachineSpec::named("x").hostname("node-0"))
        .unwrap();
    let node = |name: &str, uuid: Option<&str>| NodeFacts {
        name: name.into(),
        system_uuid: uuid.map(str::to_uppercase),
        ..NodeFacts::default()
    };
    let uuid = lab.machines[1].uuid.as_str();
    for (case, node, expected) in [
        (
            "by UUID, whatever its name",
            node("odd", Some(uuid)),
            Ok("node-1"),
        ),
        ("by name", node("node-1", None), Ok("node-1")),
        (
            "unknown UUID, known name",
            node("node-1", Some("f00")),
            Ok("node-1"),
        ),
        ("by hostname", node("db-0", None), Ok("db")),
        (
            "no such name",
            node("unknown", None),
            Err("no machine matches"),
        ),
        (
            "two of that name",
            node("twin", None),
            Err("2 machines match"),
        ),
        (
            "one by name, one by hostname",
            node("node-0", None),
            Err("2 machines match"),
        ),
    ] {
        let list = lab.instances().list().await.unwrap();
        let found = lab.instances().find(&node, None).await;
        let identified = lab.instances().identify(&node, &list);
        match (&found, &identified, expected) {
            (Existence::Present(found), Match::One(one), Ok(name)) => {
                assert_eq!(
                    (found.name.as_str(), one.name.as_str()),
                    (name, name),
                    "{case}"
                );
            }
            (Existence::Unknown(doubt), Match::None | Match::Many(_), Err(why)) => {
                assert!(doubt.to_string().contains(why), "{case}: {doubt}");
            }
            _ => panic!("{case}: {found:?} {identified:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_with_an_id_is_identified_by_nothing_else() {
    let lab = Lab::with(2).await;
    let list = lab.instances().list().await.unwrap();
    let mut node = lab.node(0);
    node.provider_id = "local://demo/9999".parse().ok();
    assert_eq!(lab.instances().identify(&node, &list), Match::None);
    let found = lab.instances().identify(&lab.node(1), &list);
    assert!(
        matches!(found, Match::One(one) if one.name == "node-1"),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_swapped_token_shows_another_world_and_proves_nothing() {
    let lab = Lab::with(2).await;
    lab.cloud.add_project("other");
    lab.cloud
        .add_machine(MachineSpec::named("there").in_project("other"))
        .unwrap();
    let before = lab.instances().list().await.unwrap();
    let old_sighting = lab.known_instance_besides(0).await;
    lab.cloud
        .grant(SimulatedCloud::TOKEN, "other", Permission::ReadWrite);

    let after = lab.instances().list().await.unwrap();
    assert_ne!(after.scope(), before.scope());
    assert_eq!(after.instances().len(), 1);
    let id = lab.node(0).provider_id.unwrap();
    let new_sighting = after.known_instance_besides(&id, |_| true);
    for known_instance in [None, old_sighting.as_ref(), new_sighting.as_ref()] {
        let found = lab.instances().find(&lab.node(0), known_instance).await;
        assert!(matches!(found, Existence::Unknown(_)), "{found:?}");
        let found = lab
            .instances()
            .find_many(&[lab.node(0).into()], known_instance)
            .await;
        assert!(matches!(found[0], Existence::Unknown(_)), "{found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_hides_the_swap_is_still_caught_by_the_known_instance() {
    let mut settings = Settings::default();
    settings.features.tells_project = false;
    let lab = Lab::set_up(2, settings).await;
    lab.cloud.add_project("other");
    lab.cloud
        .add_machine(MachineSpec::named("there").in_project("other"))
        .unwrap();
    let known_instance = lab.known_instance_besides(0).await;
    lab.cloud
        .grant(SimulatedCloud::TOKEN, "other", Permission::ReadWrite);
    let found = lab
        .instances()
        .find(&lab.node(0), known_instance.as_ref())
        .await;
    assert!(
        matches!(found, Existence::Unknown(Doubt::NothingElseSeen { .. })),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn reads_that_lag_delay_the_proof_and_never_invent_one() {
    let settings = Settings {
        consistency: Consistency {
            list: SECOND * 60,
            get: SECOND * 10,
        },
        ..Settings::default()
    };
    let lab = Lab::set_up(2, settings).await;
    advance(SECOND * 100).await;
    let known_instance = lab.known_instance_besides(0).await;
    lab.cloud.destroy(lab.machines[0].id).unwrap();
    for (case, wait, gone) in [
        ("both still show it", 0, false),
        ("only the list shows it", 10, false),
        ("no list shows it", 50, true),
    ] {
        advance(SECOND * wait).await;
        let found = lab
            .instances()
            .find(&lab.node(0), known_instance.as_ref())
            .await;
        assert_eq!(
            matches!(found, Existence::Gone(_)),
            gone,
            "{case}: {found:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_list_is_incomplete_and_a_changed_one_is_read_again() {
    for (fault, kind) in [
        (Fault::TruncatedPage, ErrorKind::Incomplete),
        (Fault::LostNextPage, ErrorKind::Incomplete),
        (Fault::MalformedJson, ErrorKind::Malformed),
        (Fault::Html, ErrorKind::Malformed),
        (Fault::EmptyBody, ErrorKind::Malformed),
    ] {
        let lab = Lab::with(120).await;
        lab.cloud
            .faults()
            .once(Operation::ListMachines, fault.clone());
        let error = lab.instances().list().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{fault:?}: {error}");
        assert_eq!(lab.instances().list().await.unwrap().instances().len(), 120);
    }
}

#[tokio::test(start_paused = true)]
async fn addresses_and_size_follow_the_machine() {
    let lab = Lab::with(1).await;
    let id = lab.machines[0].id;
    lab.cloud.resize(id, "xl").unwrap();
    let address = MachineAddress::private([10, 1, 2, 3].into());
    lab.cloud.set_addresses(id, vec![address]).unwrap();
    let found = lab.instances().find(&lab.node(0), None).await;
    let instance = found.instance().unwrap();
    assert_eq!(instance.instance_type.as_deref(), Some("xl"));
    assert_eq!(instance.addresses[1].address, "10.1.2.3");
}
