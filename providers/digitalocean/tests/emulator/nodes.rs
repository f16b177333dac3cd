//! Droplets as instances.

use cloudkeel_api::{CloudProvider as _, Existence, InstanceState, NodeFacts, Recognition};
use cloudkeel_emulator_digitalocean::DropletStatus;

use crate::lab::{Lab, instances};

#[tokio::test(start_paused = true)]
async fn addresses_come_in_the_order_of_the_go_ccm() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let list = instances(&provider).list().await.unwrap();
    let instance = list.instances().next().unwrap();
    let droplet = &lab.cloud.droplets()[0];
    let addresses: Vec<_> = instance
        .addresses
        .iter()
        .map(|address| format!("{} {}", address.kind, address.address))
        .collect();
    let expected = [
        "Hostname node-000".to_owned(),
        format!("InternalIP {}", droplet.private_ipv4.unwrap()),
        format!("ExternalIP {}", droplet.public_ipv4.unwrap()),
        format!("ExternalIP {}", droplet.public_ipv6.unwrap()),
    ];
    assert_eq!(addresses, expected);
    assert_eq!(instance.instance_type.as_deref(), Some("s-1vcpu-2gb"));
    assert_eq!(
        (instance.region.as_deref(), &instance.zone),
        (Some("nyc3"), &None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_droplet_without_a_private_address_is_waited_for_and_one_without_public_ones_is_fine() {
    let lab = Lab::new(2);
    let ids: Vec<_> = lab
        .cloud
        .droplets()
        .iter()
        .map(|droplet| droplet.id)
        .collect();
    lab.cloud
        .change_droplet(ids[0], |droplet| droplet.private_ipv4 = None);
    lab.cloud.change_droplet(ids[1], |droplet| {
        droplet.public_ipv4 = None;
        droplet.public_ipv6 = None;
    });
    let provider = lab.provider().await;
    let list = instances(&provider).list().await.unwrap();
    assert!(list.instances().next().unwrap().not_ready.is_some());
    assert!(list.instances().nth(1).unwrap().not_ready.is_none());
    assert_eq!(list.instances().nth(1).unwrap().addresses.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_four_statuses_are_states() {
    for (status, state) in [
        (DropletStatus::New, InstanceState::Changing),
        (DropletStatus::Active, InstanceState::Running),
        (DropletStatus::Off, InstanceState::ShutDown),
        (DropletStatus::Archive, InstanceState::Unknown),
    ] {
        let lab = Lab::new(1);
        let id = lab.cloud.droplets()[0].id;
        lab.cloud
            .change_droplet(id, |droplet| droplet.status = status);
        let provider = lab.provider().await;
        let list = instances(&provider).list().await.unwrap();
        assert_eq!(list.instances().next().unwrap().state, state, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_id_is_found_by_name_or_address_but_not_among_namesakes() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let private = lab.cloud.droplets()[1].private_ipv4.unwrap().to_string();
    for name in ["node-001", &private] {
        let node = NodeFacts {
            name: name.to_owned(),
            ..NodeFacts::default()
        };
        let found = instances(&provider).find(&node, None).await;
        assert_eq!(found.instance().unwrap().name, "node-001", "{name}");
    }
    lab.cloud.add_droplet("node-001");
    let node = NodeFacts {
        name: "node-001".to_owned(),
        ..NodeFacts::default()
    };
    let found = instances(&provider).find(&node, None).await;
    assert!(matches!(found, Existence::Unknown(_)), "{found:?}");
    assert!(lab.reported()[0].starts_with("InstanceLookupFailed: "));
}

#[tokio::test(start_paused = true)]
async fn only_the_one_spelling_of_an_id_is_ours() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    for (id, is_ours) in [
        ("digitalocean://3164444", Some(true)),
        ("digitalocean://", Some(false)),
        ("digitalocean://x", Some(false)),
        ("digitalocean://-1", Some(false)),
        ("digitalocean://007", Some(false)),
        ("hcloud://3164444", None),
    ] {
        let recognized = provider.recognize(&id.parse().unwrap());
        let expected = match recognized {
            Recognition::Ours => Some(true),
            Recognition::Malformed { .. } => Some(false),
            _ => None,
        };
        assert_eq!(expected, is_ours, "{id}");
    }
}
