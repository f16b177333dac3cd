//! Routes: made, listed, replaced, deleted, and nobody else's.

use std::time::Duration;

use cloudkeel_api::Capability;
use cloudkeel_api::{CloudError, ErrorKind, NodeFacts, Route, RouteChange, RouteTarget, Shared};
use futures::FutureExt as _;
use ipnet::IpNet;

use super::bench::{Bench, ensure};
use super::check::{Check, Done, check};
use super::emulator::{Stop, Strike, Trouble};
use super::seen::SeenRoute;

const ROUTES: Capability = Capability::Routes;

pub(super) const CHECKS: &[Check] = &[
    check(
        ROUTES,
        "routes/created-and-listed",
        "routes to Nodes are made, and listed as leading to them",
        |bench| created(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/created-twice",
        "making what is there succeeds without a mutating call",
        |bench| twice(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/deleted",
        "a route is deleted as it was listed, and the others stay",
        |bench| deleted(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/deleted-twice",
        "deleting what is not there succeeds without a mutating call",
        |bench| deleted_twice(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/replaced",
        "a network moves to another Node in one go: the old route is deleted first",
        |bench| replaced(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/taken-network-is-refused",
        "a route to a network that somebody else's route leads to is an error, and theirs stays",
        |bench| taken(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/foreign-are-listed-and-kept",
        "somebody else's route is listed as leading elsewhere, and survives our work",
        |bench| foreign(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/one-result-each",
        "one change that cannot be made does not keep the others from being made",
        |bench| one_result_each(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/ipv6",
        "an IPv6 network is routed",
        |bench| ipv6(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/blind-list-is-an-error",
        "a list that cannot be read is an error, never a short list",
        |bench| blind(bench).boxed(),
    ),
    check(
        ROUTES,
        "routes/survive-outages",
        "an outage that begins at any mutating call is made good by the next attempt",
        |bench| at_every_step(bench, Trouble::Unavailable).boxed(),
    ),
    check(
        ROUTES,
        "routes/survive-lost-answers",
        "a lost answer to any mutating call is made good by the next attempt",
        |bench| at_every_step(bench, Trouble::LostAnswer).boxed(),
    ),
];

/// The Pod network of the nth Node.
fn network(number: usize) -> Result<IpNet, Stop> {
    let text = format!("10.244.{number}.0/24");
    text.parse()
        .map_err(|_| Stop::cannot_play(format!("{text} is no network")))
}

fn route_to(node: &NodeFacts, destination: IpNet) -> Route {
    Route {
        name: String::new(),
        destination,
        target: RouteTarget::node(node),
        blackhole: false,
        follows_addresses: false,
    }
}

/// A change per Node: its route is made.
fn creations(nodes: &[NodeFacts]) -> Result<Vec<RouteChange>, Stop> {
    let numbered = nodes.iter().enumerate();
    numbered
        .map(|(number, node)| Ok(RouteChange::Create(route_to(node, network(number)?))))
        .collect()
}

async fn apply(
    bench: &Bench<'_>,
    changes: &[RouteChange],
) -> Result<Vec<Result<(), CloudError>>, Stop> {
    let results = bench.routes()?.apply(changes).await;
    ensure(results.len() == changes.len(), || {
        format!("{} changes have {} results", changes.len(), results.len())
    })?;
    Ok(results)
}

async fn apply_all(bench: &Bench<'_>, changes: &[RouteChange]) -> Done {
    for (change, result) in changes.iter().zip(apply(bench, changes).await?) {
        result.map_err(|error| Stop::wrong(format!("{change}: {error} [{}]", error.kind())))?;
    }
    Ok(())
}

/// The same, while the table is still busy with what came before.
async fn apply_at_last(bench: &Bench<'_>, changes: &[RouteChange]) -> Done {
    for _ in 0..10 {
        let results = apply(bench, changes).await?;
        let busy = |error: &CloudError| error.kind() == ErrorKind::Busy;
        if !results
            .iter()
            .any(|result| result.as_ref().is_err_and(busy))
        {
            break;
        }
        bench.cloud.wait(Duration::from_secs(10)).await;
    }
    apply_all(bench, changes).await
}

/// That the table is exactly this, besides what others have in it.
fn table_is(bench: &Bench<'_>, wanted: &[(IpNet, &str)]) -> Done {
    let mut have = bench.cloud.routes();
    have.sort();
    let wanted = wanted.iter().map(|(destination, hop)| SeenRoute {
        destination: *destination,
        hop: (*hop).to_owned(),
    });
    let mut wanted: Vec<_> = wanted.collect();
    wanted.sort();
    ensure(have == wanted, || {
        format!("the routes are {have:?}, wanted are {wanted:?}")
    })
}

/// Three Nodes with their routes.
async fn three(bench: &Bench<'_>) -> Result<[NodeFacts; 3], Stop> {
    let nodes = bench.machines(3).await?;
    apply_all(bench, &creations(&nodes)?).await?;
    <[NodeFacts; 3]>::try_from(nodes)
        .map_err(|_| Stop::cannot_play("there are fewer machines than were added"))
}

/// The listed route to a network.
async fn listed(bench: &Bench<'_>, nodes: &[NodeFacts], to: IpNet) -> Result<Route, Stop> {
    let routes = bench.routes()?.list(&Shared::of_each(nodes)).await?;
    let found = routes.into_iter().find(|route| route.destination == to);
    found.ok_or_else(|| Stop::wrong(format!("the route to {to} is not listed")))
}

async fn created(bench: &Bench<'_>) -> Done {
    let nodes = three(bench).await?;
    let [a, b, c] = &nodes;
    table_is(
        bench,
        &[
            (network(0)?, &a.name),
            (network(1)?, &b.name),
            (network(2)?, &c.name),
        ],
    )?;
    for (number, node) in nodes.iter().enumerate() {
        let route = listed(bench, &nodes, network(number)?).await?;
        let (target, wanted) = (route.target.node_name(), Some(node.name.as_str()));
        ensure(target == wanted, || {
            format!("{} leads to {target:?}, not {wanted:?}", route.destination)
        })?;
        ensure(!route.blackhole && !route.name.is_empty(), || {
            format!("a working route is listed as {route:?}")
        })?;
    }
    Ok(())
}

async fn twice(bench: &Bench<'_>) -> Done {
    let nodes = three(bench).await?;
    let changes = creations(&nodes)?;
    let (done, calls) = bench.counted(apply_all(bench, &changes)).await;
    done?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls for what is there", calls.mutating)
    })
}

async fn deleted(bench: &Bench<'_>) -> Done {
    let nodes = three(bench).await?;
    let leaving = listed(bench, &nodes, network(1)?).await?;
    apply_all(bench, &[RouteChange::Delete(leaving)]).await?;
    let [a, _, c] = &nodes;
    table_is(bench, &[(network(0)?, &a.name), (network(2)?, &c.name)])
}

async fn deleted_twice(bench: &Bench<'_>) -> Done {
    let nodes = three(bench).await?;
    let change = [RouteChange::Delete(
        listed(bench, &nodes, network(1)?).await?,
    )];
    apply_all(bench, &change).await?;
    let (done, calls) = bench.counted(apply_all(bench, &change)).await;
    done?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls for what is not there", calls.mutating)
    })
}

async fn replaced(bench: &Bench<'_>) -> Done {
    let nodes = three(bench).await?;
    let old = listed(bench, &nodes, network(0)?).await?;
    let [a, b, c] = &nodes;
    let last = listed(bench, &nodes, network(2)?).await?;
    // In an order that only works if deletions come first.
    let changes = [
        RouteChange::Create(route_to(c, network(0)?)),
        RouteChange::Delete(old),
        RouteChange::Create(route_to(a, network(2)?)),
        RouteChange::Delete(last),
    ];
    apply_all(bench, &changes).await?;
    table_is(
        bench,
        &[
            (network(0)?, &c.name),
            (network(1)?, &b.name),
            (network(2)?, &a.name),
        ],
    )
}

async fn taken(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(1).await?;
    bench.cloud.add_route(network(0)?).await?;
    let before = bench.cloud.routes();
    let results = apply(bench, &creations(&nodes)?).await?;
    let after = bench.cloud.routes();
    ensure(before == after, || {
        format!("somebody else's route was {before:?}, now there is {after:?}")
    })?;
    ensure(results.iter().all(Result::is_err), || {
        "a route that was not made is told as made".to_owned()
    })
}

async fn foreign(bench: &Bench<'_>) -> Done {
    let Ok(theirs) = "192.168.77.0/24".parse() else {
        return Err(Stop::cannot_play("no network"));
    };
    bench.cloud.add_route(theirs).await?;
    let before = bench.cloud.routes();
    let nodes = three(bench).await?;
    let route = listed(bench, &nodes, theirs).await?;
    ensure(
        matches!(route.target, RouteTarget::Elsewhere { .. }),
        || format!("somebody else's route is listed as {route:?}"),
    )?;
    for number in 0..3 {
        let ours = listed(bench, &nodes, network(number)?).await?;
        apply_all(bench, &[RouteChange::Delete(ours)]).await?;
    }
    let after = bench.cloud.routes();
    ensure(before == after, || {
        format!("before there was {before:?}, afterwards {after:?}")
    })
}

async fn one_result_each(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let nobody = NodeFacts {
        name: "nobody".to_owned(),
        ..NodeFacts::default()
    };
    let mut changes = creations(&nodes)?;
    changes.insert(1, RouteChange::Create(route_to(&nobody, network(9)?)));
    let results = apply(bench, &changes).await?;
    let ends: Vec<_> = results.iter().map(Result::is_ok).collect();
    ensure(ends == [true, false, true], || {
        format!("wanted were a route, an error and a route, got {results:?}")
    })
}

async fn ipv6(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(1).await?;
    let Ok(destination) = "fd00:10:244:1::/64".parse() else {
        return Err(Stop::cannot_play("no network"));
    };
    for node in &nodes {
        let change = [RouteChange::Create(route_to(node, destination))];
        for result in apply(bench, &change).await? {
            match result {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    return Err(Stop::Unsupported(error.message().to_owned()));
                }
                result => result?,
            }
        }
        table_is(bench, &[(destination, &node.name)])?;
    }
    Ok(())
}

async fn blind(bench: &Bench<'_>) -> Done {
    let nodes = three(bench).await?;
    for trouble in [
        Trouble::Unauthenticated,
        Trouble::Denied,
        Trouble::Unavailable,
        Trouble::Timeout,
        Trouble::Malformed,
    ] {
        bench.cloud.strike(Strike::Always, trouble).await?;
        let list = bench.routes()?.list(&Shared::of_each(&nodes)).await;
        let results = apply(bench, &creations(&nodes)?).await?;
        bench.cloud.heal().await;
        ensure(list.is_err(), || {
            format!("{trouble:?}: the list is {list:?}")
        })?;
        ensure(results.iter().all(Result::is_err), || {
            format!("{trouble:?}: changes are told as made: {results:?}")
        })?;
    }
    Ok(())
}

async fn at_every_step(bench: &Bench<'_>, trouble: Trouble) -> Done {
    for step in 1..=20 {
        let bench = bench.another().await?;
        let nodes = bench.machines(2).await?;
        let strike = match trouble {
            Trouble::LostAnswer => Strike::Mutation(step),
            _ => Strike::MutationsFrom(step),
        };
        bench.cloud.strike(strike, trouble).await?;
        let changes = creations(&nodes)?;
        let (results, calls) = bench.counted(apply(&bench, &changes)).await;
        results?;
        let struck = calls.mutating >= step;
        bench.cloud.heal().await;
        apply_at_last(&bench, &changes).await?;
        let [a, b] = nodes.as_slice() else {
            return Err(Stop::cannot_play(
                "there are fewer machines than were added",
            ));
        };
        table_is(&bench, &[(network(0)?, &a.name), (network(1)?, &b.name)])?;
        if !struck {
            return ensure(step > 1, || "no mutating call was made".to_owned());
        }
    }
    Err(Stop::wrong("two routes take more than 20 mutating calls"))
}
