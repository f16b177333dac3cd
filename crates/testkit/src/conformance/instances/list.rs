//! All instances at once.

use cloudkeel_api::Capability::Instances;
use cloudkeel_api::{Instance, InstanceState, Priority, Shared};
use futures::FutureExt as _;

use super::lookup::present;
use super::unproven::several_pages;
use crate::conformance::adapter::{Change, Stop};
use crate::conformance::check::{Check, Done, check, core};
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    core(
        "instances/list-equals-lookups",
        "a list shows every instance as a lookup does, and none that is destroyed",
        |env| equals(env).boxed(),
    ),
    check(
        Instances,
        "instances/list-costs-its-pages",
        "a list costs one call per page and changes nothing",
        |env| costs(env).boxed(),
    ),
    check(
        Instances,
        "instances/lookups-cost-one-call-each",
        "looking up many instances costs at most one call each",
        |env| lookups(env).boxed(),
    ),
    core(
        "instances/empty-account-is-an-empty-list",
        "an account without instances is an empty list and no error",
        |env| nothing(env).boxed(),
    ),
    core(
        "instances/scope-is-stable",
        "`check` and a list name the same scope, also after a restart",
        |env| scope(env).boxed(),
    ),
];

async fn equals(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(4).await?;
    let [off, destroyed, ..] = nodes.as_slice() else {
        return Err(Stop::not_playable(
            "there are fewer instances than were added",
        ));
    };
    env.cloud.change(Change::SwitchOff(&off.name)).await?;
    env.cloud.destroy_instance(&destroyed.name).await?;
    let list = env.instances()?.list().await?;
    let seen = list.instances().len();
    ensure(seen == 3, || format!("a list of 3 instances shows {seen}"))?;
    for node in nodes.iter().filter(|node| node.name != destroyed.name) {
        let found = present(env.instances()?.find(node, None).await)?;
        let listed = list.get(&found.id).cloned();
        let listed = listed.ok_or_else(|| Stop::failed(format!("{} is not listed", node.name)))?;
        let listed = described(env, listed).await?;
        // A list may leave the state to a lookup.
        let state = match listed.state {
            InstanceState::Unknown => found.state,
            state => state,
        };
        let listed = Instance { state, ..listed };
        ensure(listed == found, || {
            format!("the list shows {listed:?}, the lookup {found:?}")
        })?;
    }
    Ok(())
}

/// What a list shows, completed if it is only a summary.
pub(super) async fn described(env: &TestEnv<'_>, listed: Instance) -> Result<Instance, Stop> {
    if !listed.is_summary {
        return Ok(listed);
    }
    let described = env.instances()?.describe(vec![listed], Priority::Normal);
    match described.await.pop() {
        Some(described) => Ok(described?),
        None => Err(Stop::failed("`describe` does not answer for an instance")),
    }
}

async fn costs(env: &TestEnv<'_>) -> Done {
    let count = several_pages(env)?;
    env.add_nodes(count).await?;
    let (list, calls) = env.counted(env.instances()?.list()).await;
    let (seen, pages) = (list?.instances().len(), env.cloud.list_calls(count)?);
    ensure(seen == count, || {
        format!("a list of {count} instances shows {seen}")
    })?;
    ensure(calls.total == pages && calls.mutating == 0, || {
        format!("{count} instances take {pages} calls, but a list makes {calls:?}")
    })
}

async fn lookups(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(20).await?;
    let nodes: Vec<_> = nodes.into_iter().map(Shared::from).collect();
    let find = env.instances()?.find_many(&nodes, None);
    let (answers, calls) = env.counted(find).await;
    for answer in answers {
        present(answer)?;
    }
    ensure(calls.total <= 20 && calls.mutating == 0, || {
        format!("20 lookups make {calls:?}")
    })
}

async fn nothing(env: &TestEnv<'_>) -> Done {
    let seen = env.instances()?.list().await?.instances().len();
    ensure(seen == 0, || {
        format!("an empty account shows {seen} instances")
    })
}

async fn scope(env: &TestEnv<'_>) -> Done {
    env.add_nodes(1).await?;
    let listed = env.instances()?.list().await?.scope().clone();
    let restarted = env.reconnect().await?;
    for provider in [&env.provider, &restarted] {
        let checked = provider.check().await?;
        ensure(checked == listed, || {
            format!("`check` says {checked}, a list says {listed}")
        })?;
    }
    Ok(())
}
