//! Looking up one instance.

use cloudkeel_api::Capability::Instances;
use cloudkeel_api::{Existence, Instance, InstanceState, NodeFacts, Recognition, Shared};
use futures::FutureExt as _;

use crate::conformance::adapter::{Change, Stop};
use crate::conformance::check::{Check, Done, check, core};
use crate::conformance::env::{TestEnv, ensure};

pub(super) const CHECKS: &[Check] = &[
    core(
        "instances/found-by-id",
        "an instance is found by its provider ID, with its name and an address",
        |env| by_id(env).boxed(),
    ),
    core(
        "instances/found-by-name",
        "the instance of a Node without an ID is found by name",
        |env| by_name(env).boxed(),
    ),
    core(
        "instances/not-found-by-similar-name",
        "a name that only begins or ends like an instance's finds nothing",
        |env| by_similar_name(env).boxed(),
    ),
    check(
        Instances,
        "instances/ambiguous-name-is-unknown",
        "if two instances have one name, neither is the Node's",
        |env| two_of_a_name(env).boxed(),
    ),
    core(
        "instances/switched-off-exists",
        "an instance that is switched off exists and is shown as shut down",
        |env| shut_down(env).boxed(),
    ),
    core(
        "instances/gone-with-proof",
        "a destroyed instance is gone, and the proof names it and its scope",
        |env| gone(env).boxed(),
    ),
    core(
        "instances/gone-under-a-reused-name",
        "a destroyed instance is gone although another one has its name",
        |env| gone_under_a_reused_name(env).boxed(),
    ),
    core(
        "instances/foreign-id-makes-no-call",
        "an ID of another kind of cloud is foreign and unknown, and makes no call",
        |env| foreign_id(env).boxed(),
    ),
];

/// The instance, if it was found.
pub(super) fn present(answer: Existence) -> Result<Instance, Stop> {
    match answer {
        Existence::Present(instance) => Ok(*instance),
        Existence::Gone(proof) => Err(Stop::failed(format!(
            "an existing instance is gone: {proof}"
        ))),
        Existence::Unknown(doubt) => {
            Err(Stop::failed(format!("an instance is not found: {doubt}")))
        }
    }
}

/// That an answer is `Unknown`.
pub(super) fn unknown(answer: &Existence, case: &str) -> Done {
    match answer {
        Existence::Unknown(_) => Ok(()),
        Existence::Gone(proof) => Err(Stop::failed(format!("{case}: gone: {proof}"))),
        Existence::Present(found) => {
            let (id, name) = (&found.id, &found.name);
            Err(Stop::failed(format!("{case}: found {id} ({name})")))
        }
    }
}

/// The Node before it has a provider ID.
fn new_node(node: &NodeFacts) -> NodeFacts {
    NodeFacts {
        provider_id: None,
        ..node.clone()
    }
}

/// The Node of an instance.
fn nth(nodes: &[NodeFacts], index: usize) -> Result<&NodeFacts, Stop> {
    let node = nodes.get(index);
    node.ok_or_else(|| Stop::not_playable("there are fewer instances than were added"))
}

fn same_instance(node: &NodeFacts, found: &Instance) -> Done {
    ensure(Some(&found.id) == node.provider_id.as_ref(), || {
        let (expected, found) = (&node.provider_id, &found.id);
        format!("{} has the ID {expected:?}, found was {found}", node.name)
    })
}

async fn by_id(env: &TestEnv<'_>) -> Done {
    for node in &env.add_nodes(3).await? {
        let found = present(env.instances()?.find(node, None).await)?;
        same_instance(node, &found)?;
        let (name, expected) = (&found.name, &node.name);
        ensure(found.answers_to(expected), || {
            format!("{expected} is found under the name {name}")
        })?;
        ensure(!found.addresses.is_empty(), || {
            format!("{name} has no address")
        })?;
        let ours = env.provider.recognize(&found.id);
        ensure(ours == Recognition::Ours, || {
            format!("its own ID {} is recognized as {ours:?}", found.id)
        })?;
        ensure(found.state == InstanceState::Running, || {
            format!("{name} runs, but is shown as {}", found.state)
        })?;
    }
    Ok(())
}

async fn by_name(env: &TestEnv<'_>) -> Done {
    for node in &env.add_nodes(3).await? {
        let found = present(env.instances()?.find(&new_node(node), None).await)?;
        same_instance(node, &found)?;
    }
    Ok(())
}

