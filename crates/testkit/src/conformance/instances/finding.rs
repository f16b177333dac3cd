//! Looking for one machine.

use cloudkeel_api::Capability::Instances;
use cloudkeel_api::{Existence, Instance, InstanceState, NodeFacts, Recognition, Shared};
use futures::FutureExt as _;

use crate::conformance::bench::{Bench, ensure};
use crate::conformance::check::{Check, Done, check};
use crate::conformance::emulator::Stop;

pub(super) const CHECKS: &[Check] = &[
    check(
        Instances,
        "instances/found-by-id",
        "a machine is found by its provider ID, with its name and an address",
        |bench| by_id(bench).boxed(),
    ),
    check(
        Instances,
        "instances/found-by-name",
        "a Node without an ID finds its machine by name",
        |bench| by_name(bench).boxed(),
    ),
    check(
        Instances,
        "instances/not-by-a-similar-name",
        "a name that only begins or ends like a machine's finds nothing",
        |bench| by_similar_name(bench).boxed(),
    ),
    check(
        Instances,
        "instances/two-of-a-name-are-unknown",
        "two machines of one name are neither of them the Node's",
        |bench| two_of_a_name(bench).boxed(),
    ),
    check(
        Instances,
        "instances/shut-down-exists",
        "a machine that is switched off exists and is shown as shut down",
        |bench| shut_down(bench).boxed(),
    ),
    check(
        Instances,
        "instances/gone-with-proof",
        "a destroyed machine is gone, and the proof names it and its scope",
        |bench| gone(bench).boxed(),
    ),
    check(
        Instances,
        "instances/gone-under-a-reused-name",
        "a destroyed machine is gone although another one has its name",
        |bench| gone_under_a_reused_name(bench).boxed(),
    ),
    check(
        Instances,
        "instances/foreign-id-costs-nothing",
        "an ID of another kind of cloud is not ours, unknown, and causes no call",
        |bench| foreign_id(bench).boxed(),
    ),
];

/// The machine, if it was found.
pub(super) fn present(answer: Existence) -> Result<Instance, Stop> {
    match answer {
        Existence::Present(instance) => Ok(*instance),
        Existence::Gone(proof) => Err(Stop::wrong(format!("an existing machine is gone: {proof}"))),
        Existence::Unknown(doubt) => Err(Stop::wrong(format!("a machine is not found: {doubt}"))),
    }
}

/// That an answer is `Unknown`.
pub(super) fn unknown(answer: &Existence, case: &str) -> Done {
    match answer {
        Existence::Unknown(_) => Ok(()),
        Existence::Gone(proof) => Err(Stop::wrong(format!("{case}: gone: {proof}"))),
        Existence::Present(found) => {
            let (id, name) = (&found.id, &found.name);
            Err(Stop::wrong(format!("{case}: found {id} ({name})")))
        }
    }
}

/// The Node before it knows its machine.
fn newcomer(node: &NodeFacts) -> NodeFacts {
    NodeFacts {
        provider_id: None,
        ..node.clone()
    }
}

/// The Node of a machine.
fn nth(nodes: &[NodeFacts], index: usize) -> Result<&NodeFacts, Stop> {
    let node = nodes.get(index);
    node.ok_or_else(|| Stop::cannot_play("there are fewer machines than were added"))
}

fn same_machine(node: &NodeFacts, found: &Instance) -> Done {
    ensure(Some(&found.id) == node.provider_id.as_ref(), || {
        let (wanted, found) = (&node.provider_id, &found.id);
        format!("{} has the ID {wanted:?}, found was {found}", node.name)
    })
}

async fn by_id(bench: &Bench<'_>) -> Done {
    for node in &bench.machines(3).await? {
        let found = present(bench.instances()?.find(node, None).await)?;
        same_machine(node, &found)?;
        let (name, wanted) = (&found.name, &node.name);
        ensure(found.answers_to(wanted), || {
            format!("{wanted} is found under the name {name}")
        })?;
        ensure(!found.addresses.is_empty(), || {
            format!("{name} has no address")
        })?;
        let ours = bench.provider.recognize(&found.id);
        ensure(ours == Recognition::Ours, || {
            format!("its own ID {} is recognised as {ours:?}", found.id)
        })?;
        ensure(found.state == InstanceState::Running, || {
            format!("{name} runs, but is shown as {}", found.state)
        })?;
    }
    Ok(())
}

