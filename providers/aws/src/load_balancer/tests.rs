//! Plans: equal state is no step, and each difference is its own.

mod addresses;
mod limits;

use std::collections::{BTreeMap, BTreeSet};

use cloudkeel_api::{
    Affinity, ClusterIdentity, HealthProbe, HealthState, Ingress, Listener, LoadBalancerSpec,
    Protocol, ServiceRef, TargetState,
};
use cloudkeel_toolkit::DesiredTarget;

use super::groups::{ROOM, Rules, balancer_rules, group_rule};
use super::observe::{Classic, GroupState};
use super::targets::TargetType;
use super::*;
use crate::wire::classic::{ClassicAttributes, ClassicBalancer};
use crate::wire::network::{GroupTarget, NetworkBalancer, NetworkListener, TargetGroup};
use crate::wire::{SecurityGroup, Subnet};

const NAME: &str = "a123456781234123412341234567 89ab";

fn name() -> String {
    NAME.replace(' ', "")
}

fn facts() -> Facts {
    Facts {
        cluster: ClusterTag {
            id: "x".to_owned(),
            has_legacy: false,
        },
        cluster_name: "kubernetes".to_owned(),
        region: "us-east-1".to_owned(),
        vpc: "vpc-1".to_owned(),
        default_type: BalancerType::Classic,
        elb_security_group: None,
        disable_ingress: false,
        manages_nlb_groups: false,
        probe_mode: None,
        shared_probe: HealthCheckPolicy::kube_proxy(),
    }
}

/// A Service with one port, and annotations without their prefix.
fn service(annotations: &[(&str, &str)]) -> LoadBalancerSpec {
    let cluster = ClusterIdentity {
        name: "kubernetes".to_owned(),
        uid: None,
        pod_cidrs: vec![],
    };
    let service = ServiceRef {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "12345678-1234-1234-1234-123456789abc".to_owned(),
    };
    let mut spec = LoadBalancerSpec::plain(BalancerRef::of(cluster, service));
    spec.listeners = vec![Listener::tcp(80, 30_080)];
    for (key, value) in annotations {
        let key = format!("{}{key}", key::PREFIX);
        spec.balancer_ref
            .annotations
            .insert(key, (*value).to_owned());
    }
    spec
}

fn group(id: &str, name: &str, rules: Rules) -> SecurityGroup {
    SecurityGroup {
        id: id.to_owned(),
        name: name.to_owned(),
        tags: facts().cluster.owned(),
        rules,
        ..SecurityGroup::default()
    }
}

/// The state in which a classic balancer of the plain Service is right.
fn settled(spec: &LoadBalancerSpec) -> Observed {
    let desired = Desired::of(spec, &facts()).unwrap();
    let subnet = Subnet {
        id: "subnet-1".to_owned(),
        zone: "us-east-1a".to_owned(),
        cidr: "10.0.0.0/24".to_owned(),
        ..Subnet::default()
    };
    let target = DesiredTarget {
        node: "node-1".to_owned(),
        zone: None,
        state: TargetState::Serving,
    };
    let mut have = Observed::new(&spec.balancer_ref, desired.kind);
    have.targets.wanted.places = BTreeMap::from([("i-1".to_owned(), target)]);
    have.targets.node_groups = Ok(["sg-nodes".to_owned()].into());
    have.subnets = Ok(vec![subnet]);
    let anywhere = ["0.0.0.0/0".parse().unwrap()];
    let own = format!("k8s-elb-{}", name());
    have.groups = vec![
        group("sg-own", &own, balancer_rules("tcp", &[80], &anywhere)),
        group("sg-nodes", "nodes", [(group_rule("sg-own"), None)].into()),
    ];
    have.classic = Some(Classic {
        balancer: ClassicBalancer {
            name: name(),
            dns_name: format!("{}-1.us-east-1.elb.amazonaws.com", name()),
            is_internal: false,
            listeners: classic::listeners(&desired).unwrap(),
            listener_policies: BTreeMap::new(),
            backend_policies: BTreeMap::new(),
            policies: BTreeSet::new(),
            subnets: ["subnet-1".to_owned()].into(),
            groups: ["sg-own".to_owned()].into(),
            instances: ["i-1".to_owned()].into(),
            check: classic::check(&desired, &facts()),
        },
        attributes: ClassicAttributes {
            idle_timeout: 60,
            draining_timeout: Some(300),
            ..ClassicAttributes::default()
        },
        tags: Some(desired.tags.clone()),
        health: Vec::new(),
    });
    have.desired = Some(desired);
    have
}

