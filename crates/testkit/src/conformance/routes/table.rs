//! The table: routes are created, listed, replaced and deleted, and those of others stay.

use std::time::Duration;

use cloudkeel_api::Capability;
use cloudkeel_api::{CloudError, ErrorKind, NodeFacts, Route, RouteChange, RouteTarget, Shared};
use futures::FutureExt as _;
use ipnet::IpNet;

use crate::conformance::actual::ActualRoute;
use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, check};
use crate::conformance::env::{TestEnv, ensure};
use crate::conformance::fault::{Fault, FaultTiming};

pub(super) const ROUTES: Capability = Capability::Routes;

pub(super) const CHECKS: &[Check] = &[
    check(
        ROUTES,
        "routes/created-and-listed",
        "routes to Nodes are created, and listed as leading to them",
        |env| created(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/created-twice",
        "creating what is there succeeds without a mutating call",
        |env| twice(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/deleted",
        "a route is deleted as it was listed, and the others stay",
        |env| deleted(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/deleted-twice",
        "deleting what is not there succeeds without a mutating call",
        |env| deleted_twice(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/replaced",
        "a network moves to another Node in one call: the old route is deleted first",
        |env| replaced(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/taken-network-is-refused",
        "a route to a network that another client's route leads to is an error, and theirs stays",
        |env| taken(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/foreign-are-listed-and-kept",
        "another client's route is listed as leading elsewhere, and survives our changes",
        |env| foreign(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/one-result-each",
        "one change that cannot be made does not block the others",
        |env| one_result_each(env).boxed(),
    ),
    check(ROUTES, "routes/ipv6", "an IPv6 network is routed", |env| {
        ipv6(env).boxed()
    }),
    check(
        ROUTES,
        "routes/failed-list-is-an-error",
        "a list that cannot be read is an error, never a short list",
        |env| failed_list(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/survive-outages",
        "an outage that begins at any mutating call is repaired by the next attempt",
        |env| at_every_step(env, Fault::Unavailable).boxed(),
    ),
    check(
        ROUTES,
        "routes/survive-lost-answers",
        "a lost answer to any mutating call is repaired by the next attempt",
        |env| at_every_step(env, Fault::LostAnswer).boxed(),
    ),
];

/// The Pod network of the nth Node.
pub(super) fn network(number: usize) -> Result<IpNet, Stop> {
    let text = format!("10.244.{number}.0/24");
    text.parse()
        .map_err(|_| Stop::not_playable(format!("{text} is no network")))
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

/// A change per Node: its route is created.
pub(in crate::conformance) fn creations(nodes: &[NodeFacts]) -> Result<Vec<RouteChange>, Stop> {
    let numbered = nodes.iter().enumerate();
    numbered
        .map(|(number, node)| Ok(RouteChange::Create(route_to(node, network(number)?))))
        .collect()
}

async fn apply(
    env: &TestEnv<'_>,
    changes: &[RouteChange],
) -> Result<Vec<Result<(), CloudError>>, Stop> {
    let results = env.routes()?.apply(changes).await;
    ensure(results.len() == changes.len(), || {
        format!("{} changes have {} results", changes.len(), results.len())
    })?;
    Ok(results)
}

pub(super) async fn apply_all(env: &TestEnv<'_>, changes: &[RouteChange]) -> Done {
    for (change, result) in changes.iter().zip(apply(env, changes).await?) {
        result.map_err(|error| Stop::failed(format!("{change}: {error} [{}]", error.kind())))?;
    }
    Ok(())
}

/// The same, while the table is still busy with what came before.
pub(super) async fn apply_when_idle(env: &TestEnv<'_>, changes: &[RouteChange]) -> Done {
    for _ in 0..10 {
        let results = apply(env, changes).await?;
        let busy = |error: &CloudError| error.kind() == ErrorKind::Busy;
        if !results
            .iter()
            .any(|result| result.as_ref().is_err_and(busy))
        {
            break;
        }
        env.cloud.wait(Duration::from_secs(10)).await;
    }
    apply_all(env, changes).await
}

/// That the table is exactly this.
pub(super) async fn table_is(env: &TestEnv<'_>, wanted: &[(IpNet, &str)]) -> Done {
    let mut have = env.cloud.routes().await?;
    have.sort();
    let wanted = wanted.iter().map(|(destination, hop)| ActualRoute {
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
pub(super) async fn three(env: &TestEnv<'_>) -> Result<[NodeFacts; 3], Stop> {
    let nodes = env.add_some::<3>().await?;
    apply_all(env, &creations(&nodes)?).await?;
    Ok(nodes)
}

/// The listed route to a network.
pub(super) async fn listed(
    env: &TestEnv<'_>,
    nodes: &[NodeFacts],
    to: IpNet,
) -> Result<Route, Stop> {
    let routes = env.routes()?.list(&Shared::of_each(nodes)).await?;
    let found = routes.into_iter().find(|route| route.destination == to);
    found.ok_or_else(|| Stop::failed(format!("the route to {to} is not listed")))
}

async fn created(env: &TestEnv<'_>) -> Done {
    let nodes = three(env).await?;
    let [a, b, c] = &nodes;
    table_is(
        env,
        &[
            (network(0)?, &a.name),
            (network(1)?, &b.name),
            (network(2)?, &c.name),
        ],
    )
    .await?;
    for (number, node) in nodes.iter().enumerate() {
        let route = listed(env, &nodes, network(number)?).await?;
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

async fn twice(env: &TestEnv<'_>) -> Done {
    let nodes = three(env).await?;
    let changes = creations(&nodes)?;
    let (done, calls) = env.counted(apply_all(env, &changes)).await;
    done?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls for what is there", calls.mutating)
    })
}

async fn deleted(env: &TestEnv<'_>) -> Done {
    let nodes = three(env).await?;
    let leaving = listed(env, &nodes, network(1)?).await?;
    apply_all(env, &[RouteChange::Delete(leaving)]).await?;
    let [a, _, c] = &nodes;
    table_is(env, &[(network(0)?, &a.name), (network(2)?, &c.name)]).await
}

async fn deleted_twice(env: &TestEnv<'_>) -> Done {
    let nodes = three(env).await?;
    let change = [RouteChange::Delete(listed(env, &nodes, network(1)?).await?)];
    apply_all(env, &change).await?;
    let (done, calls) = env.counted(apply_all(env, &change)).await;
    done?;
    ensure(calls.mutating == 0, || {
        format!("{} mutating calls for what is not there", calls.mutating)
    })
}

async fn replaced(env: &TestEnv<'_>) -> Done {
    let nodes = three(env).await?;
    let old = listed(env, &nodes, network(0)?).await?;
    let [a, b, c] = &nodes;
    let last = listed(env, &nodes, network(2)?).await?;
    // In an order that only works if deletions come first.
    let changes = [
        RouteChange::Create(route_to(c, network(0)?)),
        RouteChange::Delete(old),
        RouteChange::Create(route_to(a, network(2)?)),
        RouteChange::Delete(last),
    ];
    apply_all(env, &changes).await?;
    table_is(
        env,
        &[
            (network(0)?, &c.name),
            (network(1)?, &b.name),
            (network(2)?, &a.name),
        ],
    )
    .await
}

async fn taken(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(1).await?;
    env.cloud.add_route(network(0)?).await?;
    let before = env.cloud.routes().await?;
    let results = apply(env, &creations(&nodes)?).await?;
    let after = env.cloud.routes().await?;
    ensure(before == after, || {
        format!("another client's route was {before:?}, now there is {after:?}")
    })?;
    ensure(results.iter().all(Result::is_err), || {
        "a route that was not created is reported as created".to_owned()
    })
}

async fn foreign(env: &TestEnv<'_>) -> Done {
    let Ok(theirs) = "192.168.77.0/24".parse() else {
        return Err(Stop::not_playable("no network"));
    };
    env.cloud.add_route(theirs).await?;
    let before = env.cloud.routes().await?;
    let nodes = three(env).await?;
    let route = listed(env, &nodes, theirs).await?;
    ensure(
        matches!(route.target, RouteTarget::Elsewhere { .. }),
        || format!("another client's route is listed as {route:?}"),
    )?;
    for number in 0..3 {
        let ours = listed(env, &nodes, network(number)?).await?;
        apply_all(env, &[RouteChange::Delete(ours)]).await?;
    }
    let after = env.cloud.routes().await?;
    ensure(before == after, || {
        format!("before there was {before:?}, afterwards {after:?}")
    })
}

async fn one_result_each(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let unknown = NodeFacts {
        name: "unknown".to_owned(),
        ..NodeFacts::default()
    };
    let mut changes = creations(&nodes)?;
    changes.insert(1, RouteChange::Create(route_to(&unknown, network(9)?)));
    let results = apply(env, &changes).await?;
    let ends: Vec<_> = results.iter().map(Result::is_ok).collect();
    ensure(ends == [true, false, true], || {
        format!("wanted were a route, an error and a route, got {results:?}")
    })
}

async fn ipv6(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(1).await?;
    let Ok(destination) = "fd00:10:244:1::/64".parse() else {
        return Err(Stop::not_playable("no network"));
    };
    for node in &nodes {
        let change = [RouteChange::Create(route_to(node, destination))];
        for result in apply(env, &change).await? {
            match result {
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    return Err(Stop::Unsupported(error.message().to_owned()));
                }
                result => result?,
            }
        }
        table_is(env, &[(destination, &node.name)]).await?;
    }
    Ok(())
}

async fn failed_list(env: &TestEnv<'_>) -> Done {
    let nodes = three(env).await?;
    for fault in [
        Fault::Unauthenticated,
        Fault::Denied,
        Fault::Unavailable,
        Fault::Timeout,
        Fault::Malformed,
    ] {
        env.inject(FaultTiming::Always, fault)?;
        let list = env.routes()?.list(&Shared::of_each(&nodes)).await;
        let results = apply(env, &creations(&nodes)?).await?;
        env.clear_faults();
        ensure(list.is_err(), || format!("{fault:?}: the list is {list:?}"))?;
        ensure(results.iter().all(Result::is_err), || {
            format!("{fault:?}: changes are reported as made: {results:?}")
        })?;
    }
    Ok(())
}

async fn at_every_step(env: &TestEnv<'_>, fault: Fault) -> Done {
    for step in 1..=20 {
        let env = env.another().await?;
        let nodes = env.add_nodes(2).await?;
        let on = match fault {
            Fault::LostAnswer => FaultTiming::Mutation(step),
            _ => FaultTiming::MutationsFrom(step),
        };
        env.inject(on, fault)?;
        let changes = creations(&nodes)?;
        let (results, calls) = env.counted(apply(&env, &changes)).await;
        results?;
        let reached = calls.mutating >= step;
        env.clear_faults();
        apply_when_idle(&env, &changes).await?;
        let [a, b] = nodes.as_slice() else {
            return Err(Stop::not_playable(
                "there are fewer instances than were added",
            ));
        };
        table_is(&env, &[(network(0)?, &a.name), (network(1)?, &b.name)]).await?;
        if !reached {
            return ensure(step > 1, || "no mutating call was made".to_owned());
        }
    }
    Err(Stop::failed("two routes take more than 20 mutating calls"))
}
