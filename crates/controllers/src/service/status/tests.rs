mod finalizer;

use std::time::Duration;

use cloudkeel_api::{
    ErrorKind, Failures, LoadBalancerStatus, Options, Plan, ServiceChanges, ServiceCondition,
};
use proptest::prelude::*;
use serde_json::json;

use super::super::fixtures::{now, service};
use super::*;

fn at(ip: &str) -> Ingress {
    Ingress::Ip {
        ip: ip.parse().unwrap(),
        mode: IpMode::Vip,
    }
}

fn settled(ingress: Vec<Ingress>) -> Outcome {
    Outcome::Settled {
        status: LoadBalancerStatus {
            exists: true,
            id: None,
            ingress,
            draining: 0,
            health: Vec::new(),
        },
        changes: ServiceChanges::default(),
        done: Plan::default(),
    }
}

fn entries(value: Value) -> Vec<LoadBalancerIngress> {
    serde_json::from_value(value).unwrap()
}

/// An address with its mode.
fn ip(ip: &str, mode: Option<&str>) -> Value {
    json!([{"ip": ip, "ipMode": mode}])
}

fn assert_compare(case: &str, a: &Value, b: &Value, same: bool) {
    let (a, b) = (entries(a.clone()), entries(b.clone()));
    assert_eq!(same_ingress(&a, &b), same, "{case}");
    assert_eq!(same_ingress(&b, &a), same, "{case}, turned");
}

#[test]
fn addresses_and_modes_are_compared_by_what_they_tell_clients() {
    let plain = ip("192.0.2.1", None);
    let (vip, proxy) = (Some("VIP"), Some("Proxy"));
    let two = |a: &str, b: &str| json!([{"ip": a}, {"ip": b}]);
    for (case, a, b, same) in [
        ("both empty", &json!([]), &json!([]), true),
        ("one empty", &plain, &json!([]), false),
        ("equal", &plain, &plain, true),
        ("another ip", &plain, &ip("192.0.2.2", None), false),
        ("absent is VIP", &plain, &ip("192.0.2.1", vip), true),
        (
            "absent is not Proxy",
            &plain,
            &ip("192.0.2.1", proxy),
            false,
        ),
        ("modes differ", &ip("::1", vip), &ip("::1", proxy), false),
        (
            "two spellings",
            &ip("2001:DB8:0::1", None),
            &ip("2001:db8::1", None),
            true,
        ),
        ("not even an ip", &ip("x", None), &ip("y", None), false),
        ("order", &two("::1", "::2"), &two("::2", "::1"), false),
    ] {
        assert_compare(case, a, b, same);
    }
}

#[test]
fn names_and_ports_are_compared_by_what_they_tell_clients() {
    let plain = ip("192.0.2.1", None);
    let name = |name: &str| json!([{"hostname": name}]);
    let moded = json!([{"hostname": "a", "ipMode": "VIP"}]);
    let hollow = json!([{"ip": "192.0.2.1", "hostname": "", "ports": []}]);
    let ports = |port: u16, protocol: &str| json!([{"ip": "192.0.2.1", "ports": [{"port": port, "protocol": protocol}]}]);
    for (case, a, b, same) in [
        ("names", &name("a"), &name("a"), true),
        ("other names", &name("a"), &name("b"), false),
        ("a name has no mode", &name("a"), &moded, false),
        ("name for ip", &plain, &name("192.0.2.1"), false),
        ("empty is absent", &plain, &hollow, true),
        ("ports against none", &plain, &ports(80, "TCP"), false),
        ("equal ports", &ports(80, "TCP"), &ports(80, "TCP"), true),
        ("another port", &ports(80, "TCP"), &ports(81, "TCP"), false),
        (
            "another protocol",
            &ports(80, "TCP"),
            &ports(80, "UDP"),
            false,
        ),
    ] {
        assert_compare(case, a, b, same);
    }
}