async fn by_name(bench: &Bench<'_>) -> Done {
    for node in &bench.machines(3).await? {
        let found = present(bench.instances()?.find(&newcomer(node), None).await)?;
        same_machine(node, &found)?;
    }
    Ok(())
}

async fn by_similar_name(bench: &Bench<'_>) -> Done {
    for name in ["node-10", "my-node-1", "node-1-old"] {
        bench.cloud.add_machine(name).await?;
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
        let answer = bench.instances()?.find(&node, None).await;
        unknown(&answer, &format!("looking for {name:?}"))?;
    }
    Ok(())
}

async fn two_of_a_name(bench: &Bench<'_>) -> Done {
    let node = bench.cloud.add_machine("twin").await?;
    bench.cloud.add_machine("twin").await?;
    let answer = bench.instances()?.find(&named_only(&node), None).await;
    unknown(&answer, "two machines of one name")
}

/// A Node of which nothing but the name is known.
fn named_only(node: &NodeFacts) -> NodeFacts {
    NodeFacts {
        name: node.name.clone(),
        uid: node.uid.clone(),
        ..NodeFacts::default()
    }
}

async fn shut_down(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let node = nth(&nodes, 0)?;
    bench.cloud.switch_off_machine(&node.name).await?;
    let sighting = bench.sighting_besides(node).await?;
    let found = present(bench.instances()?.find(node, sighting.as_ref()).await)?;
    ensure(found.state == InstanceState::ShutDown, || {
        format!("it is switched off, but shown as {}", found.state)
    })
}

async fn gone(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(3).await?;
    let node = nth(&nodes, 0)?;
    bench.cloud.destroy_machine(&node.name).await?;
    let sighting = bench.sighting_besides(node).await?;
    let scope = bench.instances()?.sweep().await?.scope().clone();
    let both = [node.clone(), nth(&nodes, 1)?.clone()].map(Shared::from);
    let alone = bench.instances()?.find(node, sighting.as_ref()).await;
    let mut answers = bench.instances()?.find_many(&both, sighting.as_ref()).await;
    ensure(answers.len() == 2, || {
        format!("find_many of 2 Nodes has {} answers", answers.len())
    })?;
    if let Some(other) = answers.pop() {
        same_machine(nth(&nodes, 1)?, &present(other)?)?;
    }
    answers.push(alone);
    for answer in answers {
        let Existence::Gone(proof) = answer else {
            let message = format!("a destroyed machine is not gone: {answer:?}");
            return Err(Stop::wrong(message));
        };
        ensure(Some(proof.machine()) == node.provider_id.as_ref(), || {
            format!("the proof is about another machine: {proof}")
        })?;
        ensure(*proof.scope() == scope, || {
            format!("the proof is from another scope than {scope}: {proof}")
        })?;
    }
    Ok(())
}

async fn gone_under_a_reused_name(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(2).await?;
    let node = nth(&nodes, 0)?;
    bench.cloud.destroy_machine(&node.name).await?;
    bench.cloud.add_machine(&node.name).await?;
    let sighting = bench.sighting_besides(node).await?;
    let answer = bench.instances()?.find(node, sighting.as_ref()).await;
    ensure(matches!(answer, Existence::Gone(_)), || {
        format!("the machine of that ID is gone, but the answer is {answer:?}")
    })
}

async fn foreign_id(bench: &Bench<'_>) -> Done {
    let nodes = bench.machines(1).await?;
    let sighting = bench.sighting_besides(nth(&nodes, 0)?).await?;
    let Ok(id) = "elsewhere://zone/4711".parse() else {
        return Err(Stop::cannot_play("no foreign ID"));
    };
    let seen_as = bench.provider.recognize(&id);
    ensure(seen_as == Recognition::Foreign, || {
        format!("{id} is recognised as {seen_as:?}")
    })?;
    let node = NodeFacts {
        provider_id: Some(id),
        ..nth(&nodes, 0)?.clone()
    };
    let find = bench.instances()?.find(&node, sighting.as_ref());
    let (answer, calls) = bench.counted(find).await;
    unknown(&answer, "an ID of another cloud")?;
    ensure(calls.total == 0, || {
        format!("an ID of another cloud causes {} calls", calls.total)
    })
}
