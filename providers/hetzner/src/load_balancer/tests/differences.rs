//! What is there, what is asked for, and the steps between.

use cloudkeel_api::{ErrorKind, Failures, Plan};

use super::super::certificate::Certificates;
use super::super::step::{NewCertificate, Place};
use super::super::targets::Dedicated;
use super::model::own_labels;
use super::*;
use crate::config::Algorithm;

#[test]
fn equal_state_means_no_step() {
    let settled_spec = spec(&[80], &[1, 2]);
    assert_eq!(steps(&settled_spec, &ours(settled()), &facts()), []);
    let private = ours(attached(settled()));
    assert_eq!(steps(&settled_spec, &private, &in_network()), []);
}

#[test]
fn what_is_not_there_is_made_as_the_go_ccm_makes_it() {
    let mut desired = spec(&[80], &[1]);
    let nothing = nothing(lb11());
    let made = steps(&desired, &nothing, &facts());
    let [Step::Create(new)] = made.as_slice() else {
        panic!("{made:?}");
    };
    assert_eq!(new.labels, own_labels());
    assert_eq!(
        json::body(&**new),
        serde_json::json!({
            "name": "au1",
            "load_balancer_type": 1,
            "labels": own_labels(),
            "location": "fsn1",
            "services": [{
                "protocol": "tcp",
                "listen_port": 80,
                "destination_port": 30_080,
                "health_check": {"protocol": "tcp", "port": 30_080},
            }],
            "targets": [{"type": "server", "server": {"id": 1}, "use_private_ip": false}],
        })
    );
    annotate(
        &mut desired,
        &[
            ("name", "web"),
            ("location", ""),
            ("network-zone", "eu-central"),
            ("algorithm-type", "least_connections"),
            ("disable-public-network", "true"),
        ],
    );
    let made = steps(&desired, &nothing, &in_network());
    let [Step::Create(new)] = made.as_slice() else {
        panic!("{made:?}");
    };
    assert_eq!(new.place, Place::NetworkZone("eu-central".into()));
    let algorithm = new
        .algorithm
        .as_ref()
        .map(|algorithm| algorithm.name.as_str());
    assert_eq!(algorithm, Some(Algorithm::LeastConnections.as_str()));
    assert_eq!((new.name.as_str(), new.public), ("web", Some(false)));
    assert_eq!(new.network, Some(NETWORK));
    let set = new.labels.get("cloudkeel.dev/set-for-service");
    assert_eq!(set.map(String::as_str), Some("algorithm.public"));
    let bare = serde_json::json!({
        "name": "web",
        "load_balancer_type": 1,
        "labels": new.labels,
        "network_zone": "eu-central",
        "public_interface": false,
    });
    assert_eq!(json::body(&new.bare()), bare, "what cannot be added later");
}

#[test]
fn what_cannot_be_said_in_the_one_call_comes_later() {
    let private = [("use-private-ip", "true")];
    let address = [("use-private-ip", "true"), ("private-ipv4", "10.0.0.9")];
    let several = [HetznerId::Cloud(1), HetznerId::Robot(9)];
    for (case, pairs, wanted, expected) in [
        ("all of it", &[][..], lb11(), (Some(NETWORK), 1)),
        ("private targets", &private, lb11(), (Some(NETWORK), 1)),
        ("an address in the network", &address, lb11(), (None, 0)),
        (
            "more than the type takes",
            &[],
            balancer_type(1, "tiny", 0),
            (Some(NETWORK), 0),
        ),
    ] {
        let mut desired = LoadBalancerSpec {
            targets: several.into_iter().map(target).collect(),
            ..spec(&[80], &[])
        };
        annotate(&mut desired, pairs);
        let mut have = nothing(wanted);
        have.dedicated = Dedicated::Known([(9, Some([192, 0, 2, 9].into()))].into());
        let made = steps(&desired, &have, &in_network());
        let [Step::Create(new)] = made.as_slice() else {
            panic!("{case}: {made:?}");
        };
        assert_eq!((new.network, new.targets.len()), expected, "{case}");
    }
}

#[test]
fn the_place_is_asked_for_where_it_is_not_known_and_the_location_wins() {
    let place = |location: Option<&str>, zone: Option<&str>| {
        let mut facts = facts();
        facts.defaults.location = location.map(str::to_owned);
        let mut spec = spec(&[80], &[]);
        annotate(
            &mut spec,
            &zone.map_or(vec![], |zone| vec![("network-zone", zone)]),
        );
        let nothing = nothing(lb11());
        let mut steps = plan(DesiredState::Present(&spec), &nothing, &facts)?;
        match steps.remove(0) {
            Step::Create(new) => Ok::<_, CloudError>(new.place),
            other => panic!("{other}"),
        }
    };
    assert_eq!(
        place(Some("fsn1"), Some("us-east")).unwrap(),
        Place::Location("fsn1".into())
    );
    assert_eq!(
        place(None, Some("us-east")).unwrap(),
        Place::NetworkZone("us-east".into())
    );
    let error = place(None, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("/location"), "{error}");
}

