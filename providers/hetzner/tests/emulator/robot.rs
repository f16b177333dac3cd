//! Dedicated servers.

use std::time::Duration;

use cloudkeel_api::{
    AddressKind, CloudError, CloudProvider as _, Doubt, ErrorKind, Existence, InstanceState,
    KnownInstance, Match, NodeAddress, NodeFacts, Recognition, Route, RouteChange, RouteTarget,
    Shared,
};
use cloudkeel_emulator_hetzner::{
    Destination, Fault, Operation, RobotLimit, RobotServer, ServerSpec,
};
use cloudkeel_provider_hetzner::{Config, HetznerProvider};

use crate::lab::{Lab, instances, node, routes, settle, spec};

fn lab() -> Lab {
    let lab = Lab::new(1);
    lab.cloud.set_robot_login("robot", "secret");
    for number in [321_u64, 322] {
        let [.., last] = number.to_be_bytes();
        let name = format!("metal-{number}");
        let mut server = RobotServer::new(number, name, [192, 0, 2, last].into());
        server.ipv6_net = Some("2a01:4f8:111:4221::".parse().unwrap());
        "AX41 NVMe (64 GB)".clone_into(&mut server.product);
        "NBG1-DC1".clone_into(&mut server.dc);
        lab.cloud.add_robot_server(server);
    }
    lab
}

fn enable(config: &mut Config) {
    config.robot.enabled = true;
    config.robot.login = Some(("robot".to_owned(), "secret".into()));
}

/// Asks Robot every time.
fn uncached(config: &mut Config) {
    enable(config);
    config.robot.cache_timeout = Duration::ZERO;
}

/// An instance that the controller knows from a list.
async fn known(provider: &HetznerProvider, id: &str) -> KnownInstance {
    let list = instances(provider).list().await.unwrap();
    let instance = list.get(&id.parse().unwrap()).unwrap();
    KnownInstance::of(instance, list.scope(), list.taken())
}

async fn provider(lab: &Lab) -> HetznerProvider {
    lab.provider_with(enable).await
}

fn metal(name: &str, id: &str) -> NodeFacts {
    NodeFacts {
        name: name.to_owned(),
        provider_id: Some(id.parse().unwrap()),
        ..NodeFacts::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_both_kinds_and_robot_is_asked_rarely() {
    let lab = lab();
    let provider = provider(&lab).await;
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(list.instances().len(), 3);
    let id = "hrobot://321".parse().unwrap();
    let server = list.get(&id).unwrap();
    assert_eq!(server.name, "metal-321");
    assert_eq!(server.instance_type.as_deref(), Some("AX41-NVMe-64-GB"));
    assert_eq!(server.zone.as_deref(), Some("nbg1-dc1"));
    assert_eq!(server.region.as_deref(), Some("nbg1"));
    assert_eq!(server.labels["instance.hetzner.cloud/provided-by"], "robot");
    assert_eq!(server.state, InstanceState::Unknown);
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_mins(1)).await;
        instances(&provider).list().await.unwrap();
    }
    assert_eq!(lab.cloud.calls().of(Operation::RobotListServers), 1);
    tokio::time::sleep(Duration::from_mins(2)).await;
    instances(&provider).list().await.unwrap();
    assert_eq!(lab.cloud.calls().of(Operation::RobotListServers), 2);
}

#[tokio::test(start_paused = true)]
async fn robot_in_trouble_is_a_blind_spot_and_the_cloud_is_still_seen() {
    let lab = lab();
    let provider = provider(&lab).await;
    lab.cloud
        .faults()
        .always(Operation::RobotListServers, Fault::status(500));
    let list = instances(&provider).list().await.unwrap();
    assert_eq!(list.instances().len(), 1);
    assert_eq!(list.blind_spots()[0].part, "Robot");
}

