//! Machines: lists with pages, look-ups, and what is proof.

use std::time::Duration;

use cloudkeel_api::{
    AddressKind, Doubt, ErrorKind, Existence, InstanceList, InstanceState, Instances,
    KnownInstance, Match, NodeFacts, Shared,
};
use cloudkeel_emulator_hetzner::{
    Fault, FaultMatch, HetznerCloud, Operation, Permission, ServerSpec, ServerStatus,
};
use cloudkeel_provider_hetzner::{AddressFamily, HetznerProvider};

use crate::lab::{Lab, instances, node};

/// A cloud that was listed.
struct Swept {
    lab: Lab,
    provider: HetznerProvider,
    /// The Nodes of all servers, in their order.
    nodes: Vec<NodeFacts>,
    /// That the last server was seen.
    known: KnownInstance,
}

impl Swept {
    async fn new(servers: usize) -> Self {
        let lab = Lab::new(servers);
        let provider = lab.provider().await;
        let list = instances(&provider).list().await.unwrap();
        let nodes: Vec<_> = list.instances().map(node).collect();
        let last = list.instances().last().unwrap();
        let known = KnownInstance::of(last, list.scope(), list.taken());
        Self {
            lab,
            provider,
            nodes,
            known,
        }
    }

    fn instances(&self) -> &dyn Instances {
        instances(&self.provider)
    }

    /// Destroys the first servers.
    fn destroy(&self, count: usize) {
        for server in &self.lab.cloud.servers()[..count] {
            self.lab.cloud.destroy_server(server.id).unwrap();
        }
    }

    /// The token belongs to another project from now on, which has these servers.
    fn move_token(&self, servers: &[&str]) {
        let cloud = &self.lab.cloud;
        cloud.add_project("other");
        for name in servers {
            let stranger = ServerSpec::named(*name);
            cloud.add_server_in("other", stranger).unwrap();
        }
        cloud.grant(HetznerCloud::TOKEN, "other", Permission::ReadWrite);
    }

    async fn find(&self, number: usize) -> Existence {
        let node = &self.nodes[number];
        self.instances().find(node, Some(&self.known)).await
    }

    async fn find_all(&self) -> Vec<Existence> {
        let known = Some(&self.known);
        self.instances()
            .find_many(&Shared::of_each(&self.nodes), known)
            .await
    }
}

#[tokio::test(start_paused = true)]
async fn one_list_reads_every_page_and_sees_everything() {
    let lab = Lab::new(120);
    let provider = lab.provider().await;
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(list.instances().len(), 120);
    assert!(list.is_complete());
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
        let list = instances(&provider).list().await.unwrap();
        let instance = list.instances().next().unwrap();
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
    let list = instances(&without_zone).list().await.unwrap();
    assert_eq!(list.instances().next().unwrap().zone, None);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_complete_or_an_error_whatever_goes_wrong() {
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
        instances(&provider).list().await.unwrap();
        lab.cloud.faults().always(Operation::ListServers, fault);
        let listed = instances(&provider).list().await;
        assert!(listed.is_err(), "{case}: {} seen", count(&listed));
        lab.cloud.faults().clear();
        let listed = instances(&provider).list().await;
        assert_eq!(count(&listed), 60, "{case}");
    }
}

fn count(listed: &Result<InstanceList, cloudkeel_api::CloudError>) -> usize {
    listed.as_ref().map_or(0, |list| list.instances().len())
}

#[tokio::test(start_paused = true)]
async fn one_bad_page_is_asked_for_again() {
    let lab = Lab::new(60);
    let provider = lab.provider().await;
    let second = FaultMatch::from(Operation::ListServers).for_page(2);
    lab.cloud.faults().times(second, 2, Fault::status(503));
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(list.instances().len(), 60);
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
async fn gone_needs_an_answer_for_that_server_and_a_known_instance_that_is_still_seen() {
    let listed = Swept::new(3).await;
    listed.destroy(1);
    let gone = &listed.nodes[0];
    let found = listed.instances().find(gone, None).await;
    assert!(matches!(
        found,
        Existence::Unknown(Doubt::NothingElseSeen { .. })
    ));
    let found = listed.find(0).await;
    let Existence::Gone(proof) = found else {
        panic!("{found:?}");
    };
    assert_eq!(Some(proof.machine()), gone.provider_id.as_ref());

    // From now on its 404s are honest and prove nothing.
    listed.move_token(&[]);
    let mut answers = listed.find_all().await;
    for number in 0..listed.nodes.len() {
        answers.push(listed.find(number).await);
    }
    for answer in answers {
        assert!(matches!(answer, Existence::Unknown(_)), "{answer:?}");
    }
    let list = listed.instances().list().await;
    assert!(list.is_ok(), "an empty project is empty");
}

#[tokio::test(start_paused = true)]
async fn servers_of_another_project_confirm_nothing() {
    let listed = Swept::new(3).await;
    listed.move_token(&["stranger"]);
    // The list of the other project is the last one from now on.
    listed.instances().list().await.unwrap();
    let mut answers = listed.find_all().await;
    answers.push(listed.find(0).await);
    for answer in answers {
        assert!(matches!(answer, Existence::Unknown(_)), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_fault_is_ever_a_proof() {
    let listed = Swept::new(2).await;
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
        let faults = listed.lab.cloud.faults();
        faults.always(Operation::GetServer, fault);
        let found = listed.find(0).await;
        assert!(matches!(found, Existence::Unknown(_)), "{case}: {found:?}");
        faults.clear();
        tokio::time::sleep(Duration::from_mins(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn many_look_ups_cost_a_list_and_one_look_up_of_a_known_instance() {
    let listed = Swept::new(40).await;
    listed.destroy(2);
    listed.lab.cloud.reset_calls();
    let answers = listed.find_all().await;
    let gone = answers.iter().filter(|a| matches!(a, Existence::Gone(_)));
    let present = answers.iter().filter(|a| a.instance().is_some());
    assert_eq!((gone.count(), present.count()), (2, 38));
    let calls = listed.lab.cloud.calls();
    assert_eq!(calls.of(Operation::ListServers), 1);
    assert_eq!(calls.of(Operation::GetServer), 3);
}

#[tokio::test(start_paused = true)]
async fn a_known_instance_that_went_too_is_replaced_by_another() {
    let listed = Swept::new(4).await;
    let last = listed.lab.cloud.servers()[3].id;
    listed.destroy(1);
    listed.lab.cloud.destroy_server(last).unwrap();
    let found = listed.find(0).await;
    assert!(matches!(found, Existence::Gone(_)), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_look_up_does_not_wait_for_a_list_that_takes_long() {
    let listed = Swept::new(2).await;
    listed.destroy(1);
    let slow = Fault::Slow {
        by: Duration::from_secs(10),
    };
    let faults = listed.lab.cloud.faults();
    faults.always(Operation::ListServers, slow);
    let look_ups = async {
        let gone = listed.find(0).await;
        let there = listed.find(1).await;
        (gone, there)
    };
    tokio::select! {
        biased;
        _ = listed.instances().list() => panic!("the look-ups waited for the list"),
        (gone, there) = look_ups => {
            assert!(matches!(gone, Existence::Gone(_)), "{gone:?}");
            assert!(there.instance().is_some(), "{there:?}");
        }
    }
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
    let list = instances(&provider).list().await.unwrap();
    let matched = instances(&provider).identify(&named("node-001"), &list);
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
    let error = instances(&provider).list().await.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Throttled { .. }),
        "{error}"
    );
    assert!(lab.cloud.calls().total() <= 6);
}