/// The plan for a Service whose balancer was right for the plain one.
fn texts(
    annotations: &[(&str, &str)],
    change: impl FnOnce(&mut Observed, &mut Desired),
) -> Vec<String> {
    let mut have = settled(&service(&[]));
    let mut desired = Desired::of(&service(annotations), &facts()).unwrap();
    change(&mut have, &mut desired);
    let steps = classic_plan::plan(&desired, &have, &facts()).unwrap();
    steps.iter().map(ToString::to_string).collect()
}

/// A difference: its annotations, how the state differs, and the steps.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    fn(&mut Observed, &mut Desired),
    &'static [&'static str],
);

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_classic_balancer_that_is_right_needs_no_step_and_each_difference_one() {
    let nothing: fn(&mut Observed, &mut Desired) = |_, _| {};
    let cases: [Case; 12] = [
        ("equal", &[], nothing, &[]),
        (
            "idle timeout",
            &[("connection-idle-timeout", "90")],
            nothing,
            &["set attributes"],
        ),
        (
            "health",
            &[("healthcheck-interval", "20")],
            nothing,
            &["check TCP:30080 every 20s"],
        ),
        (
            "PROXY protocol",
            &[("proxy-protocol", "*")],
            nothing,
            &[
                "create policy k8s-proxyprotocol-enabled",
                "send PROXY protocol to port 30080",
            ],
        ),
        (
            "tags",
            &[("additional-resource-tags", "a=1,b")],
            nothing,
            &["add tags a, b"],
        ),
        (
            "groups of the operator",
            &[("security-groups", "sg-7")],
            nothing,
            &[
                "apply security groups sg-7",
                "let sg-7 into nodes' security group sg-nodes",
                "remove 1 rules from security group sg-nodes",
                "delete security group sg-own (k8s-elb-a12345678123412341234123456789ab)",
            ],
        ),
        (
            "a port",
            &[],
            |_, desired| desired.ports = vec![Listener::tcp(81, 30_080)],
            &[
                "delete listeners on 80",
                "create listeners on 81",
                "add 1 rules to security group sg-own",
                "remove 1 rules from security group sg-own",
            ],
        ),
        (
            "a target",
            &[],
            |have, _| {
                let places = &mut have.targets.wanted.places;
                let one = places.remove("i-1").unwrap();
                places.insert("i-2".to_owned(), one);
            },
            &["register i-2", "deregister i-1"],
        ),
        (
            "a subnet",
            &[],
            |have, _| have.subnets.as_mut().unwrap()[0].id = "subnet-2".to_owned(),
            &["leave subnets subnet-1", "enter subnets subnet-2"],
        ),
        (
            "closed nodes",
            &[],
            |have, _| have.groups[1].rules.clear(),
            &["let sg-own into nodes' security group sg-nodes"],
        ),
        (
            "unknown groups of nodes",
            &[],
            |have, _| have.targets.node_groups = Err("several".to_owned()),
            &[],
        ),
        (
            "no tags to read",
            &[("additional-resource-tags", "a=1")],
            |have, _| have.classic.as_mut().unwrap().tags = None,
            &[],
        ),
    ];
    for (case, annotations, change, expected) in cases {
        assert_eq!(texts(annotations, change), expected, "{case}");
    }
}