#[test]
fn a_hostname_takes_the_place_of_addresses_only() {
    let named = |name: &str| Ingress::Hostname(name.to_owned());
    for (case, ingress, hostname, expected) in [
        (
            "none asked for",
            vec![at("::1")],
            None,
            json!([{"ip": "::1", "ipMode": "VIP"}]),
        ),
        (
            "asked for",
            vec![at("::1"), at("::2")],
            Some("web.example"),
            json!([{"hostname": "web.example"}]),
        ),
        (
            "the provider's own name wins",
            vec![named("lb.cloud")],
            Some("web.example"),
            json!([{"hostname": "lb.cloud"}]),
        ),
        ("nothing to replace", vec![], Some("web.example"), json!([])),
    ] {
        let options = Options {
            hostname: hostname.map(str::to_owned),
            ..Options::default()
        };
        let update = StatusUpdate::of(&settled(ingress), "fsn", &options);
        assert_eq!(update.ingress, Some(entries(expected)), "{case}");
    }
}

#[test]
fn a_service_may_say_whether_pods_go_past_its_balancer() {
    for (case, asked, expected) in [
        ("the cloud's own", None, "VIP"),
        ("proxy", Some(IpMode::Proxy), "Proxy"),
        ("vip", Some(IpMode::Vip), "VIP"),
    ] {
        let options = Options {
            ip_mode: asked,
            ..Options::default()
        };
        let update = StatusUpdate::of(&settled(vec![at("192.0.2.1")]), "fsn", &options);
        let expected = entries(ip("192.0.2.1", Some(expected)));
        assert_eq!(update.ingress, Some(expected), "{case}");
    }
}

#[test]
fn each_outcome_says_what_is_published() {
    let face = LoadBalancerStatus::of("7", vec![at("192.0.2.1")]);
    let pending = |status| Outcome::Pending {
        why: "the cloud is at it".to_owned(),
        check_after: Duration::from_secs(5),
        status,
        changes: ServiceChanges::default(),
        done: Plan::default(),
        acknowledged: false,
    };
    let gone = Outcome::Gone {
        done: Plan::default(),
        kept: Vec::new(),
        acknowledged: true,
    };
    let incomplete = Outcome::Incomplete {
        status: face.clone(),
        changes: ServiceChanges::default(),
        done: Plan::default(),
        failures: Failures {
            kind: ErrorKind::Invalid,
            message: "there is no such certificate".to_owned(),
            details: None,
        },
    };
    let cloud = || "fsn".to_owned();
    for (case, outcome, published, progress) in [
        (
            "no face yet",
            pending(None),
            None,
            Progress::Pending { cloud: cloud() },
        ),
        (
            "a face already",
            pending(Some(face)),
            Some(1),
            Progress::Pending { cloud: cloud() },
        ),
        (
            "all but something",
            incomplete,
            Some(1),
            Progress::Pending { cloud: cloud() },
        ),
        ("gone", gone, Some(0), Progress::Released),
        (
            "settled",
            settled(vec![at("::1")]),
            Some(1),
            Progress::Programmed {
                cloud: cloud(),
                id: None,
                health: None,
            },
        ),
    ] {
        let update = StatusUpdate::of(&outcome, "fsn", &Options::default());
        assert_eq!(
            update.ingress.map(|entries| entries.len()),
            published,
            "{case}"
        );
        assert_eq!(update.progress, progress, "{case}");
    }
}

#[test]
fn a_balancer_that_is_not_there_yet_leaves_the_status_alone() {
    let view = service(json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}));
    let update = StatusUpdate {
        ingress: None,
        changes: ServiceChanges::default(),
        progress: Progress::Pending {
            cloud: "fsn".to_owned(),
        },
    };
    assert_eq!(update.patch(&view, now()), None);
}

