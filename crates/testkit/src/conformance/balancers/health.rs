//! How targets are checked.

use std::time::Duration;

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{HealthCheck, HealthProbe, LoadBalancerSpec, TrafficPolicy};
use futures::FutureExt as _;

use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::{balancer_ref, check_by_policy, spec};
use crate::conformance::env::{TestEnv, ensure};

/// `healthCheckNodePort` of a Service with the `Local` policy.
const HEALTH_PORT: u16 = 32_100;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/health-check-by-traffic-policy",
        "each traffic policy has the check that the provider's own rule gives it, and a change changes it",
        |env| by_policy(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/health-check-by-http",
        "a check by HTTP has the port, path and numbers that were asked for",
        |env| by_http(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/health-check-per-port",
        "two ports are checked each in its own way",
        |env| per_port(env).boxed(),
    ),
];

/// That each port is checked as the desired state says. What the desired state leaves open, the cloud may choose.
async fn health_checks_match(env: &TestEnv<'_>, desired: &LoadBalancerSpec) -> Done {
    let seen = env.only_balancer().await?;
    for wanted in &desired.listeners {
        let listeners = seen.listeners.iter();
        let mut fitting =
            listeners.filter(|l| l.protocol == wanted.protocol && l.port == wanted.port);
        let Some(have) = fitting.next() else {
            return Err(Stop::failed(format!("port {} is missing", wanted.port)));
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

async fn by_policy(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let rule = env.balancers()?.profile(&balancer_ref("web")).health_check;
    for traffic in [
        TrafficPolicy::Cluster,
        TrafficPolicy::Local,
        TrafficPolicy::Cluster,
    ] {
        let mut desired = spec(&[80, 443], &nodes);
        desired.traffic_policy = traffic;
        if traffic == TrafficPolicy::Local {
            desired.health_check_node_port = Some(HEALTH_PORT);
        }
        for listener in &mut desired.listeners {
            listener.health_check = check_by_policy(&rule, traffic, HEALTH_PORT);
        }
        env.settle(&desired).await?;
        health_checks_match(env, &desired).await?;
    }
    Ok(())
}

pub(super) fn asked_for() -> HealthCheck {
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

async fn by_http(env: &TestEnv<'_>) -> Done {
    let mut desired = spec(&[80], &[]);
    env.settle(&desired).await?;
    for listener in &mut desired.listeners {
        listener.health_check = asked_for();
    }
    env.settle(&desired).await?;
    health_checks_match(env, &desired).await?;
    let (settled, calls) = env.counted(env.settle(&desired)).await;
    settled?;
    ensure(calls.mutating == 0, || {
        format!("{} more mutating calls for the same check", calls.mutating)
    })
}

async fn per_port(env: &TestEnv<'_>) -> Done {
    let mut desired = spec(&[80, 443], &[]);
    for listener in desired.listeners.iter_mut().take(1) {
        listener.health_check = asked_for();
    }
    env.settle(&desired).await?;
    health_checks_match(env, &desired).await
}
