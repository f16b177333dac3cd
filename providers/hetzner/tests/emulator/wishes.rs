//! Neutral wishes: what they mean here, and that taking one back takes its effect back.

use std::time::Duration;

use cloudkeel_api::{Algorithm, HealthCheck, HealthProbe, LoadBalancerSpec, ProxyProtocol};
use cloudkeel_testkit::hetzner::{LoadBalancer, Service};

use crate::lab::{Lab, annotate, attempt, planned, settle, spec};

/// Asks for seconds of something.
type Number = fn(&mut HealthCheck, f64);

#[tokio::test(start_paused = true)]
async fn numbers_that_the_cloud_does_not_take_are_brought_into_its_range_and_that_is_told() {
    let interval: Number = |check, value| check.interval = Some(Duration::from_secs_f64(value));
    let timeout: Number = |check, value| check.timeout = Some(Duration::from_secs_f64(value));
    for (case, change, wanted, has, told) in [
        ("half a second", interval, 0.5, (3, 10), true),
        ("four seconds and a half", interval, 4.5, (5, 10), true),
        ("seven seconds", interval, 7.0, (7, 10), false),
        ("an hour", interval, 3600.0, (60, 10), true),
        ("a tenth of a second", timeout, 0.1, (15, 1), true),
        ("two minutes", timeout, 120.0, (15, 60), true),
    ] {
        let lab = Lab::new(1);
        let provider = lab.provider().await;
        let mut wish = spec(&[80], &[]);
        change(&mut wish.listeners[0].health_check, wanted);
        settle(&provider, &wish).await;
        let check = lab.balancer().services.remove(0).health_check;
        assert_eq!((check.interval, check.timeout), has, "{case}");
        let events = lab.told();
        let is_told = events
            .iter()
            .any(|told| told.starts_with("UnsupportedOption: "));
        assert_eq!(is_told, told, "{case}: {events:?}");
        assert_eq!(planned(&provider, &wish).await, "nothing to do", "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_are_brought_into_the_range_of_the_cloud() {
    for (wanted, has) in [(0, 1), (2, 2), (100, 5)] {
        let lab = Lab::new(1);
        let provider = lab.provider().await;
        let mut wish = spec(&[80], &[]);
        wish.listeners[0].health_check.unhealthy_threshold = Some(wanted);
        settle(&provider, &wish).await;
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
        let mut wish = spec(&[80], &[]);
        annotate(&mut wish, &[("protocol", "http"), (key, value)]);
        settle(&provider, &wish).await;
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
        |wish| wish.options.internal = Some(true),
        |have| have.public_interface.to_string(),
    ),
    (
        "internal in Hetzner's words",
        |wish| annotate(wish, &[("disable-public-network", "true")]),
        |have| have.public_interface.to_string(),
    ),
    (
        "algorithm",
        |wish| wish.options.algorithm = Some(Algorithm::LeastConnections),
        |have| have.algorithm.clone(),
    ),
    (
        "PROXY protocol",
        |wish| wish.options.proxy_protocol = Some(Some(ProxyProtocol::V2)),
        |have| first(have).proxyprotocol.to_string(),
    ),
    (
        "health check numbers",
        |wish| {
            let check = &mut wish.listeners[0].health_check;
            check.interval = Some(Duration::from_secs(20));
            check.timeout = Some(Duration::from_secs(5));
            check.unhealthy_threshold = Some(2);
        },
        |have| format!("{:?}", first(have).health_check),
    ),
    (
        "health check protocol and path",
        |wish| {
            let path = "/ready".to_owned();
            wish.listeners[0].health_check.probe = HealthProbe::Http { path };
        },
        |have| format!("{:?}", first(have).health_check),
    ),
    (
        "name",
        |wish| wish.options.name = Some("web".to_owned()),
        |have| have.name.clone(),
    ),
];

#[tokio::test(start_paused = true)]
async fn a_wish_that_is_taken_back_is_undone() {
    for (case, ask, has) in TAKEN_BACK {
        for was_there in [false, true] {
            let lab = Lab::new(1);
            let provider = lab
                .provider_with(|config| {
                    config.network = Some("kube".to_owned());
                    config.load_balancers.use_private_ip = true;
                    config.load_balancers.kind = None;
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
                    config.load_balancers.kind = None;
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
                    config.load_balancers.kind = None;
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
async fn what_somebody_else_set_is_left_as_it_is() {
    let lab = Lab::new(1);
    let provider = lab.networked().await;
    let mut wish = spec(&[80], &[]);
    settle(&provider, &wish).await;
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
    settle(&provider, &wish).await;
    // A wish that agrees with it makes it ours no more than a glance does.
    wish.options.internal = Some(true);
    settle(&provider, &wish).await;
    wish.options.internal = None;
    settle(&provider, &wish).await;
    assert_eq!(lab.mutations(), 0);
    assert!(!lab.balancer().public_interface);
}

#[tokio::test(start_paused = true)]
async fn a_field_that_the_cloud_spells_in_its_own_way_settles_with_a_warning() {
    let lab = Lab::new(1);
    let provider = lab.provider().await;
    let mut wish = spec(&[80], &[]);
    annotate(
        &mut wish,
        &[
            ("health-check-protocol", "http"),
            ("health-check-http-domain", "Web.Example"),
        ],
    );
    settle(&provider, &wish).await;
    lab.cloud.reset_calls();
    let outcome = attempt(&provider, &wish).await;
    let cloudkeel_api::Outcome::Settled { done, .. } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(done.is_empty(), "{done}: it was done once");
    assert_eq!(lab.mutations(), 0);
}
