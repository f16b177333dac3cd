//! Machines: sweeps with pages, look-ups, and what is proof.

use cloudkeel_api::{
    AddressKind, Doubt, ErrorKind, Existence, InstanceState, Match, NodeFacts, Sweep,
};
use cloudkeel_provider_hetzner::AddressFamily;
use cloudkeel_testkit::hetzner::{
    Fault, FaultMatch, HetznerCloud, Operation, Permission, ServerSpec, ServerStatus,
};

use crate::lab::{Lab, instances, node};

#[tokio::test(start_paused = true)]
async fn one_sweep_reads_every_page_and_sees_everything() {
    let lab = Lab::new(120);
    let provider = lab.provider().await;
    let sweep = instances(&provider).sweep().await.unwrap();
    assert_eq!(sweep.instances().len(), 120);
    assert!(sweep.is_complete());
    assert_eq!(lab.cloud.calls().of(Operation::ListServers), 3);
    assert_eq!(lab.cloud.calls().total(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_becomes_what_the_go_ccm_makes_of_it() {
    let lab = Lab::new(0);
    let spec = ServerSpec::named("node-1")
        .of_type("cx32")
        .at("hel1")
        .in_network(lab.network);
    let server = lab.cloud.add_server(spec).unwrap();
    let ipv4 = server.ipv4.unwrap().to_string();
    let ipv6 = format!("{}1", server.ipv6.unwrap().network());
    let private = server.private_net[0].ip.to_string();
    for (case, family, network, expected) in [
        ("IPv4", AddressFamily::Ipv4, false, vec![&ipv4]),
        ("IPv6", AddressFamily::Ipv6, false, vec![&ipv6]),
        ("both", AddressFamily::DualStack, false, vec![&ipv4, &ipv6]),
        ("network", AddressFamily::Ipv6, true, vec![&ipv6, &private]),
    ] {
        let provider = lab
            .provider_with(|config| {
                config.address_family = family;
                config.network = network.then(|| "kube".to_owned());
            })
            .await;
        let sweep = instances(&provider).sweep().await.unwrap();
        let instance = sweep.instances().next().unwrap();
        let addresses: Vec<_> = instance.addresses[1..].iter().map(|a| &a.address).collect();
        assert_eq!(addresses, expected, "{case}");
        assert_eq!(instance.addresses[0].kind, AddressKind::Hostname, "{case}");
        assert_eq!(instance.id.as_str(), format!("hcloud://{}", server.id));
        assert_eq!(instance.instance_type.as_deref(), Some("cx32"));
        assert_eq!(instance.region.as_deref(), Some("hel1"));
        assert_eq!(instance.zone.as_deref(), Some("hel1-dc2"));
        assert_eq!(instance.state, InstanceState::Running);
        let label = instance.labels.get("instance.hetzner.cloud/provided-by");
        assert_eq!(label.map(String::as_str), Some("cloud"));
    }
    let without_zone = lab.provider_with(|config| config.zone_label = false).await;
    let sweep = instances(&without_zone).sweep().await.unwrap();
    assert_eq!(sweep.instances().next().unwrap().zone, None);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_is_complete_or_an_error_whatever_goes_wrong() {
    for (case, fault) in [
        ("a short page", Fault::TruncatedPage),
        ("a page that is lost", Fault::LostNextPage),
        ("trouble", Fault::status(500)),
        ("a proxy's trouble", Fault::Bare { status: 502 }),
        ("a proxy's 404", Fault::Bare { status: 404 }),
        ("a wrong token", Fault::code("unauthorized")),
        ("half an answer", Fault::MalformedJson),
        ("an empty answer", Fault::EmptyBody),
        ("no answer", Fault::NoAnswer),
        ("a broken connection", Fault::BrokenAfter),
        ("an empty list", Fault::EmptyList),
    ] {
        let lab = Lab::new(60);
        let provider = lab.provider().await;
        instances(&provider).sweep().await.unwrap();
        lab.cloud.faults().always(Operation::ListServers, fault);
        let swept = instances(&provider).sweep().await;
        assert!(swept.is_err(), "{case}: {} seen", count(&swept));
        lab.cloud.faults().clear();
        let swept = instances(&provider).sweep().await;
        assert_eq!(count(&swept), 60, "{case}");
    }
}

fn count(swept: &Result<Sweep, cloudkeel_api::CloudError>) -> usize {
    swept.as_ref().map_or(0, |sweep| sweep.instances().len())
}

#[tokio::test(start_paused = true)]
async fn one_bad_page_is_asked_for_again() {
    let lab = Lab::new(60);
    let provider = lab.provider().await;
    let second = FaultMatch::from(Operation::ListServers).for_page(2);
    lab.cloud.faults().times(second, 2, Fault::status(503));
    let sweep = instances(&provider).sweep().await.unwrap();
    assert_eq!(sweep.instances().len(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_look_up_tells_present_and_shut_down_machines() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let id = lab.cloud.servers()[0].id;
    for (status, state) in [
        (ServerStatus::Running, InstanceState::Running),
        (ServerStatus::Off, InstanceState::ShutDown),
        (ServerStatus::Starting, InstanceState::Changing),
        (ServerStatus::Deleting, InstanceState::Changing),
        (ServerStatus::Unknown, InstanceState::Unknown),
    ] {
        lab.cloud.set_status(id, status).unwrap();
        let found = instances(&provider).find(&nodes[0], None).await;
        let found = found.instance().map(|instance| instance.state);
        assert_eq!(found, Some(state), "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn gone_needs_a_word_for_that_server_and_a_witness_that_is_still_seen() {
    let lab = Lab::new(3);
    let provider = lab.provider().await;
    let instances = instances(&provider);
    let sweep = instances.sweep().await.unwrap();
    let nodes: Vec<_> = sweep.instances().map(node).collect();
    let gone = nodes[0].provider_id.clone().unwrap();
    let witness = sweep.sighting_besides(&gone, |_| true).unwrap();
    let servers = lab.cloud.servers();
    lab.cloud.destroy_server(servers[0].id).unwrap();

    let found = instances.find(&nodes[0], None).await;
    assert!(matches!(
        found,
        Existence::Unknown(Doubt::NothingElseSeen { .. })
    ));
    let found = instances.find(&nodes[0], Some(&witness)).await;
    let Existence::Gone(proof) = found else {
        panic!("{found:?}");
    };
    assert_eq!(*proof.machine(), gone);

    // The token belongs to another project now: its 404s are honest and prove nothing.
    lab.cloud.add_project("other");
    let token = HetznerCloud::TOKEN;
    lab.cloud.grant(token, "other", Permission::ReadWrite);
    for node in &nodes {
        let found = instances.find(node, Some(&witness)).await;
        assert!(!matches!(found, Existence::Gone(_)), "{}", node.name);
    }
    let answers = instances.find_many(&nodes, Some(&witness)).await;
    assert!(
        answers
            .iter()
            .all(|found| matches!(found, Existence::Unknown(_)))
    );
    assert!(instances.sweep().await.is_ok(), "an empty project is empty");
}

#[tokio::test(start_paused = true)]
async fn servers_of_another_project_vouch_for_nothing() {
    let lab = Lab::new(3);
    let provider = lab.provider().await;
    let instances = instances(&provider);
    let sweep = instances.sweep().await.unwrap();
    let nodes: Vec<_> = sweep.instances().map(node).collect();
    let witness = sweep.sighting_besides(&nodes[0].provider_id.clone().unwrap(), |_| true);
    lab.cloud.add_project("other");
    let stranger = ServerSpec::named("stranger");
    lab.cloud.add_server_in("other", stranger).unwrap();
    let token = HetznerCloud::TOKEN;
    lab.cloud.grant(token, "other", Permission::ReadWrite);
    // The list of the other project is the last one from now on.
    instances.sweep().await.unwrap();
    let mut answers = instances.find_many(&nodes, witness.as_ref()).await;
    answers.push(instances.find(&nodes[0], witness.as_ref()).await);
    for answer in answers {
        assert!(matches!(answer, Existence::Unknown(_)), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_fault_is_ever_a_proof() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let instances = instances(&provider);
    let sweep = instances.sweep().await.unwrap();
    let nodes: Vec<_> = sweep.instances().map(node).collect();
    let witness = sweep.sighting_besides(&sweep.instances().next().unwrap().id, |_| true);
    for (case, fault) in [
        ("a wrong token", Fault::code("unauthorized")),
        ("a token that may not", Fault::code("forbidden")),
        ("trouble", Fault::status(500)),
        ("too many requests", Fault::code("rate_limit_exceeded")),
        ("a proxy's 404", Fault::Bare { status: 404 }),
        ("a retired endpoint", Fault::code("deprecated_api_endpoint")),
        ("half an answer", Fault::MalformedJson),
        ("an empty answer", Fault::EmptyBody),
        ("no answer", Fault::NoAnswer),
        ("a broken connection", Fault::BrokenBefore),
    ] {
        lab.cloud.faults().always(Operation::GetServer, fault);
        let found = instances.find(&nodes[0], witness.as_ref()).await;
        assert!(matches!(found, Existence::Unknown(_)), "{case}: {found:?}");
        lab.cloud.faults().clear();
        tokio::time::sleep(std::time::Duration::from_mins(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_look_ups_cost_a_list_and_one_look_at_the_witness() {
    let lab = Lab::new(40);
    let provider = lab.provider().await;
    let instances = instances(&provider);
    let sweep = instances.sweep().await.unwrap();
    let nodes: Vec<_> = sweep.instances().map(node).collect();
    let last = nodes[39].provider_id.clone().unwrap();
    let witness = sweep.sighting_besides(&nodes[0].provider_id.clone().unwrap(), |id| *id == last);
    let servers = lab.cloud.servers();
    for server in &servers[..2] {
        lab.cloud.destroy_server(server.id).unwrap();
    }
    lab.cloud.reset_calls();
    let answers = instances.find_many(&nodes, witness.as_ref()).await;
    let gone = answers.iter().filter(|a| matches!(a, Existence::Gone(_)));
    let present = answers.iter().filter(|a| a.instance().is_some());
    assert_eq!((gone.count(), present.count()), (2, 38));
    let calls = lab.cloud.calls();
    assert_eq!(calls.of(Operation::ListServers), 1);
    assert_eq!(calls.of(Operation::GetServer), 3);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_id_is_found_by_its_exact_name() {
    let lab = Lab::new(2);
    let provider = lab.provider().await;
    let named = |name: &str| NodeFacts {
        name: name.to_owned(),
        ..NodeFacts::default()
    };
    let found = instances(&provider).find(&named("node-001"), None).await;
    assert_eq!(found.instance().unwrap().name, "node-001");
    let found = instances(&provider).find(&named("node-00"), None).await;
    assert!(matches!(found, Existence::Unknown(Doubt::NoMatch { .. })));
    let sweep = instances(&provider).sweep().await.unwrap();
    let matched = instances(&provider).identify(&named("node-001"), &sweep);
    assert!(matches!(matched, Match::One(instance) if instance.name == "node-001"));
}

#[tokio::test(start_paused = true)]
async fn ids_of_others_are_never_asked_for() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    for id in ["aws:///a/i-1", "hcloud://x", "hrobot://7"] {
        let node = NodeFacts {
            provider_id: Some(id.parse().unwrap()),
            ..NodeFacts::default()
        };
        let found = instances(&provider).find(&node, None).await;
        assert!(
            matches!(found, Existence::Unknown(Doubt::NotOurs { .. })),
            "{id}"
        );
    }
    assert_eq!(lab.cloud.calls().total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_asks_for_fewer_requests_is_left_alone() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let limit = Fault::code("rate_limit_exceeded");
    lab.cloud.faults().always(Operation::ListServers, limit);
    let error = instances(&provider).sweep().await.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Throttled { .. }),
        "{error}"
    );
    assert!(lab.cloud.calls().total() <= 6);
}

#[tokio::test(start_paused = true)]
async fn a_witness_that_went_too_is_replaced_by_another() {
    let lab = Lab::new(4);
    let provider = lab.provider().await;
    let instances = instances(&provider);
    let sweep = instances.sweep().await.unwrap();
    let nodes: Vec<_> = sweep.instances().map(node).collect();
    let gone = nodes[0].provider_id.clone().unwrap();
    let witness = sweep.sighting_besides(&gone, |_| true).unwrap();
    let servers = lab.cloud.servers();
    for server in &servers[..2] {
        lab.cloud.destroy_server(server.id).unwrap();
    }
    let found = instances.find(&nodes[0], Some(&witness)).await;
    assert!(matches!(found, Existence::Gone(_)), "{found:?}");
}
