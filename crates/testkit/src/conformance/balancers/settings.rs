//! Every other setting of a Service: given, and taken back.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{
    Affinity, Algorithm, Ingress, IpFamily, LoadBalancerSpec, LoadBalancerStatus, ProxyProtocol,
};
use futures::FutureExt as _;
use ipnet::IpNet;

use crate::conformance::actual::ActualBalancer;
use crate::conformance::adapter::Stop;
use crate::conformance::check::{
    ADDRESS, AFFINITY, Check, DUAL_STACK, Done, INTERNAL, PROXY, SOURCE_RANGES, check,
};
use crate::conformance::desired::spec;
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/source-ranges",
        "source ranges are set, changed and lifted",
        |env| source_ranges(env).boxed(),
    )
    .needing(SOURCE_RANGES),
    check(
        LoadBalancers,
        "load-balancers/affinity",
        "clients stick to a target for as long as asked, and no longer when it is lifted",
        |env| affinity(env).boxed(),
    )
    .needing(AFFINITY),
    check(
        LoadBalancers,
        "load-balancers/proxy-protocol",
        "the PROXY protocol is switched on and off, also by taking the setting back",
        |env| proxy_protocol(env).boxed(),
    )
    .needing(PROXY),
    check(
        LoadBalancers,
        "load-balancers/algorithm",
        "connections are spread as asked, and by the default when the setting is taken back",
        |env| algorithm(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/internal",
        "a balancer for the inside only is made, with an address to publish, and is public again when the setting is taken back",
        |env| internal(env).boxed(),
    )
    .needing(INTERNAL),
    check(
        LoadBalancers,
        "load-balancers/chosen-address",
        "an address that is asked for is the one that is published",
        |env| chosen_address(env).boxed(),
    )
    .needing(ADDRESS),
    check(
        LoadBalancers,
        "load-balancers/dual-stack",
        "a Service with both families is published under both",
        |env| dual_stack(env).boxed(),
    )
    .needing(DUAL_STACK),
    check(
        LoadBalancers,
        "load-balancers/name",
        "a name that is asked for is given, and a change renames",
        |env| name(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/size",
        "a size that is asked for is given, and a change resizes",
        |env| size(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/hostname",
        "a hostname that is asked for is published in place of addresses",
        |env| hostname(env).boxed(),
    ),
];

/// Settles the plain spec with a change: the balancer and its status.
async fn with(
    env: &TestEnv<'_>,
    change: impl FnOnce(&mut LoadBalancerSpec),
) -> Result<(ActualBalancer, LoadBalancerStatus), Stop> {
    let mut desired = spec(&[80], &[]);
    change(&mut desired);
    let status = env.settle(&desired).await?;
    Ok((env.only_balancer().await?, status))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, have: &T, want: &T) -> Done {
    ensure(have == want, || {
        format!("{what} is {have:?}, asked for was {want:?}")
    })
}

async fn source_ranges(env: &TestEnv<'_>) -> Done {
    let ranges = |texts: &[&str]| -> Vec<IpNet> {
        texts.iter().filter_map(|text| text.parse().ok()).collect()
    };
    for wanted in [
        ranges(&["10.0.0.0/8", "192.0.2.0/24"]),
        ranges(&["192.0.2.0/24"]),
        ranges(&[]),
    ] {
        let (seen, _) = with(env, |desired| desired.source_ranges.clone_from(&wanted)).await?;
        same(
            "source ranges",
            &seen.source_ranges,
            &wanted.into_iter().collect(),
        )?;
    }
    Ok(())
}

async fn affinity(env: &TestEnv<'_>) -> Done {
    for seconds in [Some(600), Some(60), None] {
        let timeout = seconds.map(Duration::from_secs);
        let wanted = timeout.map_or(Affinity::None, |timeout| Affinity::ClientIp { timeout });
        let (seen, _) = with(env, |desired| desired.affinity = wanted).await?;
        same("affinity", &seen.affinity, &timeout)?;
    }
    Ok(())
}

/// Whichever version the cloud has.
async fn proxy_protocol(env: &TestEnv<'_>) -> Done {
    let versions = [ProxyProtocol::V2, ProxyProtocol::V1];
    let mut refused = None;
    for version in versions {
        let wanted = Some(Some(version));
        match with(env, |desired| desired.options.proxy_protocol = wanted).await {
            Ok((seen, _)) if seen.proxy_protocol == Some(version) => {
                let (seen, _) = with(env, |_| {}).await?;
                same("PROXY protocol, taken back", &seen.proxy_protocol, &None)?;
                with(env, |desired| desired.options.proxy_protocol = wanted).await?;
                let off = Some(None);
                let (seen, _) = with(env, |desired| desired.options.proxy_protocol = off).await?;
                return same("PROXY protocol", &seen.proxy_protocol, &None);
            }
            Ok((seen, _)) => refused = Some(format!("it is {:?}", seen.proxy_protocol)),
            Err(stop) => refused = Some(stop.to_string()),
        }
    }
    let why = refused.unwrap_or_default();
    Err(Stop::failed(format!("neither version comes on: {why}")))
}

async fn algorithm(env: &TestEnv<'_>) -> Done {
    let (default, _) = with(env, |_| {}).await?;
    for wanted in [Algorithm::LeastConnections, Algorithm::RoundRobin] {
        let (seen, _) = with(env, |desired| desired.options.algorithm = Some(wanted)).await?;
        same("the algorithm", &seen.algorithm, &Some(wanted))?;
        let (seen, _) = with(env, |_| {}).await?;
        same(
            "the algorithm, taken back",
            &seen.algorithm,
            &default.algorithm,
        )?;
    }
    Ok(())
}

async fn internal(env: &TestEnv<'_>) -> Done {
    let (seen, status) = with(env, |desired| desired.options.internal = Some(true)).await?;
    same("internal", &seen.internal, &true)?;
    ensure(!status.ingress.is_empty(), || {
        "nothing is published".to_owned()
    })?;
    let (seen, _) = with(env, |_| {}).await?;
    same("internal, taken back", &seen.internal, &false)
}

fn addresses(status: &LoadBalancerStatus) -> Vec<IpAddr> {
    let ingress = status.ingress.iter();
    ingress
        .filter_map(|ingress| match ingress {
            Ingress::Ip { ip, .. } => Some(*ip),
            Ingress::Hostname(_) => None,
        })
        .collect()
}

async fn chosen_address(env: &TestEnv<'_>) -> Done {
    let Some(wanted) = env.cloud.samples().address else {
        return Err(Stop::not_playable("there is no address to ask for"));
    };
    let (seen, status) = with(env, |desired| desired.address = Some(wanted)).await?;
    same("the address", &seen.addresses, &vec![wanted])?;
    same("the published address", &addresses(&status), &vec![wanted])
}

async fn dual_stack(env: &TestEnv<'_>) -> Done {
    let both = vec![IpFamily::V4, IpFamily::V6];
    let (_, status) = with(env, |desired| desired.families.clone_from(&both)).await?;
    let families: BTreeSet<_> = addresses(&status).into_iter().map(IpFamily::of).collect();
    same(
        "the published families",
        &families,
        &both.into_iter().collect(),
    )
}

async fn name(env: &TestEnv<'_>) -> Done {
    let mut ids = Vec::new();
    for wanted in ["front-door", "back-door"] {
        let name = Some(wanted.to_owned());
        let (seen, _) = with(env, |desired| desired.options.name = name).await?;
        same("the name", &seen.name.as_str(), &wanted)?;
        ids.push(seen.id);
    }
    ids.dedup();
    ensure(ids.len() == 1, || {
        format!("a rename makes another one: {ids:?}")
    })
}

async fn size(env: &TestEnv<'_>) -> Done {
    let Some(sizes) = env.cloud.samples().sizes else {
        return Err(Stop::not_playable("there is only one size"));
    };
    for wanted in sizes {
        let size = Some(wanted.to_owned());
        let (seen, _) = with(env, |desired| desired.options.size.clone_from(&size)).await?;
        same("the size", &seen.size, &size)?;
    }
    Ok(())
}

async fn hostname(env: &TestEnv<'_>) -> Done {
    let wanted = "lb.example.com".to_owned();
    let name = Some(wanted.clone());
    let (_, status) = with(env, |desired| desired.options.hostname = name).await?;
    same(
        "the ingress",
        &status.ingress,
        &vec![Ingress::Hostname(wanted)],
    )?;
    let (_, status) = with(env, |_| {}).await?;
    ensure(!addresses(&status).is_empty(), || {
        "without a hostname no address is published".to_owned()
    })
}
