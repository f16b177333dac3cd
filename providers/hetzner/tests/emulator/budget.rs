//! What an hour costs, and what is left to others.

use std::time::Duration;

use cloudkeel_api::{ErrorKind, Route, RouteChange, RouteTarget, Shared};
use cloudkeel_emulator_hetzner::{Operation, RateLimit, Settings};

use crate::lab::{Lab, drift, instances, routes, settle, spec};

/// How often the controllers look when nothing changes: a list of machines and a survey of balancers
/// every ten minutes, the routes once an hour.
const LIST_PERIOD: Duration = Duration::from_mins(10);

#[tokio::test(start_paused = true)]
async fn a_quiet_hour_with_a_thousand_servers_costs_at_most_a_twentieth_of_the_budget() {
    let lab = Lab::new(1_000);
    let provider = lab.networked().await;
    let nodes = lab.nodes(&provider).await;
    let mut specs = Vec::new();
    for number in 0..3 {
        // As many as the smallest type takes.
        let mut spec = spec(&[80, 443], &nodes[..25]);
        spec.balancer_ref.service.uid = format!("u-{number}");
        settle(&provider, &spec).await;
        specs.push(spec);
    }
    let change = RouteChange::Create(Route {
        name: String::new(),
        destination: "10.244.0.0/24".parse().unwrap(),
        target: RouteTarget::node(&nodes[0]),
        blackhole: false,
        follows_addresses: true,
    });
    routes(&provider).apply(&[change]).await.remove(0).unwrap();
    lab.cloud.reset_calls();
    for _ in 0..6 {
        tokio::time::sleep(LIST_PERIOD).await;
        let list = instances(&provider).list().await.unwrap();
        assert_eq!(list.instances().len(), 1_000);
        assert_eq!(drift(&provider, &specs).await, [0; 3]);
    }
    routes(&provider)
        .list(&Shared::of_each(&nodes))
        .await
        .unwrap();
    let calls = lab.cloud.calls();
    assert_eq!(calls.mutations(), 0);
    assert_eq!(calls.of(Operation::ListServers), 120);
    assert!(calls.total() <= 3_600 / 20, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn lists_leave_the_reserve_to_other_tools_and_urgent_calls_may_use_it() {
    let settings = Settings {
        rate_limit: Some(RateLimit {
            burst: 100,
            refill: Duration::from_hours(1),
        }),
        ..Settings::default()
    };
    let lab = Lab::with(1, settings);
    let provider = lab.provider().await;
    let nodes = lab.nodes(&provider).await;
    let mut listed = 0;
    let held_back = loop {
        match instances(&provider).list().await {
            Ok(_) => listed += 1,
            Err(error) => break error,
        }
        assert!(listed < 100, "the reserve is left");
    };
    assert!(matches!(held_back.kind(), ErrorKind::Throttled { .. }));
    assert!((70..=80).contains(&listed), "{listed} of 100");
    let found = instances(&provider).find(&nodes[0], None).await;
    assert!(found.instance().is_some(), "{found:?}");
}
