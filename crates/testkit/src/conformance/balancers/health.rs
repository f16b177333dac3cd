//! How targets are checked.

use std::time::Duration;

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{HealthCheck, HealthProbe, LoadBalancerSpec, TrafficPolicy};
use futures::FutureExt as _;

use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::Stop;
use crate::conformance::wishes::{check_by_policy, claim, spec};

/// `healthCheckNodePort` of a Service with the `Local` policy.
const HEALTH_PORT: u16 = 32_100;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/check-by-traffic-policy",
        "each traffic policy has the check that the provider's own rule gives it, and a change changes it",
        |bench| by_policy(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/check-by-http",
        "a check by HTTP has the port, path and numbers that were asked for",
        |bench| by_http(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/check-per-port",
        "two ports are checked each in its own way",
        |bench| per_port(bench).boxed(),
    ),
];

/// That each port is checked as the wish says. What the wish leaves open, the cloud may choose.
fn as_wished(bench: &Bench<'_>, wish: &LoadBalancerSpec) -> Done {
    let seen = bench.only_balancer()?;
    for wanted in &wish.listeners {
        let listeners = seen.listeners.iter();
        let mut fitting =
            listeners.filter(|l| l.protocol == wanted.protocol && l.port == wanted.port);
        let Some(have) = fitting.next() else {
            return Err(Stop::wrong(format!("port {} is missing", wanted.port)));
        };
        let (have, want) = (&have.health_check, &wanted.health_check);
        let port = want.port.or(wanted.node_port);
        let fits = have.probe == want.probe
            && have.port == port
            && (want.interval.is_none() || have.interval == want.interval)
            && (want.timeout.is_none() || have.timeout == want.timeout)
            && (want.unhealthy_threshold.is_none()
                || have.unhealthy_threshold == want.unhealthy_threshold);
        ensure(fits, || {
            let number = wanted.port;
            format!("port {number} is checked by {have:?}, asked for was {want:?} on {port:?}")
        })?;
    }
    Ok(())
}

async fn by_policy(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let rule = bench.balancers()?.profile(&claim("web")).health_check;
    for traffic in [
        TrafficPolicy::Cluster,
        TrafficPolicy::Local,
        TrafficPolicy::Cluster,
    ] {
        let mut wish = spec(&[80, 443], &nodes);
        wish.traffic_policy = traffic;
        if traffic == TrafficPolicy::Local {
            wish.health_check_node_port = Some(HEALTH_PORT);
        }
        for listener in &mut wish.listeners {
            listener.health_check = check_by_policy(&rule, traffic, HEALTH_PORT);
        }
        bench.settle(&wish).await?;
        as_wished(bench, &wish)?;
    }
    Ok(())
}

fn asked_for() -> HealthCheck {
    HealthCheck {
        probe: HealthProbe::Http {
            path: "/ready".to_owned(),
        },
        port: Some(31_080),
        interval: Some(Duration::from_secs(7)),
        timeout: Some(Duration::from_secs(4)),
        unhealthy_threshold: Some(2),
        healthy_threshold: None,
    }
}

async fn by_http(bench: &Bench<'_>) -> Done {
    let mut wish = spec(&[80], &[]);
    bench.settle(&wish).await?;
    for listener in &mut wish.listeners {
        listener.health_check = asked_for();
    }
    bench.settle(&wish).await?;
    as_wished(bench, &wish)?;
    let (settled, calls) = bench.counted(bench.settle(&wish)).await;
    settled?;
    ensure(calls.mutating == 0, || {
        format!("{} more mutating calls for the same check", calls.mutating)
    })
}

async fn per_port(bench: &Bench<'_>) -> Done {
    let mut wish = spec(&[80, 443], &[]);
    for listener in wish.listeners.iter_mut().take(1) {
        listener.health_check = asked_for();
    }
    bench.settle(&wish).await?;
    as_wished(bench, &wish)
}