#[test]
fn certificates_decide_the_protocols_of_a_classic_balancer() {
    const CERT: (&str, &str) = ("ssl-cert", "arn:aws:acm:1");
    for (case, annotations, expected) in [
        ("plain", vec![], "TCP/TCP"),
        (
            "http without a certificate",
            vec![("backend-protocol", "http")],
            "HTTP/HTTP",
        ),
        ("a certificate", vec![CERT], "SSL/TCP"),
        (
            "http",
            vec![CERT, ("backend-protocol", "http")],
            "HTTPS/HTTP",
        ),
        (
            "https",
            vec![CERT, ("backend-protocol", "https")],
            "HTTPS/HTTPS",
        ),
        ("ssl", vec![CERT, ("backend-protocol", "ssl")], "SSL/SSL"),
        (
            "another port",
            vec![CERT, ("ssl-ports", "443,https")],
            "TCP/TCP",
        ),
        ("this port", vec![CERT, ("ssl-ports", "443,80")], "SSL/TCP"),
    ] {
        let desired = Desired::of(&service(&annotations), &facts()).unwrap();
        let listeners = classic::listeners(&desired).unwrap();
        let shown = format!(
            "{}/{}",
            listeners[0].protocol, listeners[0].instance_protocol
        );
        assert_eq!(shown, expected, "{case}");
        assert_eq!(
            listeners[0].certificate.is_some(),
            listeners[0].protocol.contains('S'),
            "{case}"
        );
    }
    let desired = Desired::of(&service(&[CERT, ("backend-protocol", "grpc")]), &facts()).unwrap();
    let error = classic::listeners(&desired).unwrap_err();
    assert!(error.contains("\"grpc\": expected `http`"), "{error}");
}

#[test]
fn health_checks_are_those_of_the_go_ccm() {
    let target = |spec: &LoadBalancerSpec, facts: &Facts| {
        let desired = Desired::of(spec, facts).unwrap();
        let check = classic::check(&desired, facts).unwrap();
        (check.target, check.interval, check.unhealthy)
    };
    assert_eq!(
        target(&service(&[]), &facts()),
        ("TCP:30080".to_owned(), 10, 6)
    );
    let secure = service(&[("backend-protocol", "ssl")]);
    assert_eq!(target(&secure, &facts()).0, "SSL:30080");
    let mut local = service(&[]);
    local.traffic_policy = cloudkeel_api::TrafficPolicy::Local;
    let check = &mut local.listeners[0].health_check;
    check.probe = HealthProbe::Http {
        path: "/healthz".to_owned(),
    };
    check.port = Some(32_100);
    assert_eq!(target(&local, &facts()).0, "HTTP:32100/healthz");
    let own = [
        ("healthcheck-protocol", "http"),
        ("healthcheck-port", "8080"),
        ("healthcheck-path", "/up"),
    ];
    assert_eq!(target(&service(&own), &facts()).0, "HTTP:8080/up");
}

#[test]
fn what_cannot_be_met_is_named_with_what_would_be_right() {
    for (case, annotations, part) in [
        (
            "no boolean",
            &[("access-log-enabled", "yes")][..],
            "expected `true` or `false`",
        ),
        (
            "another proxy value",
            &[("proxy-protocol", "tcp")],
            "expected `*`",
        ),
        (
            "extra groups of an NLB",
            &[("type", "nlb"), ("extra-security-groups", "sg-1")],
            "network load balancers have none",
        ),
        (
            "attributes of a classic one",
            &[("target-group-attributes", "proxy_protocol_v2.enabled=true")],
            "classic load balancers have none",
        ),
        (
            "another attribute",
            &[("type", "nlb"), ("target-group-attributes", "a=b")],
            "expected `preserve_client_ip.enabled`",
        ),
    ] {
        let desired = Desired::of(&service(annotations), &facts()).unwrap();
        let error = desired.check_readable().unwrap_err();
        assert!(error.message().contains(part), "{case}: {error}");
    }
    let mut sticky = service(&[]);
    sticky.affinity = Affinity::ClientIp {
        timeout: std::time::Duration::from_mins(1),
    };
    sticky.listeners.push(Listener {
        protocol: Protocol::Udp,
        ..Listener::tcp(53, 30_053)
    });
    let desired = Desired::of(&sticky, &facts()).unwrap();
    let error = desired.check_readable().unwrap_err();
    for part in ["sessionAffinity", "TCP and UDP"] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    let elsewhere = Desired::of(&service(&[("type", "external")]), &facts()).unwrap_err();
    assert_eq!(
        elsewhere.kind(),
        cloudkeel_api::ErrorKind::ImplementedElsewhere
    );
}

