//! A slow cloud, reads that lag, and changes that are cancelled in the middle.

use std::time::Duration;

use cloudkeel_api::{NodeFacts, Route, RouteChange, RouteTarget, Shared};
use futures::FutureExt as _;

use super::table::{
    ROUTES, apply_all, apply_when_idle, creations, listed, network, table_is, three,
};
use crate::conformance::cancelled::{Cancellation, at_each_await};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::env::{TestEnv, ensure};
use crate::conformance::fault::{Fault, FaultTiming};

/// How much longer every answer takes.
const SLOW: Duration = Duration::from_secs(4);

/// How far reads lag.
const LAG: Duration = Duration::from_secs(30);

pub(super) const CHECKS: &[Check] = &[
    check(
        ROUTES,
        "routes/slow-answers-are-awaited",
        "answers that take 4 seconds end as fast ones do",
        |env| slow(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/stale-reads-only-delay",
        "routes that are created while lists lag are there once, when these have caught up",
        |env| stale(env).boxed(),
    ),
    check(
        ROUTES,
        "routes/cancelled-create",
        "a creation that is dropped at any await is completed by the next attempt, without leaks",
        |env| at_each_await(env, CREATE).boxed(),
    ),
    check(
        ROUTES,
        "routes/cancelled-delete",
        "so is a deletion",
        |env| at_each_await(env, DELETE).boxed(),
    ),
    check(
        ROUTES,
        "routes/cancelled-list-is-repeatable",
        "a list that is dropped at any await succeeds when it is repeated",
        |env| at_each_await(env, LIST).boxed(),
    ),
];

/// That each of these Nodes has its route, and that there are no others.
async fn all_routed(env: &TestEnv<'_>, nodes: &[NodeFacts]) -> Done {
    let mut expected = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        expected.push((network(number)?, node.name.as_str()));
    }
    table_is(env, &expected).await
}

async fn slow(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_some::<3>().await?;
    env.inject(FaultTiming::Always, Fault::Slow(SLOW))?;
    apply_all(env, &creations(&nodes)?).await?;
    all_routed(env, &nodes).await?;
    let leaving = listed(env, &nodes, network(0)?).await?;
    apply_all(env, &[RouteChange::Delete(leaving)]).await?;
    let left = env.cloud.routes().await?.len();
    ensure(left == 2, || {
        format!("{left} routes are left of 3, one was deleted")
    })
}

async fn stale(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_some::<3>().await?;
    env.cloud.wait(2 * LAG).await;
    let changes = creations(&nodes)?;
    apply_all(env, &changes).await?;
    env.inject(FaultTiming::Always, Fault::Stale(LAG))?;
    // The list does not show them yet, so the controller asks again; errors are allowed.
    env.routes()?.list(&Shared::of_each(&nodes)).await?;
    env.routes()?.apply(&changes).await;
    all_routed(env, &nodes).await?;
    env.clear_faults();
    apply_when_idle(env, &changes).await?;
    all_routed(env, &nodes).await
}

const CREATE: Cancellation<[NodeFacts; 3]> = Cancellation {
    prepare: |env| env.add_some::<3>().boxed(),
    work: |env, nodes| async { apply_when_idle(env, &creations(nodes)?).await }.boxed(),
    repeat: |env, nodes| {
        async {
            apply_when_idle(env, &creations(nodes)?).await?;
            all_routed(env, nodes).await
        }
        .boxed()
    },
};

/// Three Nodes, and the deletion of the last one's route.
type Leaving = ([NodeFacts; 3], [RouteChange; 1]);

const DELETE: Cancellation<Leaving> = Cancellation {
    prepare: |env| {
        async {
            let nodes = three(env).await?;
            let leaving = listed(env, &nodes, network(2)?).await?;
            Ok((nodes, [RouteChange::Delete(leaving)]))
        }
        .boxed()
    },
    work: |env, (_, changes)| apply_when_idle(env, changes).boxed(),
    repeat: |env, (nodes, changes)| {
        async {
            apply_when_idle(env, changes).await?;
            all_routed(env, nodes.get(..2).unwrap_or_default()).await
        }
        .boxed()
    },
};

/// For so long no provider relies on what it has listed.
const FORGOTTEN: Duration = Duration::from_mins(10);

/// What a table has of its own, such as a way to its own network, and three Nodes with routes.
type Table = (Vec<Route>, [NodeFacts; 3]);

const LIST: Cancellation<Table> = Cancellation {
    prepare: |env| {
        async {
            let own = env.routes()?.list(&[]).await?;
            // By then the provider knows nothing from this list.
            env.cloud.wait(FORGOTTEN).await;
            Ok((own, three(env).await?))
        }
        .boxed()
    },
    work: |env, table| all_listed(env, table).boxed(),
    repeat: |env, table| all_listed(env, table).boxed(),
};

async fn all_listed(env: &TestEnv<'_>, (own, nodes): &Table) -> Done {
    let mut routes = env.routes()?.list(&Shared::of_each(nodes)).await?;
    routes.retain(|route| !own.contains(route));
    let leads = |route: &Route| matches!(route.target, RouteTarget::Node { .. });
    ensure(routes.len() == 3 && routes.iter().all(leads), || {
        format!("a list of 3 routes to Nodes shows {routes:?}")
    })
}
