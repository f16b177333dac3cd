//! Warnings about a Service that works all the same.

use cloudkeel_api::HealthCheckPolicy::{LocalAware, NodePort};
use cloudkeel_api::ProxyProtocols;

use super::*;

/// The one warning if the feature is missing, after making sure that there is none if it is there.
fn lacking(over: &Value, remove: impl FnOnce(&mut Features)) -> String {
    let view = service(over.clone());
    assert!(warnings(&view, ABLE).is_empty(), "{over}");
    let mut features = ABLE;
    remove(&mut features);
    match warnings(&view, features).as_slice() {
        [only] => only.clone(),
        several => panic!("{over}: {several:?}"),
    }
}

fn cannot(key: &str, what: &str) -> String {
    format!("{key}: this cloud's load balancers cannot {what}")
}

#[test]
fn ports_that_the_cloud_cannot_listen_on_are_reported() {
    let port = |protocol| json!({"port": 53, "nodePort": 30053, "protocol": protocol});
    let ports = |list: &[Value]| json!({"spec": {"ports": list}});
    assert_eq!(
        lacking(&ports(&[port("UDP")]), |features| features.udp = false),
        cannot("spec.ports[0].protocol", "listen on UDP")
    );
    assert_eq!(
        lacking(&ports(&[port("SCTP")]), |features| features.sctp = false),
        cannot("spec.ports[0].protocol", "listen on SCTP")
    );
    let both = ports(&[port("TCP"), port("UDP")]);
    assert_eq!(
        lacking(&both, |features| features.mixed_protocols = false),
        cannot("spec.ports", "listen on TCP and UDP at once")
    );
}

#[test]
fn fields_that_the_cloud_cannot_honour_are_reported() {
    let spec = |field: &str, value: Value| json!({"spec": {field: value}});
    let ranges = spec("loadBalancerSourceRanges", json!(["10.0.0.0/8"]));
    assert_eq!(
        lacking(&ranges, |features| features.source_ranges = false),
        cannot("spec.loadBalancerSourceRanges", "restrict who may connect")
    );
    let affinity = spec("sessionAffinity", json!("ClientIP"));
    assert_eq!(
        lacking(&affinity, |features| features.client_affinity = false),
        cannot("spec.sessionAffinity", "keep a client on its backend")
    );
    let families = spec("ipFamilies", json!(["IPv4", "IPv6"]));
    assert_eq!(
        lacking(&families, |features| features.dual_stack = false),
        cannot("spec.ipFamilies", "have IPv4 and IPv6 at once")
    );
}

#[test]
fn annotations_that_the_cloud_cannot_honour_are_reported() {
    let annotation = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    let key = "cloudkeel.dev/lb-ip";
    assert_eq!(
        lacking(&annotation(key, "::1"), |features| features
            .chosen_address =
            false),
        cannot(key, "be given an address")
    );
    let key = "cloudkeel.dev/lb-internal";
    assert_eq!(
        lacking(&annotation(key, "true"), |features| features.internal =
            false),
        cannot(key, "be internal")
    );
    let key = "cloudkeel.dev/lb-proxy-protocol";
    for (version, has, what) in [
        ("v1", ProxyProtocols::None, "speak the PROXY protocol"),
        (
            "v1",
            ProxyProtocols::V2,
            "speak version 1 of the PROXY protocol, so version 2 is used",
        ),
        (
            "v2",
            ProxyProtocols::V1,
            "speak version 2 of the PROXY protocol, so version 1 is used",
        ),
    ] {
        let warnings = lacking(&annotation(key, version), |features| {
            features.proxy_protocol = has;
        });
        assert_eq!(warnings, cannot(key, what), "{version} of {has:?}");
    }
    let key = "cloudkeel.dev/lb-health-check-healthy-threshold";
    assert_eq!(
        lacking(&annotation(key, "5"), |features| features
            .healthy_threshold =
            false),
        cannot(key, "count successes of health checks")
    );
}

#[test]
fn typos_under_our_prefix_are_reported_with_what_was_meant() {
    let view = annotated(&[
        ("cloudkeel.dev/lb-intrnal", "true"),
        ("cloudkeel.dev/zzz", "1"),
        ("example.com/lb-intrnal", "true"),
    ]);
    assert_eq!(
        warnings(&view, ABLE),
        [
            "cloudkeel.dev/lb-intrnal is not a known annotation: did you mean \
             cloudkeel.dev/lb-internal?",
            "cloudkeel.dev/zzz is not a known annotation",
        ]
    );
}

