//! Labels and annotations: known and unknown ones.

use std::collections::BTreeMap;

use cloudkeel_api::Capability::LoadBalancers;
use futures::FutureExt as _;
use futures::future::ready;

use crate::conformance::adapter::Stop;
use crate::conformance::check::{Check, Done, check};
use crate::conformance::desired::spec;
use crate::conformance::env::{TestEnv, ensure, ensure_unchanged};

pub(super) const CHECKS: &[Check] = &[
    check(
        LoadBalancers,
        "load-balancers/unrelated-labels-change-nothing",
        "other labels of Nodes, and other labels and annotations of the Service, make no mutating call",
        |env| unrelated(env).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/node-selector",
        "the provider's own annotation selects Nodes by label, and a wrong value is a problem",
        |env| ready(selector(env)).boxed(),
    ),
    check(
        LoadBalancers,
        "load-balancers/unknown-annotations-are-reported",
        "a misspelt annotation of the provider's own is reported, a right one is not",
        |env| ready(unknown(env)).boxed(),
    ),
];

async fn unrelated(env: &TestEnv<'_>) -> Done {
    let mut nodes = env.add_nodes(2).await?;
    let before = spec(&[80], &nodes);
    env.settle(&before).await?;
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    for node in &mut nodes {
        node.labels
            .extend([pair("team", "web"), pair("example.com/spot", "true")]);
        node.annotations.extend([pair("example.com/note", "moved")]);
    }
    let mut after = spec(&[80], &nodes);
    after.balancer_ref.labels.extend([pair("app", "web")]);
    let annotations = &mut after.balancer_ref.annotations;
    annotations.extend([pair("example.com/owner", "web team")]);
    let (settled, calls) = env.counted(env.settle(&after)).await;
    settled?;
    ensure_unchanged(calls, "because of labels")?;
    env.only_balancer_matches(&after).await
}

fn given(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

fn selector(env: &TestEnv<'_>) -> Done {
    let Some(key) = env.cloud.samples().node_selector else {
        return Err(Stop::not_playable("the provider has no such annotation"));
    };
    let balancers = env.balancers()?;
    let none = balancers.node_selector(&BTreeMap::new());
    ensure(matches!(none, Ok(None)), || {
        format!("without {key} there is {none:?}")
    })?;
    let selector = balancers.node_selector(&given(key, "pool=web"));
    let Ok(Some(selector)) = selector else {
        return Err(Stop::failed(format!("{key}: pool=web is {selector:?}")));
    };
    let (web, other) = (given("pool", "web"), given("pool", "other"));
    ensure(selector.matches(&web) && !selector.matches(&other), || {
        format!("{key}: pool=web selects by {selector:?}")
    })?;
    let wrong = balancers.node_selector(&given(key, "pool in (web"));
    ensure(wrong.is_err(), || {
        format!("a value that cannot be read is {wrong:?}")
    })
}

fn unknown(env: &TestEnv<'_>) -> Done {
    let annotations = env.cloud.samples().annotations;
    if annotations.is_empty() {
        return Err(Stop::not_playable(
            "the provider has no annotations of its own",
        ));
    }
    for (key, value) in annotations {
        let known = env.balancers()?.unknown_annotations(&given(key, value));
        ensure(known.is_empty(), || format!("{key} is reported: {known:?}"))?;
        let misspelt = format!("{key}x");
        let unknown = env
            .balancers()?
            .unknown_annotations(&given(&misspelt, value));
        ensure(unknown.len() == 1, || {
            format!("{misspelt} is not reported: {unknown:?}")
        })?;
    }
    Ok(())
}