#[tokio::test(start_paused = true)]
async fn a_look_up_shows_whether_a_server_runs() {
    let lab = lab();
    let provider = provider(&lab).await;
    for (status, state) in [
        ("running", InstanceState::Running),
        ("shut off", InstanceState::ShutDown),
        ("not supported", InstanceState::Running),
    ] {
        let mut server = lab.cloud.robot_servers().remove(0);
        server.operating_status = status.to_owned();
        lab.cloud.add_robot_server(server);
        // The legacy spelling is the same server.
        for id in ["hrobot://321", "hcloud://bm-321"] {
            let found = instances(&provider)
                .find(&metal("metal-321", id), None)
                .await;
            assert_eq!(found.instance().unwrap().state, state, "{status} {id}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn gone_needs_an_account_that_still_shows_another_server() {
    let lab = lab();
    let provider = lab.provider_with(uncached).await;
    let node = metal("metal-321", "hrobot://321");
    let known = known(&provider, "hrobot://322").await;
    lab.cloud.remove_robot_server(321);
    let found = instances(&provider).find(&node, Some(&known)).await;
    assert!(matches!(found, Existence::Gone(_)), "{found:?}");
    let unproven =
        |found: &Existence| matches!(found, Existence::Unknown(Doubt::NothingElseSeen { .. }));
    let found = instances(&provider).find(&node, None).await;
    assert!(unproven(&found), "{found:?}");
    lab.cloud.remove_robot_server(322);
    let found = instances(&provider).find(&node, Some(&known)).await;
    assert!(unproven(&found), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_renamed_server_is_only_gone_if_a_setting_says_so() {
    let lab = lab();
    let node = metal("old-name", "hrobot://321");
    let careful = provider(&lab).await;
    let found = instances(&careful).find(&node, None).await;
    assert!(
        matches!(found, Existence::Unknown(Doubt::NotOurs { .. })),
        "{found:?}"
    );
    assert_eq!(lab.reasons(), ["PossibleNodeDeletion"]);
    let as_go = lab
        .provider_with(|config| {
            enable(config);
            config.robot.delete_renamed = true;
        })
        .await;
    let known = known(&as_go, "hrobot://322").await;
    let found = instances(&as_go).find(&node, Some(&known)).await;
    assert!(matches!(found, Existence::Gone(_)), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_both_have_is_reported_and_left_alone() {
    let lab = lab();
    let twin = RobotServer::new(400, "node-000", [192, 0, 2, 9].into());
    lab.cloud.add_robot_server(twin);
    let provider = provider(&lab).await;
    let node = NodeFacts {
        name: "node-000".to_owned(),
        ..NodeFacts::default()
    };
    let found = instances(&provider).find(&node, None).await;
    assert!(matches!(found, Existence::Unknown(Doubt::Ambiguous { .. })));
    assert_eq!(lab.reasons(), ["InstanceLookupFailed"]);
}

#[tokio::test(start_paused = true)]
async fn nodes_keep_the_private_addresses_of_their_kubelets() {
    let lab = lab();
    let provider = provider(&lab).await;
    let list = instances(&provider).list().await.unwrap();
    let server = list.get(&"hrobot://321".parse().unwrap()).unwrap();
    let mut known = node(server);
    for ip in ["10.1.0.5", "fd00::5", "192.0.2.65"] {
        known
            .addresses
            .push(NodeAddress::internal(ip.parse().unwrap()));
    }
    let addresses = instances(&provider).addresses(server, &known);
    let shown: Vec<_> = addresses
        .iter()
        .map(|address| (address.kind, address.address.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (AddressKind::Hostname, "metal-321"),
            (AddressKind::ExternalIp, "192.0.2.65"),
            (AddressKind::InternalIp, "10.1.0.5"),
        ]
    );
    assert_eq!(lab.reasons(), ["MisconfiguredInternalIP"]);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_tried_once_and_too_many_requests_are_heeded() {
    let lab = lab();
    let wrong = lab
        .provider_with(|config| {
            enable(config);
            config.robot.login = Some(("robot".to_owned(), "wrong".into()));
        })
        .await;
    for _ in 0..5 {
        let list = instances(&wrong).list().await.unwrap();
        assert!(!list.is_complete());
    }
    assert_eq!(lab.cloud.calls().of(Operation::RobotListServers), 1);

    lab.cloud.change_settings(|settings| {
        settings.robot_limit = RobotLimit {
            max_request: 0,
            interval: Duration::from_hours(1),
        };
    });
    let limited = lab
        .provider_with(|config| {
            enable(config);
            config.robot.rate_limit_wait = Duration::from_mins(5);
        })
        .await;
    for _ in 0..5 {
        let list = instances(&limited).list().await.unwrap();
        assert!(!list.is_complete());
    }
    assert_eq!(lab.cloud.calls().of(Operation::RobotListServers), 1);
}

#[tokio::test(start_paused = true)]
async fn a_password_that_is_refused_while_the_list_is_still_fresh_is_tried_once() {
    let lab = lab();
    let provider = provider(&lab).await;
    instances(&provider).list().await.unwrap();
    lab.cloud.set_robot_login("robot", "changed");
    lab.cloud.reset_calls();
    for name in ["metal-321", "metal-322", "metal-321"] {
        let id = name.replace("metal-", "hrobot://");
        let found = instances(&provider).find(&metal(name, &id), None).await;
        let state = found.instance().map(|instance| instance.state);
        assert_eq!(state, Some(InstanceState::Unknown), "{name}");
    }
    assert_eq!(lab.cloud.calls().total(), 1);
}

#[tokio::test(start_paused = true)]
async fn balancers_reach_dedicated_servers_by_address() {
    let lab = lab();
    lab.cloud.add_server(ServerSpec::named("node-001")).unwrap();
    let provider = provider(&lab).await;
    let nodes = lab.nodes(&provider).await;
    let mut desired = spec(&[80], &nodes);
    settle(&provider, &desired).await;
    let have = lab.balancer();
    assert_eq!(have.targets.len(), 4);
    let by_ip = |to: &Destination| matches!(to, Destination::Ip(_));
    assert_eq!(have.targets.iter().filter(|t| by_ip(&t.to)).count(), 2);
    lab.cloud.reset_calls();
    settle(&provider, &desired).await;
    assert_eq!(lab.mutations(), 0);

    // Robot is silent: its targets stay as they are, and the others are still followed.
    let silent = Fault::status(500);
    lab.cloud
        .faults()
        .always(Operation::RobotListServers, silent);
    tokio::time::sleep(Duration::from_mins(6)).await;
    desired.targets.remove("node-001");
    settle(&provider, &desired).await;
    assert_eq!(lab.balancer().targets.len(), 3);
    assert_eq!(lab.reasons(), ["RobotUnavailable"]);
}

#[tokio::test(start_paused = true)]
async fn without_robot_its_ids_are_another_accounts() {
    let lab = lab();
    let id = "hrobot://321".parse().unwrap();
    let without = lab.provider().await;
    assert!(matches!(
        without.recognize(&id),
        Recognition::OtherAccount { .. }
    ));
    let balancers_only = lab
        .provider_with(|config| config.robot.enabled = true)
        .await;
    assert_eq!(balancers_only.recognize(&id), Recognition::Ours);
    let found = instances(&balancers_only)
        .find(&metal("metal-321", "hrobot://321"), None)
        .await;
    assert!(matches!(found, Existence::Unknown(Doubt::NotOurs { .. })));
    assert_eq!(
        without.recognize(&"hcloud://1".parse().unwrap()),
        Recognition::Ours
    );
    let foreign = "aws:///a/i-1".parse().unwrap();
    assert_eq!(without.recognize(&foreign), Recognition::Foreign);
    let odd = "hcloud://x".parse().unwrap();
    assert!(matches!(
        without.recognize(&odd),
        Recognition::Malformed { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_dedicated_server_does_not_confirm_a_cloud_server_but_a_cloud_server_does() {
    let lab = lab();
    lab.cloud.add_server(ServerSpec::named("node-001")).unwrap();
    let provider = provider(&lab).await;
    let list = instances(&provider).list().await.unwrap();
    let gone = lab.cloud.servers()[0].clone();
    let known = list.get(&format!("hcloud://{}", gone.id).parse().unwrap());
    let gone_node = node(known.unwrap());
    let metal = list.get(&"hrobot://321".parse().unwrap()).unwrap();
    let known_instance = KnownInstance::of(metal, list.scope(), list.taken());
    lab.cloud.destroy_server(gone.id).unwrap();
    let found = instances(&provider)
        .find(&gone_node, Some(&known_instance))
        .await;
    assert!(matches!(found, Existence::Gone(_)), "{found:?}");
    lab.cloud.destroy_server(lab.cloud.servers()[0].id).unwrap();
    let found = instances(&provider)
        .find(&gone_node, Some(&known_instance))
        .await;
    assert!(matches!(
        found,
        Existence::Unknown(Doubt::NothingElseSeen { .. })
    ));
}

/// The Go CCM refuses to start with both.
#[tokio::test(start_paused = true)]
async fn routes_lead_to_cloud_servers_beside_dedicated_ones() {
    let lab = lab();
    let provider = lab
        .provider_with(|config| {
            enable(config);
            config.network = Some("kube".to_owned());
        })
        .await;
    let nodes = lab.nodes(&provider).await;
    assert_eq!(nodes.len(), 3, "one of the cloud, two dedicated");
    let changes: Vec<_> = nodes
        .iter()
        .zip(["10.244.0.0/24", "10.244.1.0/24", "10.244.2.0/24"])
        .map(|(node, destination)| {
            RouteChange::Create(Route {
                name: String::new(),
                destination: destination.parse().unwrap(),
                target: RouteTarget::node(node),
                blackhole: false,
                follows_addresses: true,
            })
        })
        .collect();
    let results = routes(&provider).apply(&changes).await;
    for (node, result) in nodes.iter().zip(&results) {
        let kind = result.as_ref().err().map(CloudError::kind);
        let expected = node
            .name
            .starts_with("metal")
            .then_some(ErrorKind::Unsupported);
        assert_eq!(kind, expected, "{}", node.name);
    }
    assert_eq!(lab.mutations(), 1);
    let listed = routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap();
    let targets: Vec<_> = listed
        .iter()
        .map(|route| route.target.node_name())
        .collect();
    assert_eq!(targets, [Some("node-000")]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_went_to_another_server_is_not_taken_from_an_old_list() {
    let rename = |lab: &Lab, number: u64, name: &str| {
        let servers = lab.cloud.robot_servers();
        let mut server = servers.into_iter().find(|s| s.number == number).unwrap();
        name.clone_into(&mut server.name);
        lab.cloud.add_robot_server(server);
    };
    for (case, is_given_back) in [("renamed", false), ("given back", true)] {
        let lab = lab();
        let provider = provider(&lab).await;
        let machines = instances(&provider);
        machines.list().await.unwrap();
        // Another server gets the name before it is time to list them again.
        if is_given_back {
            lab.cloud.remove_robot_server(321);
        } else {
            rename(&lab, 321, "spare");
        }
        rename(&lab, 322, "metal-321");
        let newcomer = NodeFacts {
            provider_id: None,
            ..metal("metal-321", "hrobot://0")
        };
        let list = machines.list().await.unwrap();
        let matched = machines.identify(&newcomer, &list);
        assert_eq!(matched, Match::None, "{case}: it has to be looked up");
        let found = machines.find(&newcomer, None).await;
        let id = found.instance().unwrap().id.as_str();
        assert_eq!(id, "hrobot://322", "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_caller_waits_for_the_answer_to_another_request() {
    let lab = lab();
    let provider = provider(&lab).await;
    instances(&provider).list().await.unwrap();
    let slow = Duration::from_secs(10);
    for operation in [Operation::RobotGetReset, Operation::RobotListServers] {
        lab.cloud
            .faults()
            .always(operation, Fault::Slow { by: slow });
    }
    let (one, other) = (
        metal("metal-321", "hrobot://321"),
        metal("metal-322", "hrobot://322"),
    );
    let began = tokio::time::Instant::now();
    let found = tokio::join!(
        instances(&provider).find(&one, None),
        instances(&provider).find(&other, None),
    );
    assert!(found.0.instance().is_some() && found.1.instance().is_some());
    assert_eq!(began.elapsed(), slow, "both are asked at once");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_not_tried_by_all_who_ask_at_once() {
    let lab = lab();
    let provider = provider(&lab).await;
    lab.cloud.set_robot_login("robot", "another");
    let nodes: Vec<_> = (0..8)
        .map(|number| metal("metal", &format!("hrobot://{number}")))
        .collect();
    let found = nodes
        .iter()
        .map(|node| instances(&provider).find(node, None));
    futures::future::join_all(found).await;
    let robot = |operation| lab.cloud.calls().of(operation);
    let tried = robot(Operation::RobotListServers) + robot(Operation::RobotGetServer);
    assert!(tried <= 2, "{tried}: three lock the caller out");
}