#[test]
fn what_is_switched_off_is_not_missed() {
    let features = Features::default();
    let view = annotated(&[
        ("cloudkeel.dev/lb-internal", "false"),
        ("cloudkeel.dev/lb-proxy-protocol", "off"),
    ]);
    assert!(warnings(&view, features).is_empty());
}

#[test]
fn old_ways_are_named_with_the_new_and_shadowed_ones_with_what_wins() {
    let ip = "cloudkeel.dev/lb-ip";
    let field = json!({"spec": {"loadBalancerIP": "192.0.2.1", "loadBalancerSourceRanges": ["10.0.0.0/8"]}});
    let mut both = service(field);
    both.annotations
        .insert(SOURCE_RANGES_ANNOTATION.to_owned(), "11.0.0.0/8".to_owned());
    both.annotations
        .insert(ip.to_owned(), "192.0.2.2".to_owned());
    assert_eq!(spec(&both).address, "192.0.2.2".parse().ok());
    assert_eq!(
        warnings(&both, ABLE),
        [
            format!("{SOURCE_RANGES_ANNOTATION} has no effect: spec.loadBalancerSourceRanges wins"),
            format!("spec.loadBalancerIP has no effect: {ip} wins"),
        ]
    );
    let mut old = annotated(&[(SOURCE_RANGES_ANNOTATION, "11.0.0.0/8")]);
    old.load_balancer_ip = Some("192.0.2.1".to_owned());
    assert_eq!(
        warnings(&old, ABLE),
        [
            format!("{SOURCE_RANGES_ANNOTATION} is deprecated: use spec.loadBalancerSourceRanges"),
            format!("spec.loadBalancerIP is deprecated: use {ip}"),
        ]
    );
}

#[test]
fn a_plain_check_with_the_policy_local_is_reported() {
    let with = |annotations: Value, policy: &str| {
        service(json!({
            "metadata": {"annotations": annotations},
            "spec": {"externalTrafficPolicy": policy, "healthCheckNodePort": 32000},
        }))
    };
    let reasons_of = |view: &ServiceView, policy: HealthCheckPolicy| {
        let targets = Ok(Shared::default());
        let cluster = cluster();
        let mut setting = setting(&cluster, ABLE);
        setting.health_checks = policy;
        let draft = draft(view, targets, &setting).unwrap();
        let reasons = draft.warnings.iter().map(|warning| warning.reason);
        reasons.collect::<Vec<_>>()
    };
    let own = json!({"load-balancer.hetzner.cloud/health-check-port": "32000"});
    let neutral = json!({"cloudkeel.dev/lb-health-check-path": "/healthz"});
    for (case, view, policy, expected) in [
        ("plain", with(json!({}), "Local"), NodePort, true),
        (
            "it asks kube-proxy",
            with(json!({}), "Local"),
            LocalAware,
            false,
        ),
        (
            "the policy Cluster",
            with(json!({}), "Cluster"),
            NodePort,
            false,
        ),
        (
            "the cloud's own annotation",
            with(own, "Local"),
            NodePort,
            false,
        ),
        ("the neutral one", with(neutral, "Local"), NodePort, false),
    ] {
        let reasons = reasons_of(&view, policy);
        let is_reported = reasons.contains(&"HealthCheckIgnoresEndpoints");
        assert_eq!(is_reported, expected, "{case}: {reasons:?}");
    }
}

#[test]
fn other_clouds_that_are_no_targets_are_named() {
    let mut owner = owner("fsn", true, None);
    let without = Features {
        targets_by_address: false,
        ..ABLE
    };
    let of = |owner: &_, features| {
        Warning::of_other_clouds(owner, features).map(|warning| warning.message)
    };
    assert_eq!(of(&owner, without), None);
    owner.target_clouds = vec!["fsn".to_owned()];
    assert_eq!(
        of(&owner, without),
        None,
        "its own Nodes are none of another cloud"
    );
    owner.target_clouds = ["fsn", "dc1", "dc2"].map(str::to_owned).to_vec();
    assert_eq!(of(&owner, ABLE), None);
    let message = of(&owner, without).unwrap();
    assert!(
        message.ends_with("in fsn cannot send traffic to Nodes of dc1, dc2"),
        "{message}"
    );
}
