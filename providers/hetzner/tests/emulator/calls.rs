//! What a new balancer costs.

use std::time::Duration;

use cloudkeel_api::{DesiredState, LoadBalancerSpec, Outcome};
use cloudkeel_emulator_hetzner::{Fault, Latency, Operation, ServerSpec, Settings};
use futures::StreamExt as _;

use crate::lab::{Lab, annotate, attempt, balancers, refused, settle, spec};

/// As many Services as workers are served at once.
const WORKERS: usize = 10;

#[tokio::test(start_paused = true)]
async fn a_new_balancer_is_made_with_everything_in_one_call() {
    for (case, annotations) in [
        ("plain", &[][..]),
        (
            "with everything",
            &[
                ("algorithm-type", "least_connections"),
                ("use-private-ip", "true"),
                ("disable-public-network", "true"),
                ("protocol", "http"),
                ("uses-proxyprotocol", "true"),
                ("health-check-interval", "20s"),
            ],
        ),
    ] {
        let lab = Lab::new(20);
        let provider = lab.networked().await;
        let nodes = lab.nodes(&provider).await;
        let mut desired = spec(&[80, 443], &nodes);
        annotate(&mut desired, annotations);
        let outcome = attempt(&provider, &desired).await;
        let Outcome::Settled { status, .. } = outcome else {
            panic!("{case}: {outcome:?}");
        };
        assert!(!status.ingress.is_empty(), "{case}");
        assert_eq!(lab.mutations(), 1, "{case}: {:?}", lab.cloud.calls());
        assert!(
            lab.cloud.calls().total() <= 4,
            "{case}: {:?}",
            lab.cloud.calls()
        );
        let have = lab.balancer();
        assert_eq!((have.services.len(), have.targets.len()), (2, 20), "{case}");
        assert_eq!(have.private_net.unwrap().0, lab.network, "{case}");
        settle(&provider, &desired).await;
        assert_eq!(lab.mutations(), 1, "{case}: nothing differs");
    }
}

#[tokio::test(start_paused = true)]
async fn many_new_balancers_cost_at_most_four_calls_each_also_if_work_takes_a_while() {
    for (case, action) in [("at once", 0), ("a second", 1_000)] {
        let settings = Settings {
            latency: Latency {
                fixed: Duration::from_millis(20),
                ..Latency::default()
            },
            action_duration: Duration::from_millis(action),
            ..Settings::default()
        };
        let lab = Lab::with(20, settings);
        let provider = lab.provider().await;
        let nodes = lab.nodes(&provider).await;
        let desired_targets: Vec<LoadBalancerSpec> = (0..50)
            .map(|number| {
                let mut desired = spec(&[80], &nodes);
                desired.balancer_ref.service.uid = format!("u-{number}");
                desired
            })
            .collect();
        let made = desired_targets
            .iter()
            .map(|desired| settle(&provider, desired));
        futures::stream::iter(made)
            .buffer_unordered(WORKERS)
            .collect::<Vec<_>>()
            .await;
        let all = lab.cloud.load_balancers();
        assert_eq!(all.len(), 50, "{case}");
        assert!(all.iter().all(|b| b.targets.len() == 20), "{case}");
        let calls = lab.cloud.calls();
        assert!(calls.total() <= 200, "{case}: {calls:?}");
        assert_eq!(calls.mutations(), 50, "{case}: {calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn balancers_that_follow_a_node_share_their_reads() {
    let lab = Lab::new(3);
    let settings = |latency| {
        lab.cloud.change_settings(move |settings| {
            settings.latency.fixed = Duration::from_millis(latency);
        });
    };
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let desired = |number: usize, nodes: &[_]| {
        let mut desired = spec(&[80], nodes);
        desired.balancer_ref.service.uid = format!("u-{number}");
        desired
    };
    for number in 0..20 {
        settle(&provider, &desired(number, &nodes[..2])).await;
    }
    settings(20);
    lab.cloud.reset_calls();
    let desired_targets: Vec<_> = (0..20).map(|number| desired(number, &nodes[1..])).collect();
    let followed = desired_targets
        .iter()
        .map(|desired| settle(&provider, desired));
    futures::stream::iter(followed)
        .buffer_unordered(WORKERS)
        .collect::<Vec<_>>()
        .await;
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 40);
    assert!(calls.of(Operation::ListLoadBalancers) <= 20, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_refused_for_a_part_of_it_still_makes_a_balancer() {
    for (case, annotations, bad_server) in [
        ("a target", &[][..], true),
        (
            "a certificate",
            &[("protocol", "https"), ("http-certificates", "4711")],
            false,
        ),
        (
            "a network without room",
            &[("private-subnet-ip-range", "10.0.0.0/16")],
            false,
        ),
    ] {
        let lab = Lab::new(2);
        if bad_server {
            let lonely = ServerSpec::named("zzz").without_ipv4();
            lab.cloud.add_server(lonely).unwrap();
        }
        let provider = lab.networked().await;
        let nodes = lab.nodes(&provider).await;
        let mut desired = spec(&[80], &nodes);
        annotate(&mut desired, annotations);
        let outcome = attempt(&provider, &desired).await;
        let have = lab.balancer();
        assert_eq!(have.targets.len(), 2, "{case}: {outcome:?}");
        assert_eq!(have.labels["hcloud-ccm/service-uid"], "u-1", "{case}");
        if bad_server || !annotations[0].0.starts_with("private") {
            refused(&outcome);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_the_one_call_makes_no_second_balancer() {
    for fault in [Fault::BrokenAfter, Fault::MalformedJson] {
        let lab = Lab::new(2);
        let provider = lab.provider().await;
        let nodes = lab.nodes(&provider).await;
        let desired = spec(&[80], &nodes);
        lab.cloud
            .faults()
            .once(Operation::CreateLoadBalancer, fault);
        for _ in 0..3 {
            if balancers(&provider)
                .apply(DesiredState::Present(&desired))
                .await
                .is_ok()
            {
                break;
            }
        }
        settle(&provider, &desired).await;
        assert_eq!(lab.balancer().targets.len(), 2);
        assert_eq!(lab.cloud.calls().of(Operation::CreateLoadBalancer), 1);
    }
}
