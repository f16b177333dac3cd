//! One difference at a time.

use super::*;

/// A desired state, and what has to change for it.
type Difference = (
    &'static str,
    fn(&mut LoadBalancerSpec),
    fn(&mut BalancerPatch),
);

const DIFFERENCES: &[Difference] = &[
    (
        "name",
        |want| want.options.name = Some("web".into()),
        |patch| patch.name = Some("web".into()),
    ),
    (
        "neutral type",
        |want| want.options.size = Some("large".into()),
        |patch| patch.kind = Some("large".into()),
    ),
    (
        "own type wins",
        |want| {
            want.options.size = Some("large".into());
            annotate(want, TYPE.name(), "medium");
        },
        |patch| patch.kind = Some("medium".into()),
    ),
    (
        "internal",
        |want| want.options.internal = Some(true),
        |patch| patch.internal = Some(true),
    ),
    (
        "both families",
        |want| want.families = vec![IpFamily::V6, IpFamily::V4],
        |patch| patch.families = Some(BTreeSet::from([IpFamily::V4, IpFamily::V6])),
    ),
    (
        "address",
        |want| want.address = Some([198, 18, 0, 9].into()),
        |patch| patch.address = Some([198, 18, 0, 9].into()),
    ),
    (
        "address of the other family",
        |want| {
            want.families = vec![IpFamily::V6];
            want.address = "2001:db8:1::9".parse().ok();
        },
        |patch| {
            patch.families = Some(BTreeSet::from([IpFamily::V6]));
            patch.address = "2001:db8:1::9".parse().ok();
        },
    ),
    (
        "hostname",
        |want| want.options.hostname = Some("web.example".into()),
        |patch| patch.hostname = Some(Some("web.example".into())),
    ),
    (
        "algorithm",
        |want| want.options.algorithm = Some(api::Algorithm::SourceIp),
        |patch| patch.algorithm = Some(Algorithm::SourceIp),
    ),
    (
        "PROXY protocol",
        |want| want.options.proxy_protocol = Some(Some(api::ProxyProtocol::V2)),
        |patch| patch.proxy_protocol = Some(Some(ProxyProtocol::V2)),
    ),
    (
        "source ranges",
        |want| want.source_ranges = vec!["192.0.2.7/24".parse().unwrap()],
        |patch| patch.source_ranges = Some(BTreeSet::from(["192.0.2.0/24".parse().unwrap()])),
    ),
    (
        "affinity",
        |want| {
            let timeout = Duration::from_mins(1);
            want.affinity = api::Affinity::ClientIp { timeout };
        },
        |patch| patch.affinity = Some(Some(Affinity { seconds: 60 })),
    ),
    (
        "protection",
        |want| annotate(want, PROTECTED.name(), "true"),
        |patch| patch.protected = Some(true),
    ),
];

#[test]
fn each_difference_is_one_change_of_just_that() {
    for (case, desired, change) in DIFFERENCES {
        let have = ours(built(&spec(&[80], &[1])));
        let mut want = spec(&[80], &[1]);
        desired(&mut want);
        let mut patch = BalancerPatch::default();
        change(&mut patch);
        let change = Step::Change {
            id: 7,
            version: 3,
            change: Change::Patch(Box::new(patch)),
        };
        assert_eq!(steps(&want, &have), [change], "{case}");
    }
}

#[test]
fn what_is_not_asked_for_is_left_alone_or_taken_back() {
    let want = spec(&[80], &[1]);
    let have = |edit: &dyn Fn(&mut Balancer)| {
        let mut balancer = built(&want);
        edit(&mut balancer);
        ours(balancer)
    };
    for (case, have, texts) in [
        ("type", have(&|b| b.kind = "large".into()), vec![]),
        ("protection", have(&|b| b.protected = true), vec![]),
        (
            "address",
            have(&|b| b.addresses = vec![[198, 18, 0, 77].into()]),
            vec![],
        ),
        (
            "labels of people, and no label of the cluster",
            have(&|b| {
                b.labels = BTreeMap::from([("cloudkeel.dev/service-uid".into(), "u-1".into())]);
            }),
            vec![],
        ),
        (
            "algorithm",
            have(&|b| b.algorithm = Algorithm::SourceIp),
            vec!["change algorithm of balancer 7"],
        ),
        (
            "hostname and PROXY protocol",
            have(&|b| {
                b.hostname = Some("x".into());
                b.proxy_protocol = Some(ProxyProtocol::V1);
            }),
            vec!["change hostname, PROXY protocol of balancer 7"],
        ),
        (
            "a listener dropped",
            have(&|b| b.listeners.clear()),
            vec!["set listeners of balancer 7 to 80/tcp"],
        ),
        (
            "a health check changed",
            have(&|b| b.listeners[0].health_check.retries = 9),
            vec!["set listeners of balancer 7 to 80/tcp"],
        ),
        (
            "a stray target",
            have(&|b| b.targets.push(serving(TargetAt::Machine(99)))),
            vec!["remove machine 99 at balancer 7"],
        ),
    ] {
        let planned = Plan::of(&steps(&want, &have));
        let planned: Vec<_> = planned.steps.into_iter().map(|step| step.text).collect();
        assert_eq!(planned, texts, "{case}");
    }
}

#[test]
fn listeners_carry_their_checks_and_what_is_not_said_is_the_clouds_own() {
    let mut want = spec(&[80], &[]);
    want.listeners[0].protocol = api::Protocol::Udp;
    want.listeners[0].health_check = api::HealthCheck {
        probe: HealthProbe::Http {
            path: "/healthz".into(),
        },
        port: Some(10256),
        interval: Some(Duration::from_millis(1500)),
        timeout: Some(Duration::ZERO),
        unhealthy_threshold: None,
        healthy_threshold: None,
    };
    let steps = steps(&want, &Observed::default());
    let [Step::Create(new)] = steps.as_slice() else {
        panic!("{steps:?}");
    };
    let expected = Listener {
        protocol: Protocol::Udp,
        port: 80,
        target_port: 30_080,
        health_check: HealthCheck {
            probe: Probe::Http {
                path: "/healthz".into(),
            },
            port: Some(10256),
            interval_seconds: 2,
            timeout_seconds: 1,
            ..HealthCheck::default()
        },
    };
    assert_eq!(new.listeners, [expected]);
}
