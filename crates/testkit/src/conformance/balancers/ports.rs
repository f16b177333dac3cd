//! Ports and their protocols.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{LoadBalancerSpec, Protocol};
use futures::FutureExt as _;

use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, MIXED, SCTP, UDP, check};
use crate::conformance::desired::{listener, spec};
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/port-added",
        "a port that is added is served, by the same balancer",
        |env| ports(env, &[80], &[80, 443]).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/port-removed",
        "a port that is removed is no longer served",
        |env| ports(env, &[80, 443, 8080], &[443]).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/port-changed",
        "a port that changes is served in place of the old one",
        |env| ports(env, &[80, 443], &[81, 443]).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/node-port-changed",
        "a node port that changes is followed",
        |env| node_port(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/ports-swapped",
        "two ports that swap their node ports are followed",
        |env| swapped(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/udp",
        "a UDP port is served",
        |env| protocols(env, &[(Protocol::Udp, 53)]).boxed(),
    )
    .needing(UDP),
    check(
        LoadBalancers,
        "load-balancers/sctp",
        "an SCTP port is served",
        |env| protocols(env, &[(Protocol::Sctp, 3868)]).boxed(),
    )
    .needing(SCTP),
    check(
        LoadBalancers,
        "load-balancers/mixed-protocols",
        "TCP and UDP are served by one balancer, also on one port number",
        |env| protocols(env, &[(Protocol::Tcp, 53), (Protocol::Udp, 53)]).boxed(),
    )
    .needing(MIXED),
];

/// Settles one desired state, then another, and checks that the balancer follows.
pub(super) async fn follows(
    env: &TestEnv<'_>,
    before: &LoadBalancerSpec,
    after: &LoadBalancerSpec,
) -> Done {
    env.settle(before).await?;
    let first = env.only_balancer().await?;
    first.check_matches(before).map_err(Stop::Failed)?;
    env.settle(after).await?;
    let second = env.only_balancer().await?;
    second.check_matches(after).map_err(Stop::Failed)?;
    ensure(first.id == second.id, || {
        format!("balancer {} was replaced by {}", first.id, second.id)
    })?;
    let (settled, calls) = env.counted(env.settle(after)).await;
    settled?;
    ensure(calls.mutating == 0, || {
        format!("{} more mutating calls for the same spec", calls.mutating)
    })
}

async fn ports(env: &TestEnv<'_>, before: &[u16], after: &[u16]) -> Done {
    let nodes = env.add_nodes(2).await?;
    follows(env, &spec(before, &nodes), &spec(after, &nodes)).await
}

async fn node_port(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let before = spec(&[80, 443], &nodes);
    let mut after = before.clone();
    for listener in after.listeners.iter_mut().take(1) {
        listener.node_port = Some(31_999);
    }
    follows(env, &before, &after).await
}

async fn swapped(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let before = spec(&[80, 443], &nodes);
    let mut after = before.clone();
    let ports = before.listeners.iter().rev().map(|l| l.node_port);
    for (listener, node_port) in after.listeners.iter_mut().zip(ports) {
        listener.node_port = node_port;
    }
    follows(env, &before, &after).await
}

async fn protocols(env: &TestEnv<'_>, ports: &[(Protocol, u16)]) -> Done {
    let nodes = env.add_nodes(2).await?;
    let mut desired = spec(&[], &nodes);
    desired.listeners = ports.iter().map(|(p, port)| listener(*p, *port)).collect();
    env.settle(&desired).await?;
    env.only_balancer_matches(&desired).await
}
