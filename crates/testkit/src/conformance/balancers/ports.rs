//! Ports and their protocols.

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{LoadBalancerSpec, Protocol};
use futures::FutureExt as _;

use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, MIXED, SCTP, UDP, check};
use crate::conformance::emulator::Stop;
use crate::conformance::wishes::{listener, spec};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/port-added",
        "a port that is added is served, by the same balancer",
        |bench| ports(bench, &[80], &[80, 443]).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/port-removed",
        "a port that is taken away is no longer served",
        |bench| ports(bench, &[80, 443, 8080], &[443]).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/port-changed",
        "a port that changes is served in place of the old one",
        |bench| ports(bench, &[80, 443], &[81, 443]).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/node-port-changed",
        "a node port that changes is followed",
        |bench| node_port(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/ports-swapped",
        "two ports that swap their node ports are followed",
        |bench| swapped(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/udp",
        "a UDP port is served",
        |bench| protocols(bench, &[(Protocol::Udp, 53)]).boxed(),
    )
    .needing(UDP),
    check(
        LoadBalancers,
        "load-balancers/sctp",
        "an SCTP port is served",
        |bench| protocols(bench, &[(Protocol::Sctp, 3868)]).boxed(),
    )
    .needing(SCTP),
    check(
        LoadBalancers,
        "load-balancers/mixed-protocols",
        "TCP and UDP are served by one balancer, also on one port number",
        |bench| protocols(bench, &[(Protocol::Tcp, 53), (Protocol::Udp, 53)]).boxed(),
    )
    .needing(MIXED),
];

/// Settles one wish, then another, and looks whether the balancer follows.
pub(super) async fn follows(
    bench: &Bench<'_>,
    before: &LoadBalancerSpec,
    after: &LoadBalancerSpec,
) -> Done {
    bench.settle(before).await?;
    let first = bench.only_balancer()?;
    first.misses(before).map_err(Stop::Wrong)?;
    bench.settle(after).await?;
    let second = bench.only_balancer()?;
    second.misses(after).map_err(Stop::Wrong)?;
    ensure(first.id == second.id, || {
        format!("balancer {} was replaced by {}", first.id, second.id)
    })?;
    let (settled, calls) = bench.counted(bench.settle(after)).await;
    settled?;
    ensure(calls.mutating == 0, || {
        format!("{} more mutating calls for the same wish", calls.mutating)
    })
}

async fn ports(bench: &Bench<'_>, before: &[u16], after: &[u16]) -> Done {
    let nodes = bench.machines(2).await?;
    follows(bench, &spec(before, &nodes), &spec(after, &nodes)).await
}

async fn node_port(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let before = spec(&[80, 443], &nodes);
    let mut after = before.clone();
    for listener in after.listeners.iter_mut().take(1) {
        listener.node_port = Some(31_999);
    }
    follows(bench, &before, &after).await
}

async fn swapped(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let before = spec(&[80, 443], &nodes);
    let mut after = before.clone();
    let ports = before.listeners.iter().rev().map(|l| l.node_port);
    for (listener, node_port) in after.listeners.iter_mut().zip(ports) {
        listener.node_port = node_port;
    }
    follows(bench, &before, &after).await
}

async fn protocols(bench: &Bench<'_>, ports: &[(Protocol, u16)]) -> Done {
    let nodes = bench.machines(2).await?;
    let mut wish = spec(&[], &nodes);
    wish.listeners = ports.iter().map(|(p, port)| listener(*p, *port)).collect();
    bench.settle(&wish).await?;
    bench.only_balancer()?.misses(&wish).map_err(Stop::Wrong)
}