#[test]
fn a_condition_that_the_provider_asks_for_is_written_when_it_differs() {
    let condition = |status| ServiceCondition {
        status,
        reason: "MixedProtocols".to_owned(),
        message: "one protocol at a time".to_owned(),
    };
    let update = |wanted| StatusUpdate {
        ingress: None,
        changes: ServiceChanges {
            conditions: [("cloud.example/PortsError".to_owned(), wanted)].into(),
            ..ServiceChanges::default()
        },
        progress: Progress::Released,
    };
    let bare = service(json!({}));
    let patch = update(Some(condition(true))).patch(&bare, now()).unwrap();
    let written = &patch["status"]["conditions"][0];
    assert_eq!(
        (&written["type"], &written["status"], &written["reason"]),
        (
            &json!("cloud.example/PortsError"),
            &json!("True"),
            &json!("MixedProtocols")
        )
    );
    let shown = service(json!({"status": {"conditions": [written]}}));
    assert_eq!(update(Some(condition(true))).patch(&shown, now()), None);
    let turned = update(Some(condition(false))).patch(&shown, now()).unwrap();
    assert_eq!(turned["status"]["conditions"][0]["status"], "False");
    let removed = update(None).patch(&shown, now()).unwrap();
    assert_eq!(removed["status"]["conditions"][0]["$patch"], "delete");
    assert_eq!(update(None).patch(&bare, now()), None);
}

#[test]
fn only_annotations_that_differ_are_written() {
    let view = service(json!({"metadata": {"annotations": {"same": "1", "old": "x", "off": "y"}}}));
    let wanted = [
        ("same", Some("1")),
        ("old", Some("new")),
        ("off", None),
        ("absent", None),
        ("fresh", Some("1")),
    ];
    let owned = |(key, value): &(&str, Option<&str>)| ((*key).to_owned(), value.map(str::to_owned));
    let update = StatusUpdate {
        ingress: None,
        changes: ServiceChanges {
            annotations: wanted.iter().map(owned).collect(),
            ..ServiceChanges::default()
        },
        progress: Progress::Released,
    };
    let patch = update.patch(&view, now()).unwrap();
    let expected = json!({"metadata": {
        "uid": "u-1",
        "annotations": {"old": "new", "off": null, "fresh": "1"},
    }});
    assert_eq!(patch, expected);
}

/// What the API server makes of a patch.
fn applied(before: &ServiceView, patch: &Value) -> ServiceView {
    let mut after = before.clone();
    if let Some(ingress) = patch.pointer("/status/loadBalancer/ingress") {
        after.ingress = match ingress {
            Value::Null => Vec::new(),
            list => entries(list.clone()),
        };
    }
    for (key, value) in patch
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        match value.as_str() {
            Some(text) => after.annotations.insert(key.clone(), text.to_owned()),
            None => after.annotations.remove(key),
        };
    }
    after
}

fn any_ingress() -> impl Strategy<Value = Ingress> {
    let ip = prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::from(bits.to_be_bytes())),
        any::<u128>().prop_map(|bits| IpAddr::from(bits.to_be_bytes())),
    ];
    let mode = prop::sample::select(vec![IpMode::Vip, IpMode::Proxy]);
    prop_oneof![
        (ip, mode).prop_map(|(ip, mode)| Ingress::Ip { ip, mode }),
        "[a-z]{1,8}".prop_map(Ingress::Hostname),
    ]
}

proptest! {
    #[test]
    fn what_was_written_once_is_not_written_again(
        had in prop::collection::vec(any_ingress(), 0..3),
        wanted in prop::collection::vec(any_ingress(), 0..3),
        annotations in prop::collection::btree_map("[ab]", prop::option::of("[xy]"), 0..3),
    ) {
        let mut view = service(json!({"metadata": {"annotations": {"a": "x"}}}));
        view.ingress = published(&had, &Options::default());
        let Outcome::Settled { status, done, .. } = settled(wanted) else { unreachable!() };
        let changes = ServiceChanges { annotations, ..ServiceChanges::default() };
        let outcome = Outcome::Settled { status, changes, done };
        let update = StatusUpdate::of(&outcome, "fsn", &Options::default());
        let after = match update.patch(&view, now()) {
            Some(patch) => applied(&view, &patch),
            None => view,
        };
        prop_assert_eq!(update.patch(&after, now()), None);
    }
}