#[test]
fn the_published_name_says_of_which_kind_a_balancer_is() {
    let mut spec = service(&[]);
    for (hostname, kind) in [
        ("a-1.us-east-1.elb.amazonaws.com", BalancerType::Classic),
        ("a-1.elb.us-east-1.amazonaws.com", BalancerType::Nlb),
    ] {
        spec.balancer_ref.ingress = vec![Ingress::Hostname(hostname.to_owned())];
        let desired = Desired::of(&spec, &facts()).unwrap();
        assert_eq!(desired.kind, kind, "{hostname}");
        assert_eq!(
            desired.wrong.is_empty(),
            kind == BalancerType::Classic,
            "{hostname}"
        );
    }
}

fn registered(id: &str, health: HealthState) -> GroupTarget {
    GroupTarget {
        id: id.to_owned(),
        is_for_all_zones: false,
        is_draining: false,
        health,
    }
}

/// The state in which a network balancer of the Service is right.
fn settled_network(spec: &LoadBalancerSpec) -> Observed {
    let desired = Desired::of(spec, &facts()).unwrap();
    let mut have = settled(&service(&[]));
    let mapping = nlb::mappings(&desired, &have.service, TargetType::Instance, &facts())
        .unwrap()
        .remove(0);
    let subnets = have.subnets.clone().unwrap();
    let rules = nlb::node_rules(
        &name(),
        std::slice::from_ref(&mapping),
        &desired.ranges,
        &subnets,
        ROOM,
    );
    (have.kind, have.classic) = (BalancerType::Nlb, None);
    have.groups = vec![group("sg-nodes", "nodes", rules)];
    let balancer = NetworkBalancer {
        arn: "arn:lb".to_owned(),
        name: name(),
        dns_name: "x".to_owned(),
        is_internal: false,
        balancer_type: "network".to_owned(),
        state: "active".to_owned(),
        subnets: ["subnet-1".to_owned()].into(),
        groups: BTreeSet::new(),
    };
    have.network = Some(NetworkState {
        attributes: nlb::attributes(&desired),
        listeners: vec![NetworkListener {
            arn: "arn:listener".to_owned(),
            port: 80,
            protocol: "TCP".to_owned(),
            ssl_policy: None,
            certificate: None,
            group: Some("arn:group".to_owned()),
        }],
        groups: vec![GroupState {
            group: TargetGroup {
                arn: "arn:group".to_owned(),
                name: mapping.group_name,
                target_type: "instance".to_owned(),
                protocol: "TCP".to_owned(),
                port: 30_080,
                check: mapping.check,
                balancers: ["arn:lb".to_owned()].into(),
            },
            targets: vec![registered("i-1", HealthState::Healthy)],
            attributes: BTreeMap::new(),
        }],
        vpc: "vpc-1".to_owned(),
        wanted_tags: desired.tags.clone(),
        balancer,
    });
    have.desired = Some(desired);
    have
}

