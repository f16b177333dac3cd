//! A cloud that ends and begins again.

use std::net::SocketAddr;

use cloudkeel_local_cloud::simulated_cloud::MachineSpec;
use cloudkeel_local_cloud::{LocalCloud, StartError};

use crate::lab::{Backend, Lab, listener};

#[tokio::test]
async fn everything_is_there_again_at_the_same_addresses() {
    let lab = Lab::new().await;
    let backend = Backend::one("a").await;
    let cloud = lab.local.cloud();
    let spec = MachineSpec::named("node").private(backend.address.ip());
    let machine = cloud.add_machine(spec).expect("a machine");
    let first = lab.balancer(&[&backend], |_| {}).await;
    let second = lab
        .balancer(&[&backend], |new| {
            new.name = "second".to_owned();
            new.listeners = vec![listener(8081, backend.address.port())];
        })
        .await;
    assert_ne!(first.address.ip(), second.address.ip());
    let before = cloud.snapshot();
    let url = lab.local.contact().url.clone();
    let lab = Lab::again(lab.end().await).await;
    let cloud = lab.local.cloud();
    assert_eq!(cloud.snapshot(), before);
    assert_eq!(lab.local.contact().url, url, "those who knew it find it");
    for front in [first, second] {
        assert_eq!(front.ask().await.as_deref(), Some("a"), "{front:?}");
    }
    let next = cloud
        .add_machine(MachineSpec::named("next"))
        .expect("a machine");
    assert!(next.id > machine.id, "no ID is used twice");
}

#[tokio::test]
async fn a_broken_state_is_an_error_and_stays_as_it_is() {
    let lab = Lab::new().await;
    lab.local
        .cloud()
        .add_machine(MachineSpec::named("node"))
        .expect("a machine");
    lab.local.cloud().settle().await.expect("written down");
    let (options, _folder) = lab.end().await;
    let whole = std::fs::read_to_string(&options.files.state).expect("a state");
    let half = &whole[..whole.len() / 2];
    let doubled = whole.replace("\"lastId\": 1", "\"lastId\": 0");
    for (case, text) in [("half", half), ("nonsense", &doubled), ("empty", "")] {
        std::fs::write(&options.files.state, text).expect("written");
        let error = LocalCloud::start(&options)
            .await
            .expect_err(case)
            .to_string();
        assert!(
            error.contains("is broken") && error.contains("move it away"),
            "{case}: {error}"
        );
        let after = std::fs::read_to_string(&options.files.state).expect("a state");
        assert_eq!(after, text, "{case}: nothing is written over it");
    }
}

#[tokio::test]
async fn two_clouds_do_not_share_a_state() {
    let lab = Lab::new().await;
    let error = LocalCloud::start(&lab.options)
        .await
        .expect_err("it is in use");
    assert!(matches!(error, StartError::Running(_)), "{error}");
    let url = &lab.local.contact().url;
    assert!(error.to_string().contains(url.as_str()), "{error}");
}

#[tokio::test]
async fn a_change_that_cannot_be_written_down_is_not_answered_with_success() {
    let lab = Lab::new().await;
    lab.local
        .cloud()
        .add_machine(MachineSpec::named("node"))
        .expect("a machine");
    std::fs::remove_dir_all(lab.folder.path()).expect("the folder goes");
    let refusal = lab
        .local
        .cloud()
        .settle()
        .await
        .expect_err("it cannot be safe");
    assert!(
        refusal.to_string().contains("cannot be written"),
        "{refusal}"
    );
}

#[tokio::test]
async fn machines_come_from_a_file_and_go_with_it() {
    let lab = Lab::new().await;
    let (mut options, folder) = lab.end().await;
    let file = folder.path().join("machines.yaml");
    options.machines = Some(file.clone());
    let mut ids = Vec::new();
    for (text, names) in [
        (
            "machines: [{name: a, addresses: [10.0.0.1]}, {name: b}]",
            &["a", "b"][..],
        ),
        (
            "machines: [{name: a, addresses: [10.0.0.2], zone: attic}]",
            &["a"],
        ),
    ] {
        std::fs::write(&file, text).expect("written");
        let local = LocalCloud::start(&options).await.expect("it starts");
        let machines = local.cloud().machines();
        let found: Vec<_> = machines.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(found, names);
        ids.push(machines[0].id);
        local.close().await;
    }
    assert_eq!(ids[0], ids[1], "it is the same machine");
    std::fs::write(&file, "machines: [").expect("written");
    let error = LocalCloud::start(&options)
        .await
        .expect_err("a broken file");
    assert!(error.to_string().contains("--machines"), "{error}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_reported_in_the_api_and_opened_when_it_is_free() {
    let lab = Lab::new().await;
    let backend = Backend::one("a").await;
    let front = lab.balancer(&[&backend], |_| {}).await;
    let other = SocketAddr::new(front.address.ip(), 8099);
    let taken = std::net::TcpListener::bind(other).expect("a port");
    lab.edit(&front, |balancer| {
        balancer
            .listeners
            .push(listener(8099, backend.address.port()));
    })
    .await;
    let cloud = lab.local.cloud();
    let problems = || cloud.balancer(front.id).expect("a balancer").problems;
    let found = problems();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("tcp 8099: cannot listen on"),
        "{found:?}"
    );
    assert_eq!(
        front.ask().await.as_deref(),
        Some("a"),
        "the other port works"
    );
    drop(taken);
    let free = async {
        while !problems().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::lab::DEADLINE, free)
        .await
        .expect("it is opened");
    let second = crate::lab::Front {
        address: other,
        ..front
    };
    assert_eq!(second.ask().await.as_deref(), Some("a"));
}
