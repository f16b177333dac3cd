//! What a Node is given is what the cloud says: addresses with their kinds and order, type, zone, region and labels.

use cloudkeel_api::{Instance, Priority, Shared};
use futures::FutureExt as _;

use super::lookup::present;
use crate::conformance::actual::ActualInstance;
use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, core};
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    core(
        "instances/lookup-shows-the-truth",
        "a lookup shows addresses, type, zone, region and labels as they are in the cloud",
        |env| lookup(env).boxed(),
    ),
    core(
        "instances/batch-shows-the-truth",
        "so does a lookup of several Nodes at once, in their order",
        |env| batch(env).boxed(),
    ),
    core(
        "instances/list-shows-the-truth",
        "so does a list, once its summaries are completed by `describe`",
        |env| list(env).boxed(),
    ),
    core(
        "instances/describe-answers-each",
        "`describe` answers for each instance, in their order, and does not change what is complete",
        |env| describe(env).boxed(),
    ),
];

/// That an instance is shown as it is.
pub(super) fn is_true(shown: &Instance, actual: &ActualInstance, shown_by: &str) -> Done {
    let name = &actual.node.name;
    let same = |what: &str, shown: &str, actual: &str| {
        ensure(shown == actual, || {
            format!("{name} has {what} {actual}, but {shown_by} shows {shown}")
        })
    };
    let text = |value: &Option<String>| format!("{value:?}");
    let id = text(&actual.node.provider_id.as_ref().map(ToString::to_string));
    same("the ID", &text(&Some(shown.id.to_string())), &id)?;
    same(
        "the type",
        &text(&shown.instance_type),
        &text(&actual.instance_type),
    )?;
    same("the zone", &text(&shown.zone), &text(&actual.zone))?;
    same("the region", &text(&shown.region), &text(&actual.region))?;
    let (addresses, labels) = (&actual.node.addresses, &actual.labels);
    same(
        "the addresses",
        &format!("{:?}", shown.addresses),
        &format!("{addresses:?}"),
    )?;
    same(
        "the labels",
        &format!("{:?}", shown.labels),
        &format!("{labels:?}"),
    )
}

async fn some(env: &TestEnv<'_>) -> Result<Vec<ActualInstance>, Stop> {
    let mut added = Vec::new();
    for name in ["node-1", "node-2", "node-3"] {
        added.push(env.cloud.add_instance(name).await?);
    }
    Ok(added)
}

async fn lookup(env: &TestEnv<'_>) -> Done {
    for actual in some(env).await? {
        let shown = present(env.instances()?.find(&actual.node, None).await)?;
        is_true(&shown, &actual, "a lookup")?;
    }
    Ok(())
}

async fn batch(env: &TestEnv<'_>) -> Done {
    let mut actual = some(env).await?;
    actual.reverse();
    let nodes = actual.iter().map(|actual| actual.node.clone().into());
    let nodes: Vec<Shared<_>> = nodes.collect();
    let shown = env.instances()?.find_many(&nodes, None).await;
    ensure(shown.len() == actual.len(), || {
        format!("{} Nodes have {} answers", actual.len(), shown.len())
    })?;
    for (shown, actual) in shown.into_iter().zip(&actual) {
        is_true(&present(shown)?, actual, "a batch")?;
    }
    Ok(())
}

async fn list(env: &TestEnv<'_>) -> Done {
    let actual = some(env).await?;
    let list = env.instances()?.list().await?;
    for actual in &actual {
        let id = actual.node.provider_id.as_ref();
        let listed = id.and_then(|id| list.get(id)).cloned();
        let listed =
            listed.ok_or_else(|| Stop::failed(format!("{} is not listed", actual.node.name)))?;
        let described = env.instances()?.describe(vec![listed], Priority::Normal);
        for shown in described.await {
            is_true(&shown?, actual, "a list")?;
        }
    }
    Ok(())
}

async fn describe(env: &TestEnv<'_>) -> Done {
    let actual = some(env).await?;
    let list = env.instances()?.list().await?;
    let mut summaries = Vec::new();
    for actual in actual.iter().rev() {
        let id = actual.node.provider_id.as_ref();
        summaries.extend(id.and_then(|id| list.get(id)).cloned());
    }
    let described = env.instances()?.describe(summaries, Priority::Normal).await;
    ensure(described.len() == actual.len(), || {
        format!(
            "{} instances have {} answers",
            actual.len(),
            described.len()
        )
    })?;
    let mut complete = Vec::new();
    for (shown, actual) in described.into_iter().zip(actual.iter().rev()) {
        let shown = shown?;
        is_true(&shown, actual, "`describe`")?;
        ensure(!shown.is_summary, || {
            format!("{} is still a summary", shown.name)
        })?;
        complete.push(shown);
    }
    let again = env
        .instances()?
        .describe(complete.clone(), Priority::Background);
    for (again, before) in again.await.into_iter().zip(complete) {
        let again = again?;
        ensure(again == before, || format!("{before:?} became {again:?}"))?;
    }
    Ok(())
}