#[test]
fn a_network_balancer_that_is_right_needs_no_step_and_each_difference_one() {
    const NLB: (&str, &str) = ("type", "nlb");
    for (case, annotations, expected) in [
        ("equal", vec![NLB], vec![]),
        (
            "cross zone",
            vec![NLB, ("cross-zone-load-balancing-enabled", "true")],
            vec!["set attributes"],
        ),
        (
            "thresholds",
            vec![NLB, ("healthcheck-healthy-threshold", "5")],
            vec!["check TCP on traffic-port by k8s-default-web-"],
        ),
        (
            "another interval is another group",
            vec![NLB, ("healthcheck-interval", "10")],
            vec![
                "serve TCP port 80 by target group k8s-default-web-",
                "delete target group k8s-default-web-",
            ],
        ),
        (
            "TLS",
            vec![NLB, ("ssl-cert", "arn:cert")],
            vec!["serve TLS port 80"],
        ),
    ] {
        let have = settled_network(&service(&[NLB]));
        let desired = Desired::of(&service(&annotations), &facts()).unwrap();
        let steps = nlb_plan::plan(&desired, &have, &facts()).unwrap();
        let texts: Vec<_> = steps.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), expected.len(), "{case}: {texts:?}");
        for (text, begin) in texts.iter().zip(expected) {
            assert!(text.starts_with(begin), "{case}: {text}");
        }
    }
}

#[test]
fn a_removal_takes_everything_and_nothing_of_others() {
    let have = settled(&service(&[]));
    let steps: Vec<_> = classic_plan::remove(&have, &name())
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        steps,
        [
            "delete classic load balancer a12345678123412341234123456789ab",
            "remove 1 rules from security group sg-nodes",
            "delete security group sg-own (k8s-elb-a12345678123412341234123456789ab)",
        ]
    );
    let have = settled_network(&service(&[("type", "nlb")]));
    let steps = nlb_plan::remove(&have, &name(), &facts());
    assert_eq!(
        steps.len(),
        3,
        "the balancer, its group, the rules of Nodes: {steps:?}"
    );
    let released = nlb_plan::release(&have, &facts());
    assert_eq!(released.len(), 1);
}

#[test]
fn a_group_of_its_own_has_the_additional_tags_as_the_go_ccm_gives_them() {
    for (kind, is_managed) in [("classic", false), ("nlb", true)] {
        let spec = service(&[("type", kind), ("additional-resource-tags", "team=web")]);
        let facts = Facts {
            manages_nlb_groups: is_managed,
            ..facts()
        };
        let desired = Desired::of(&spec, &facts).unwrap();
        let mut have = settled(&spec);
        have.kind = desired.kind;
        (have.classic, have.groups) = (None, Vec::new());
        let steps = match desired.kind {
            BalancerType::Classic => classic_plan::plan(&desired, &have, &facts),
            BalancerType::Nlb => nlb_plan::plan(&desired, &have, &facts),
        };
        let calls: Vec<_> = steps
            .unwrap()
            .into_iter()
            .flat_map(|step| step.calls)
            .collect();
        let create = calls.iter().find(|it| it.action == "CreateSecurityGroup");
        let create = format!("{:?}", create.unwrap());
        assert!(create.contains("team"), "{kind}: {create}");
        assert!(create.contains("kubernetes.io/cluster/x"), "{create}");
        assert!(!create.contains(SERVICE), "{kind}: {create}");
    }
}

#[test]
fn tags_that_say_whose_a_balancer_is_cannot_be_asked_for() {
    let forged = [
        "team=web,kubernetes.io/service-name=b/shop",
        "kubernetes.io/cluster/y=owned",
        "kubernetes.io/cluster/x=shared",
        "KubernetesCluster=y",
    ];
    for (kind, forged) in ["classic", "nlb"]
        .iter()
        .flat_map(|kind| forged.map(|it| (kind, it)))
    {
        let spec = service(&[("type", kind), ("additional-resource-tags", forged)]);
        let desired = Desired::of(&spec, &facts()).unwrap();
        let expected = facts().cluster.of_service(&spec.balancer_ref.service);
        assert_eq!(desired.tags, expected, "{kind}");
        let wrong = format!("{:?}", desired.wrong);
        for part in ["additional-resource-tags", "expected tags other than"] {
            assert!(wrong.contains(part), "{kind}: {wrong}");
        }
    }
}
