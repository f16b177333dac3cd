//! What is there, what is wished, and the steps between.

use cloudkeel_api::{ErrorKind, Plan};

use super::super::certificate::Certificates;
use super::super::step::{NewCertificate, Place};
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
    let mut wish = spec(&[80], &[1]);
    let nothing = Observed {
        kind: Some(lb11()),
        ..Observed::default()
    };
    let made = steps(&wish, &nothing, &facts());
    let [Step::Create(new)] = made.as_slice() else {
        panic!("{made:?}");
    };
    assert_eq!(new.labels, own_labels());
    assert_eq!(
        new.body(),
        serde_json::json!({
            "name": "au1",
            "load_balancer_type": 1,
            "labels": own_labels(),
            "location": "fsn1",
        })
    );
    annotate(
        &mut wish,
        &[
            ("name", "web"),
            ("location", ""),
            ("network-zone", "eu-central"),
            ("algorithm-type", "least_connections"),
            ("disable-public-network", "true"),
        ],
    );
    let made = steps(&wish, &nothing, &in_network());
    let [Step::Create(new)] = made.as_slice() else {
        panic!("{made:?}");
    };
    assert_eq!(new.place, Place::NetworkZone("eu-central".into()));
    assert_eq!(new.algorithm, Some(Algorithm::LeastConnections));
    assert_eq!((new.name.as_str(), new.public), ("web", Some(false)));
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
        let nothing = Observed {
            kind: Some(lb11()),
            ..Observed::default()
        };
        let mut steps = plan(Wish::Present(&spec), &nothing, &facts)?;
        match steps.remove(0) {
            Step::Create(new) => Ok::<_, cloudkeel_api::CloudError>(new.place),
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
    let mut wish = spec(&[80], &[1]);
    annotate(&mut wish, &[("use-private-ip", "true")]);
    let error = plan(Wish::Present(&wish), &ours(settled()), &facts()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("HCLOUD_NETWORK"), "{error}");
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
            "numbers of the check that nobody asked for",
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
    let mut wish = spec(&[80, 53], &[1, 2]);
    wish.listeners[1].protocol = api::Protocol::Udp;
    assert_eq!(steps(&wish, &ours(settled()), &facts()), []);
    let mut have = settled();
    have.services.push(service(53));
    let found = calls(&steps(&wish, &ours(have), &facts()));
    assert_eq!(found, [r#"delete_service {"listen_port":53}"#]);
}

#[test]
fn a_port_without_a_node_port_is_refused() {
    let mut wish = spec(&[80], &[]);
    wish.listeners[0].node_port = None;
    let error = plan(Wish::Present(&wish), &ours(settled()), &facts()).unwrap_err();
    assert!(error.message().contains("allocateLoadBalancerNodePorts"));
}

#[test]
fn local_traffic_is_checked_at_the_node_port_too() {
    let mut wish = spec(&[80], &[1, 2]);
    wish.traffic_policy = api::TrafficPolicy::Local;
    wish.health_check_node_port = Some(32_000);
    assert_eq!(steps(&wish, &ours(settled()), &facts()), []);
}

#[test]
fn a_bigger_type_comes_before_its_targets_and_a_smaller_one_after() {
    let mut wish = spec(&[80], &[1, 2, 3]);
    annotate(&mut wish, &[("type", "x")]);
    let verbs = |max_targets| {
        let mut have = ours(settled());
        have.kind = Some(kind(2, "x", max_targets));
        let found = changes(steps(&wish, &have, &facts()));
        found.iter().map(Change::verb).collect::<Vec<_>>()
    };
    assert_eq!(verbs(75), ["change_type", "add_target"]);
    assert_eq!(verbs(3), ["add_target", "change_type"]);
}

#[test]
fn networks_that_are_not_ours_are_left() {
    let wish = spec(&[80], &[1, 2]);
    let mut have = settled();
    have.private_net = vec![BalancerNet {
        network: 99,
        ip: "10.9.0.1".parse().unwrap(),
    }];
    let detach = r#"detach_from_network {"network":99}"#;
    let attach = r#"attach_to_network {"network":7}"#;
    let found = |facts| calls(&steps(&wish, &ours(have.clone()), &facts));
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
    let mut wish = spec(&[80], &[1]);
    annotate(
        &mut wish,
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
        verbs(&wish, &have),
        [
            "remove_target",
            "add_target",
            "remove_target",
            "disable_public_interface"
        ]
    );
    annotate(
        &mut wish,
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
        verbs(&wish, &ours(have)),
        ["enable_public_interface", "remove_target", "add_target"]
    );
}

#[test]
fn a_service_waits_for_its_certificate_and_nothing_else_does() {
    let mut wish = spec(&[443], &[1]);
    annotate(
        &mut wish,
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
        let steps = steps(&wish, &have, &facts());
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
fn a_certificate_that_cannot_be_had_is_told_when_all_else_is_done() {
    let mut wish = spec(&[443], &[1]);
    annotate(
        &mut wish,
        &[("protocol", "https"), ("http-certificates", "x")],
    );
    let planned = |balancer: Option<LoadBalancer>| {
        let have = Observed {
            certificates: Certificates::Unobtainable("there is no x".into()),
            ..balancer.map_or_else(Observed::default, ours)
        };
        let steps = plan(Wish::Present(&wish), &have, &facts());
        steps.map(|steps| Plan::of(&steps).to_string())
    };
    let followed = planned(Some(balancer())).unwrap();
    assert_eq!(followed, "+ add server 1 at load balancer 42");
    let mut settled = balancer();
    settled.targets = vec![server_target(1, false)];
    for (case, balancer) in [("settled", Some(settled)), ("not made yet", None)] {
        let error = planned(balancer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{case}");
        assert!(error.message().contains("no x"), "{case}: {error}");
    }
}

#[test]
fn what_is_to_go_is_deleted_unless_it_is_protected() {
    let claim = claim();
    let steps = |have: &Observed| plan(Wish::Absent(&claim), have, &facts()).unwrap();
    assert_eq!(steps(&ours(settled())), [Step::Delete { id: 42 }]);
    let mut kept = settled();
    kept.protection.delete = true;
    assert_eq!(steps(&ours(kept)), []);
    assert_eq!(steps(&Observed::default()), []);
}