async fn by_similar_name(env: &TestEnv<'_>) -> Done {
    for name in ["node-10", "my-node-1", "node-1-old"] {
        env.cloud.add_instance(name).await?;
    }
    for name in [
        "node-1",
        "node",
        "ode-10",
        "node-100",
        "node-1-ol",
        "node-*",
    ] {
        let node = NodeFacts {
            name: name.to_owned(),
            uid: "uid".to_owned(),
            ..NodeFacts::default()
        };
        let answer = env.instances()?.find(&node, None).await;
        unknown(&answer, &format!("looking for {name:?}"))?;
    }
    Ok(())
}

async fn two_of_a_name(env: &TestEnv<'_>) -> Done {
    let node = env.cloud.add_instance("twin").await?.node;
    env.cloud.add_instance("twin").await?;
    let answer = env.instances()?.find(&named_only(&node), None).await;
    unknown(&answer, "two instances of one name")
}

/// A Node of which nothing but the name is known.
fn named_only(node: &NodeFacts) -> NodeFacts {
    NodeFacts {
        name: node.name.clone(),
        uid: node.uid.clone(),
        ..NodeFacts::default()
    }
}

async fn shut_down(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let node = nth(&nodes, 0)?;
    env.cloud.change(Change::SwitchOff(&node.name)).await?;
    let known_instance = env.known_instance_besides(node).await?;
    let found = present(env.instances()?.find(node, known_instance.as_ref()).await)?;
    ensure(found.state == InstanceState::ShutDown, || {
        format!("it is switched off, but shown as {}", found.state)
    })
}

async fn gone(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(3).await?;
    let node = nth(&nodes, 0)?;
    env.cloud.destroy_instance(&node.name).await?;
    let known_instance = env.known_instance_besides(node).await?;
    let scope = env.instances()?.list().await?.scope().clone();
    let both = [node.clone(), nth(&nodes, 1)?.clone()].map(Shared::from);
    let alone = env.instances()?.find(node, known_instance.as_ref()).await;
    let mut answers = env
        .instances()?
        .find_many(&both, known_instance.as_ref())
        .await;
    ensure(answers.len() == 2, || {
        format!("find_many of 2 Nodes has {} answers", answers.len())
    })?;
    if let Some(other) = answers.pop() {
        same_instance(nth(&nodes, 1)?, &present(other)?)?;
    }
    answers.push(alone);
    for answer in answers {
        let Existence::Gone(proof) = answer else {
            let message = format!("a destroyed instance is not gone: {answer:?}");
            return Err(Stop::failed(message));
        };
        ensure(Some(proof.machine()) == node.provider_id.as_ref(), || {
            format!("the proof is about another instance: {proof}")
        })?;
        ensure(*proof.scope() == scope, || {
            format!("the proof is from another scope than {scope}: {proof}")
        })?;
    }
    Ok(())
}

async fn gone_under_a_reused_name(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(2).await?;
    let node = nth(&nodes, 0)?;
    env.cloud.destroy_instance(&node.name).await?;
    env.cloud.add_instance(&node.name).await?;
    let known_instance = env.known_instance_besides(node).await?;
    let answer = env.instances()?.find(node, known_instance.as_ref()).await;
    ensure(matches!(answer, Existence::Gone(_)), || {
        format!("the instance of that ID is gone, but the answer is {answer:?}")
    })
}

async fn foreign_id(env: &TestEnv<'_>) -> Done {
    let nodes = env.add_nodes(1).await?;
    let known_instance = env.known_instance_besides(nth(&nodes, 0)?).await?;
    let Ok(id) = "elsewhere://zone/4711".parse() else {
        return Err(Stop::not_playable("no foreign ID"));
    };
    let seen_as = env.provider.recognize(&id);
    ensure(seen_as == Recognition::Foreign, || {
        format!("{id} is recognized as {seen_as:?}")
    })?;
    let node = NodeFacts {
        provider_id: Some(id),
        ..nth(&nodes, 0)?.clone()
    };
    let find = env.instances()?.find(&node, known_instance.as_ref());
    let (answer, calls) = env.counted(find).await;
    unknown(&answer, "an ID of another cloud")?;
    ensure(calls.total == 0, || {
        format!("an ID of another cloud causes {} calls", calls.total)
    })
}
