//! Instances that change, that end as tombstones, and that reads show late.

use std::time::Duration;

use cloudkeel_api::Capability::Instances;
use cloudkeel_api::{Evidence, Existence, NodeFacts};
use futures::FutureExt as _;

use super::list::described;
use super::lookup::{present, unknown};
use super::truth::is_true;
use crate::conformance::adapter::{Change, Stop};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::env::{TestEnv, ensure};
use crate::conformance::fault::{Fault, FaultTiming};

/// How far reads lag.
const LAG: Duration = Duration::from_secs(30);

pub(super) const CHECKS: &[Check] = &[
    check(
        Instances,
        "instances/changes-are-shown",
        "an instance that got another type or address is shown as it is now, by lookups and lists",
        |env| changed(env).boxed(),
    ),
    check(
        Instances,
        "instances/terminated-is-gone",
        "an instance that the cloud still shows as terminated is gone by its own state, without another one being seen",
        |env| terminated(env).boxed(),
    ),
    check(
        Instances,
        "instances/terminated-is-not-listed",
        "a terminated instance is neither listed nor found by name",
        |env| not_listed(env).boxed(),
    ),
    check(
        Instances,
        "instances/stale-reads-only-delay",
        "reads that lag make no existing instance gone, and a destroyed one is gone once they have caught up",
        |env| stale(env).boxed(),
    ),
];

async fn changed(env: &TestEnv<'_>) -> Done {
    let [node, _] = env.add_some().await?;
    // What was read before must not be shown afterwards.
    env.instances()?.list().await?;
    present(env.instances()?.find(&node, None).await)?;
    env.cloud.change(Change::Modify(&node.name)).await?;
    let actual = env.cloud.instance(&node.name).await?;
    let shown = present(env.instances()?.find(&node, None).await)?;
    is_true(&shown, &actual, "a lookup after a change")?;
    let list = env.instances()?.list().await?;
    let listed = list.get(&shown.id).cloned();
    let listed = listed.ok_or_else(|| Stop::failed("it is not listed after a change"))?;
    let listed = described(env, listed).await?;
    is_true(&listed, &actual, "a list after a change")
}

/// The only instance of the account, which is terminated.
async fn tombstone(env: &TestEnv<'_>) -> Result<NodeFacts, Stop> {
    let [node] = env.add_some().await?;
    env.cloud.change(Change::Terminate(&node.name)).await?;
    Ok(node)
}

async fn terminated(env: &TestEnv<'_>) -> Done {
    let node = tombstone(env).await?;
    let answer = env.instances()?.find(&node, None).await;
    let Existence::Gone(proof) = answer else {
        return Err(Stop::failed(format!(
            "it is terminated, but the answer is {answer:?}"
        )));
    };
    ensure(
        matches!(proof.evidence(), Evidence::Terminated { .. }),
        || format!("the proof rests on {:?}", proof.evidence()),
    )?;
    ensure(Some(proof.machine()) == node.provider_id.as_ref(), || {
        format!("the proof is about another instance: {proof}")
    })
}

async fn not_listed(env: &TestEnv<'_>) -> Done {
    let node = tombstone(env).await?;
    let list = env.instances()?.list().await?;
    ensure(list.instances().len() == 0, || {
        "a terminated instance is listed".to_owned()
    })?;
    let by_name = NodeFacts {
        provider_id: None,
        ..node
    };
    let answer = env.instances()?.find(&by_name, None).await;
    unknown(&answer, "the name of a terminated instance")
}

async fn stale(env: &TestEnv<'_>) -> Done {
    let [there, destroyed, _] = env.add_some().await?;
    // An interposer can only show again what was read before.
    for node in [&there, &destroyed] {
        present(env.instances()?.find(node, None).await)?;
    }
    env.cloud.wait(2 * LAG).await;
    let known = env.known_instance_besides(&destroyed).await?;
    env.inject(FaultTiming::Always, Fault::Stale(LAG))?;
    env.cloud.destroy_instance(&destroyed.name).await?;
    let list = env.instances()?.list().await?;
    let shown = there.provider_id.as_ref().and_then(|id| list.get(id));
    ensure(shown.is_some(), || {
        "a list that lags lacks an old instance".to_owned()
    })?;
    present(env.instances()?.find(&there, known.as_ref()).await)?;
    // It was there 30 seconds ago, and nothing newer is known.
    let answer = env.instances()?.find(&destroyed, known.as_ref()).await;
    ensure(!matches!(answer, Existence::Gone(_)), || {
        format!("no read shows that it is gone, but the answer is {answer:?}")
    })?;
    env.clear_faults();
    let known = env.known_instance_besides(&destroyed).await?;
    let answer = env.instances()?.find(&destroyed, known.as_ref()).await;
    ensure(matches!(answer, Existence::Gone(_)), || {
        format!("reads have caught up, but the answer is {answer:?}")
    })
}
