//! Every other field of a wish: set, and taken back.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use cloudkeel_api::Capability::LoadBalancers;
use cloudkeel_api::{
    Affinity, Algorithm, Ingress, IpFamily, LoadBalancerSpec, LoadBalancerStatus, ProxyProtocol,
};
use futures::FutureExt as _;
use ipnet::IpNet;

use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{
    ADDRESS, AFFINITY, Check, DUAL_STACK, Done, INTERNAL, PROXY, SOURCE_RANGES, check,
};
use crate::conformance::emulator::Stop;
use crate::conformance::seen::SeenBalancer;
use crate::conformance::wishes::spec;

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/source-ranges",
        "who may connect is set, changed and lifted",
        |bench| source_ranges(bench).boxed(),
    )
    .needing(SOURCE_RANGES),
    check(
        LoadBalancers,
        "load-balancers/affinity",
        "clients stick to a target for as long as asked, and no longer when it is lifted",
        |bench| affinity(bench).boxed(),
    )
    .needing(AFFINITY),
    check(
        LoadBalancers,
        "load-balancers/proxy-protocol",
        "the PROXY protocol is switched on and off, also by taking the wish back",
        |bench| proxy_protocol(bench).boxed(),
    )
    .needing(PROXY),
    check(
        LoadBalancers,
        "load-balancers/algorithm",
        "connections are spread as asked, and as usual when the wish is taken back",
        |bench| algorithm(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/internal",
        "a balancer for the inside only is made, with an address to publish, and is public again when the wish is taken back",
        |bench| internal(bench).boxed(),
    )
    .needing(INTERNAL),
    check(
        LoadBalancers,
        "load-balancers/chosen-address",
        "a wished-for address is the one that is published",
        |bench| chosen_address(bench).boxed(),
    )
    .needing(ADDRESS),
    check(
        LoadBalancers,
        "load-balancers/dual-stack",
        "a Service with both families is published under both",
        |bench| dual_stack(bench).boxed(),
    )
    .needing(DUAL_STACK),
    check(
        LoadBalancers,
        "load-balancers/name",
        "a wished-for name is given, and a change renames",
        |bench| name(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/size",
        "a wished-for size is given, and a change resizes",
        |bench| size(bench).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/hostname",
        "a wished-for hostname is published in place of addresses",
        |bench| hostname(bench).boxed(),
    ),
];

/// Settles the plain wish with a change, and shows the balancer to `look`.
async fn with(
    bench: &Bench<'_>,
    change: impl FnOnce(&mut LoadBalancerSpec),
) -> Result<(SeenBalancer, LoadBalancerStatus), Stop> {
    let mut wish = spec(&[80], &[]);
    change(&mut wish);
    let status = bench.settle(&wish).await?;
    Ok((bench.only_balancer()?, status))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, have: &T, want: &T) -> Done {
    ensure(have == want, || {
        format!("{what} is {have:?}, asked for was {want:?}")
    })
}

async fn source_ranges(bench: &Bench<'_>) -> Done {
    let ranges = |texts: &[&str]| -> Vec<IpNet> {
        texts.iter().filter_map(|text| text.parse().ok()).collect()
    };
    for wanted in [
        ranges(&["10.0.0.0/8", "192.0.2.0/24"]),
        ranges(&["192.0.2.0/24"]),
        ranges(&[]),
    ] {
        let (seen, _) = with(bench, |wish| wish.source_ranges.clone_from(&wanted)).await?;
        same(
            "source ranges",
            &seen.source_ranges,
            &wanted.into_iter().collect(),
        )?;
    }
    Ok(())
}

async fn affinity(bench: &Bench<'_>) -> Done {
    for seconds in [Some(600), Some(60), None] {
        let timeout = seconds.map(Duration::from_secs);
        let wanted = timeout.map_or(Affinity::None, |timeout| Affinity::ClientIp { timeout });
        let (seen, _) = with(bench, |wish| wish.affinity = wanted).await?;
        same("affinity", &seen.affinity, &timeout)?;
    }
    Ok(())
}

/// Whichever version the cloud has.
async fn proxy_protocol(bench: &Bench<'_>) -> Done {
    let versions = [ProxyProtocol::V2, ProxyProtocol::V1];
    let mut refused = None;
    for version in versions {
        let wanted = Some(Some(version));
        match with(bench, |wish| wish.options.proxy_protocol = wanted).await {
            Ok((seen, _)) if seen.proxy_protocol == Some(version) => {
                let (seen, _) = with(bench, |_| {}).await?;
                same("PROXY protocol, taken back", &seen.proxy_protocol, &None)?;
                with(bench, |wish| wish.options.proxy_protocol = wanted).await?;
                let off = Some(None);
                let (seen, _) = with(bench, |wish| wish.options.proxy_protocol = off).await?;
                return same("PROXY protocol", &seen.proxy_protocol, &None);
            }
            Ok((seen, _)) => refused = Some(format!("it is {:?}", seen.proxy_protocol)),
            Err(stop) => refused = Some(stop.to_string()),
        }
    }
    let why = refused.unwrap_or_default();
    Err(Stop::wrong(format!("neither version comes on: {why}")))
}

async fn algorithm(bench: &Bench<'_>) -> Done {
    let (usual, _) = with(bench, |_| {}).await?;
    for wanted in [Algorithm::LeastConnections, Algorithm::RoundRobin] {
        let (seen, _) = with(bench, |wish| wish.options.algorithm = Some(wanted)).await?;
        same("the algorithm", &seen.algorithm, &Some(wanted))?;
        let (seen, _) = with(bench, |_| {}).await?;
        same(
            "the algorithm, taken back",
            &seen.algorithm,
            &usual.algorithm,
        )?;
    }
    Ok(())
}

async fn internal(bench: &Bench<'_>) -> Done {
    let (seen, status) = with(bench, |wish| wish.options.internal = Some(true)).await?;
    same("internal", &seen.internal, &true)?;
    ensure(!status.ingress.is_empty(), || {
        "nothing is published".to_owned()
    })?;
    let (seen, _) = with(bench, |_| {}).await?;
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

async fn chosen_address(bench: &Bench<'_>) -> Done {
    let Some(wanted) = bench.cloud.spare_address() else {
        return Err(Stop::cannot_play("there is no address to wish for"));
    };
    let (seen, status) = with(bench, |wish| wish.address = Some(wanted)).await?;
    same("the address", &seen.addresses, &vec![wanted])?;
    same("the published address", &addresses(&status), &vec![wanted])
}

async fn dual_stack(bench: &Bench<'_>) -> Done {
    let both = vec![IpFamily::V4, IpFamily::V6];
    let (_, status) = with(bench, |wish| wish.families.clone_from(&both)).await?;
    let families: BTreeSet<_> = addresses(&status).into_iter().map(IpFamily::of).collect();
    same(
        "the published families",
        &families,
        &both.into_iter().collect(),
    )
}

async fn name(bench: &Bench<'_>) -> Done {
    let mut ids = Vec::new();
    for wanted in ["front-door", "back-door"] {
        let name = Some(wanted.to_owned());
        let (seen, _) = with(bench, |wish| wish.options.name = name).await?;
        same("the name", &seen.name.as_str(), &wanted)?;
        ids.push(seen.id);
    }
    ids.dedup();
    ensure(ids.len() == 1, || {
        format!("a rename makes another one: {ids:?}")
    })
}

async fn size(bench: &Bench<'_>) -> Done {
    let Some(sizes) = bench.cloud.sizes() else {
        return Err(Stop::cannot_play("there is only one size"));
    };
    for wanted in sizes {
        let size = Some(wanted.to_owned());
        let (seen, _) = with(bench, |wish| wish.options.size.clone_from(&size)).await?;
        same("the size", &seen.size, &size)?;
    }
    Ok(())
}

async fn hostname(bench: &Bench<'_>) -> Done {
    let wanted = "lb.example.com".to_owned();
    let name = Some(wanted.clone());
    let (_, status) = with(bench, |wish| wish.options.hostname = name).await?;
    same(
        "the ingress",
        &status.ingress,
        &vec![Ingress::Hostname(wanted)],
    )?;
    let (_, status) = with(bench, |_| {}).await?;
    ensure(!addresses(&status).is_empty(), || {
        "without a hostname no address is published".to_owned()
    })
}
