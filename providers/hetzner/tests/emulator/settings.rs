//! Neutral options: what they mean here, and that removing one undoes its effect.

use std::time::Duration;

use cloudkeel_api::{Algorithm, HealthCheck, HealthProbe, LoadBalancerSpec, ProxyProtocol};
use cloudkeel_emulator_hetzner::{LoadBalancer, Service};

use crate::lab::{Lab, annotate, attempt, planned, settle, spec};

/// Asks for seconds of something.
type Number = fn(&mut HealthCheck, f64);

#[tokio::test(start_paused = true)]
async fn numbers_outside_of_the_range_are_clamped_and_reported() {
    let interval: Number = |check, value| check.interval = Some(Duration::from_secs_f64(value));
    let timeout: Number = |check, value| check.timeout = Some(Duration::from_secs_f64(value));
    for (case, change, wanted, has, reported) in [
        ("half a second", interval, 0.5, (3, 10), true),
        ("four seconds and a half", interval, 4.5, (5, 10), true),
        ("seven seconds", interval, 7.0, (7, 10), false),
        ("an hour", interval, 3600.0, (60, 10), true),
        ("a tenth of a second", timeout, 0.1, (15, 1), true),
        ("two minutes", timeout, 120.0, (15, 60), true),
    ] {
        let lab = Lab::new(1);
        let provider = lab.provider().await;
        let mut desired = spec(&[80], &[]);
        change(&mut desired.listeners[0].health_check, wanted);
        settle(&provider, &desired).await;
        let check = lab.balancer().services.remove(0).health_check;
        assert_eq!((check.interval, check.timeout), has, "{case}");
        let events = lab.reported();
        let is_reported = events
            .iter()
            .any(|reported| reported.starts_with("UnsupportedOption: "));
        assert_eq!(is_reported, reported, "{case}: {events:?}");
        assert_eq!(
            planned(&provider, &desired).await,
            "nothing to do",
            "{case}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn retries_are_brought_into_the_range_of_the_cloud() {
    for (wanted, has) in [(0, 1), (2, 2), (100, 5)] {
        let lab = Lab::new(1);
        let provider = lab.provider().await;
        let mut desired = spec(&[80], &[]);
        desired.listeners[0].health_check.unhealthy_threshold = Some(wanted);
        settle(&provider, &desired).await;
        assert_eq!(lab.balancer().services[0].health_check.retries, has);
    }
}

#[tokio::test(start_paused = true)]
async fn the_clouds_own_durations_are_whole_seconds_as_the_go_ccm_sends_them_but_never_none() {
    for (key, value, has) in [
        ("health-check-interval", "500ms", 3),
        ("health-check-interval", "7900ms", 7),
        ("health-check-timeout", "900ms", 1),
        ("http-timeout-idle", "300ms", 1),
        ("http-cookie-lifetime", "20ms", 1),
    ] {
        let lab = Lab::new(1);
        let provider = lab.provider().await;
        let mut desired = spec(&[80], &[]);
        annotate(&mut desired, &[("protocol", "http"), (key, value)]);
        settle(&provider, &desired).await;
        let service = lab.balancer().services.remove(0);
        let http = service.http.unwrap();
        let number = match key {
            "health-check-interval" => service.health_check.interval,
            "health-check-timeout" => service.health_check.timeout,
            "http-timeout-idle" => http.timeout_idle,
            _ => http.cookie_lifetime,
        };
        assert_eq!(number, has, "{key}: {value}");
    }
}

/// Something that a Service asks for, in its own words or in neutral ones.
type Ask = fn(&mut LoadBalancerSpec);
/// What a balancer has of it.
type Has = fn(&LoadBalancer) -> String;

fn first(balancer: &LoadBalancer) -> &Service {
    &balancer.services[0]
}

const TAKEN_BACK: &[(&str, Ask, Has)] = &[
    (
        "internal",
        |desired| desired.options.internal = Some(true),
        |have| have.public_interface.to_string(),
    ),
    (
        "internal in Hetzner's words",
        |desired| annotate(desired, &[("disable-public-network", "true")]),
        |have| have.public_interface.to_string(),
    ),
    (
        "algorithm",
        |desired| desired.options.algorithm = Some(Algorithm::LeastConnections),
        |have| have.algorithm.clone(),
    ),
    (
        "PROXY protocol",
        |desired| desired.options.proxy_protocol = Some(Some(ProxyProtocol::V2)),
        |have| first(have).proxyprotocol.to_string(),
    ),
    (
        "health check numbers",
        |desired| {
            let check = &mut desired.listeners[0].health_check;
            check.interval = Some(Duration::from_secs(20));
            check.timeout = Some(Duration::from_secs(5));
            check.unhealthy_threshold = Some(2);
        },
        |have| format!("{:?}", first(have).health_check),
    ),
    (
        "health check protocol and path",
        |desired| {
            let path = "/ready".to_owned();
            desired.listeners[0].health_check.probe = HealthProbe::Http { path };
        },
        |have| format!("{:?}", first(have).health_check),
    ),
    (
        "name",
        |desired| desired.options.name = Some("web".to_owned()),
        |have| have.name.clone(),
    ),
];

#[tokio::test(start_paused = true)]
async fn an_annotation_that_is_removed_is_undone() {
    for (case, ask, has) in TAKEN_BACK {
        for was_there in [false, true] {
            let lab = Lab::new(1);
            let provider = lab
                .provider_with(|config| {
                    config.network = Some("kube".to_owned());
                    config.load_balancers.use_private_ip = true;
                    config.load_balancers.load_balancer_type = None;
                })
                .await;
            let nodes = lab.nodes(&provider).await;
            let plain = spec(&[80], &nodes);
            let mut asked = plain.clone();
            ask(&mut asked);
            let other = Lab::new(1);
            let elsewhere = other
                .provider_with(|config| {
                    config.network = Some("kube".to_owned());
                    config.load_balancers.use_private_ip = true;
                    config.load_balancers.load_balancer_type = None;
                })
                .await;
            settle(&elsewhere, &plain).await;
            let usual = has(&other.balancer());

            if was_there {
                settle(&provider, &plain).await;
            }
            settle(&provider, &asked).await;
            assert_ne!(has(&lab.balancer()), usual, "{case}: it is asked for");
            // Another leader only knows what it sees.
            let provider = lab
                .provider_with(|config| {
                    config.network = Some("kube".to_owned());
                    config.load_balancers.use_private_ip = true;
                    config.load_balancers.load_balancer_type = None;
                })
                .await;
            settle(&provider, &asked).await;
            assert_eq!(lab.mutations(), 0, "{case}: nothing differs");
            settle(&provider, &plain).await;
            assert_eq!(
                has(&lab.balancer()),
                usual,
                "{case}, was there: {was_there}"
            );
            lab.cloud.reset_calls();
            settle(&provider, &plain).await;
            assert_eq!(lab.mutations(), 0, "{case}: it is settled");
            let ours = lab.balancer().labels;
            assert!(
                !ours.keys().any(|key| key.contains("set")),
                "{case}: {ours:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_client_set_is_left_as_it_is() {
    let lab = Lab::new(1);
    let provider = lab.networked().await;
    let mut desired = spec(&[80], &[]);
    settle(&provider, &desired).await;
    let id = lab.balancer().id;
    lab.cloud
        .change_load_balancer(id, |balancer| {
            balancer.public_interface = false;
            balancer.algorithm = "least_connections".to_owned();
            balancer.services[0].proxyprotocol = true;
            balancer.services[0].health_check.interval = 20;
        })
        .unwrap();
    lab.cloud.reset_calls();
    settle(&provider, &desired).await;
    // A desired state that agrees with it makes it ours no more than a glance does.
    desired.options.internal = Some(true);
    settle(&provider, &desired).await;
    desired.options.internal = None;
    settle(&provider, &desired).await;
    assert_eq!(lab.mutations(), 0);
    assert!(!lab.balancer().public_interface);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_the_cloud_spells_in_its_own_way_settles_with_a_warning() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let mut desired = spec(&[80], &[]);
    annotate(
        &mut desired,
        &[
            ("health-check-protocol", "http"),
            ("health-check-http-domain", "Web.Example"),
        ],
    );
    settle(&provider, &desired).await;
    lab.cloud.reset_calls();
    let outcome = attempt(&provider, &desired).await;
    let cloudkeel_api::Outcome::Settled { done, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(done.is_empty(), "{done}: it was done once");
    assert_eq!(lab.mutations(), 0);
}