#[test]
fn private_targets_need_a_network() {
    let mut desired = spec(&[80], &[1]);
    annotate(&mut desired, &[("use-private-ip", "true")]);
    let error = plan(DesiredState::Present(&desired), &nothing(lb11()), &facts()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("HCLOUD_NETWORK"), "{error}");
    // A balancer that is there follows its Nodes all the same.
    let have = ours(settled());
    let removed = calls(&steps(&desired, &have, &facts()));
    assert_eq!(
        removed,
        [r#"remove_target {"server":{"id":2},"type":"server"}"#]
    );
    assert_eq!(unmet(&desired, &have).len(), 1);
}

fn unmet(desired: &LoadBalancerSpec, have: &Observed) -> Vec<String> {
    let unmet = report(DesiredState::Present(desired), have, &facts()).unmet;
    unmet.into_iter().map(|unmet| unmet.message).collect()
}

#[test]
fn ports_come_go_and_move() {
    for (case, ports, have, expected) in [
        (
            "one more",
            vec![80, 443],
            vec![service(80)],
            vec!["add_service"],
        ),
        (
            "one less",
            vec![80],
            vec![service(80), service(443)],
            vec!["delete_service"],
        ),
        (
            "another",
            vec![81],
            vec![service(80)],
            vec!["delete_service", "add_service"],
        ),
        (
            "another node port",
            vec![80],
            vec![Service {
                destination_port: 1,
                ..service(80)
            }],
            vec!["update_service"],
        ),
        (
            "another check",
            vec![80],
            vec![Service {
                health_check: ServiceCheck {
                    port: 1,
                    ..service(80).health_check
                },
                ..service(80)
            }],
            vec!["update_service"],
        ),
        (
            "numbers of the check that are not asked for",
            vec![80],
            vec![Service {
                health_check: ServiceCheck {
                    interval: Some(60),
                    retries: Some(1),
                    ..service(80).health_check
                },
                ..service(80)
            }],
            vec![],
        ),
    ] {
        let have = ours(LoadBalancer {
            services: have,
            ..balancer()
        });
        let found = changes(steps(&spec(&ports, &[]), &have, &facts()));
        let verbs: Vec<_> = found.iter().map(Change::verb).collect();
        assert_eq!(verbs, expected, "{case}");
    }
}

#[test]
fn what_is_not_tcp_is_left_out_and_taken_away() {
    let mut desired = spec(&[80, 53], &[1, 2]);
    desired.listeners[1].protocol = api::Protocol::Udp;
    assert_eq!(steps(&desired, &ours(settled()), &facts()), []);
    let mut have = settled();
    have.services.push(service(53));
    let found = calls(&steps(&desired, &ours(have), &facts()));
    assert_eq!(found, [r#"delete_service {"listen_port":53}"#]);
}

#[test]
fn a_port_without_a_node_port_is_refused() {
    let mut desired = spec(&[80], &[]);
    desired.listeners[0].node_port = None;
    let error = plan(DesiredState::Present(&desired), &nothing(lb11()), &facts()).unwrap_err();
    assert!(error.message().contains("allocateLoadBalancerNodePorts"));
    let have = ours(settled());
    assert!(unmet(&desired, &have)[0].contains("allocateLoadBalancerNodePorts"));
    let found = changes(steps(&desired, &have, &facts()));
    let verbs: Vec<_> = found.iter().map(Change::verb).collect();
    assert_eq!(verbs, ["remove_target"; 2], "the service stays as it is");
}

#[test]
fn local_traffic_is_checked_at_the_node_port_too() {
    let mut desired = spec(&[80], &[1, 2]);
    desired.traffic_policy = api::TrafficPolicy::Local;
    desired.health_check_node_port = Some(32_000);
    assert_eq!(steps(&desired, &ours(settled()), &facts()), []);
}

#[test]
fn a_bigger_type_comes_before_its_targets_and_a_smaller_one_after() {
    let mut desired = spec(&[80], &[1, 2, 3]);
    annotate(&mut desired, &[("type", "x")]);
    let verbs = |max_targets| {
        let mut have = ours(settled());
        have.type_change = BalancerTypeChange::To(balancer_type(2, "x", max_targets));
        let found = changes(steps(&desired, &have, &facts()));
        found.iter().map(Change::verb).collect::<Vec<_>>()
    };
    assert_eq!(verbs(75), ["change_type", "add_target"]);
    assert_eq!(verbs(3), ["add_target", "change_type"]);
}

#[test]
fn networks_that_are_not_ours_are_left() {
    let desired = spec(&[80], &[1, 2]);
    let mut have = settled();
    have.private_net = vec![BalancerNet {
        network: 99,
        ip: "10.9.0.1".parse().unwrap(),
    }];
    let detach = r#"detach_from_network {"network":99}"#;
    let attach = r#"attach_to_network {"network":7}"#;
    let found = |facts| calls(&steps(&desired, &ours(have.clone()), &facts));
    assert_eq!(found(in_network()), [detach, attach]);
    assert_eq!(found(facts()), [detach]);
    let mut in_subnet = in_network();
    for range in ["10.0.1.0/24", "10.0.1.7/24"] {
        in_subnet.defaults.private_subnet_ip_range = Some(range.parse().unwrap());
        let attach = r#"attach_to_network {"ip_range":"10.0.1.0/24","network":7}"#;
        assert_eq!(found(in_subnet.clone()), [detach, attach], "{range}");
    }
}

#[test]
fn the_public_side_opens_first_and_closes_last() {
    let mut desired = spec(&[80], &[1]);
    annotate(
        &mut desired,
        &[
            ("disable-public-network", "true"),
            ("use-private-ip", "true"),
        ],
    );
    let have = ours(attached(settled()));
    let verbs = |spec: &LoadBalancerSpec, have: &Observed| {
        let found = changes(steps(spec, have, &in_network()));
        found.iter().map(Change::verb).collect::<Vec<_>>()
    };
    assert_eq!(
        verbs(&desired, &have),
        ["add_target", "remove_target", "disable_public_interface"]
    );
    annotate(
        &mut desired,
        &[
            ("disable-public-network", "false"),
            ("use-private-ip", "false"),
        ],
    );
    let mut have = attached(LoadBalancer {
        targets: vec![server_target(1, true)],
        ..settled()
    });
    have.public_net.enabled = false;
    assert_eq!(
        verbs(&desired, &ours(have)),
        ["enable_public_interface", "add_target"]
    );
}

#[test]
fn a_service_waits_for_its_certificate_and_nothing_else_does() {
    let mut desired = spec(&[443], &[1]);
    annotate(
        &mut desired,
        &[
            ("protocol", "https"),
            ("certificate-type", "managed"),
            ("http-managed-certificate-domains", "a.example"),
        ],
    );
    let new = NewCertificate {
        name: "n".into(),
        domains: vec!["a.example".into()],
        labels: BTreeMap::new(),
    };
    let found = |certificates| {
        let mut have = ours(balancer());
        have.certificates = certificates;
        let steps = steps(&desired, &have, &facts());
        Plan::of(&steps).to_string()
    };
    assert_eq!(
        found(Certificates::Missing(new)),
        "+ add server 1 at load balancer 42\n+ issue certificate n for a.example"
    );
    assert_eq!(
        found(Certificates::Pending("n".into())),
        "+ add server 1 at load balancer 42"
    );
    assert_eq!(
        found(Certificates::Known([9].into())),
        "+ add server 1 at load balancer 42\n+ add service on port 443 at load balancer 42"
    );
}

#[test]
fn a_certificate_that_cannot_be_had_is_reported_when_all_else_is_done() {
    let mut desired = spec(&[443], &[1]);
    annotate(
        &mut desired,
        &[("protocol", "https"), ("http-certificates", "x")],
    );
    let planned = |balancer: Option<LoadBalancer>| {
        let have = Observed {
            certificates: Certificates::Unobtainable(Failures::invalid("there is no x")),
            ..balancer.map_or_else(|| nothing(lb11()), ours)
        };
        let found = steps(&desired, &have, &facts());
        (Plan::of(&found).to_string(), unmet(&desired, &have).len())
    };
    let mut settled = balancer();
    settled.targets = vec![server_target(1, false)];
    for (case, balancer, expected, left) in [
        (
            "not made yet",
            None,
            "+ create load balancer au1 (lb11) in fsn1 with 0 services and 1 targets",
            0,
        ),
        (
            "not yet as it should be",
            Some(balancer()),
            "+ add server 1 at load balancer 42",
            1,
        ),
        ("settled", Some(settled), "nothing to do", 1),
    ] {
        assert_eq!(planned(balancer), (expected.to_owned(), left), "{case}");
    }
}

#[test]
fn what_is_to_go_is_deleted_unless_it_is_protected() {
    let balancer_ref = balancer_ref();
    let steps =
        |have: &Observed| plan(DesiredState::Absent(&balancer_ref), have, &facts()).unwrap();
    assert_eq!(steps(&ours(settled())), [Step::Delete(42)]);
    let mut kept = settled();
    kept.protection.delete = true;
    let kept = ours(kept);
    assert_eq!(steps(&kept), []);
    let report = report(DesiredState::Absent(&balancer_ref), &kept, &facts());
    assert_eq!(report.kept.len(), 1);
    assert_eq!(steps(&Observed::default()), []);
}
