//! Steps about instances: they join, serve, stop, are deleted and replaced.

use tokio::time::Instant;

use super::StepContext;
use super::checks::{SHUT_DOWN, has_taint, is_ready};
use super::failure_steps::kill_the_leader;
use crate::polling::until;
use crate::probe;

pub(super) async fn join(context: &StepContext<'_>) -> Result<String, String> {
    let names = context.world.fleet.names();
    for name in &names {
        let node = context.node_works(name).await?;
        let id = node.spec.and_then(|spec| spec.provider_id);
        context.say(&format!("{name} is {}", id.unwrap_or_default()));
    }
    Ok(format!("{} Nodes are initialized", names.len()))
}

pub(super) async fn balance(context: &StepContext<'_>) -> Result<String, String> {
    let world = context.world;
    world.make_service().await?;
    let at = until("the Service has an address", || world.entrance()).await?;
    let answer = until("the balancer answers", || async {
        probe::get(at).await.ok()
    })
    .await?;
    context.scenario.note_first_answer(world.started.elapsed());
    context.say(&format!("$ {}", probe::curl(at)));
    context.say(&answer);
    // From here to the end, every request is counted.
    world.traffic.begin(at);
    for name in world.fleet.names() {
        context.serves(&name).await?;
    }
    Ok(format!("{at} answers: {answer}"))
}

pub(super) async fn power_off(context: &StepContext<'_>) -> Result<String, String> {
    let name = last(context)?;
    context.say(&format!("{name} is switched off"));
    context.world.fleet.power_off(&name).await?;
    let is_tainted = |node: &_| has_taint(node, SHUT_DOWN);
    context.node_is(&name, "has the taint", is_tainted).await?;
    context.say(&format!("Node {name} has the taint {SHUT_DOWN}"));
    context.world.fleet.power_on(&name).await?;
    let is_back = |node: &_| is_ready(node) && !has_taint(node, SHUT_DOWN);
    context.node_is(&name, "is back", is_back).await?;
    context.serves(&name).await?;
    Ok(format!("{name} was tainted, and is back without the taint"))
}

pub(super) async fn destroy(context: &StepContext<'_>) -> Result<String, String> {
    let name = last(context)?;
    context.say(&format!(
        "{name} is destroyed. Here two proofs over 2 s are enough; in production it takes three over 30 s"
    ));
    let begun = Instant::now();
    context.world.fleet.destroy(&name).await?;
    context.node_is_gone(&name).await?;
    let seconds = begun.elapsed().as_secs_f64();
    context.say(&format!("Node {name} is removed after {seconds:.1} s"));
    let new = context.world.fleet.add().await?;
    context.node_works(&new).await?;
    context.serves(&new).await?;
    Ok(format!("Node {name} is removed; {new} took its place"))
}

/// The instance that this step is about.
pub(super) fn last(context: &StepContext<'_>) -> Result<String, String> {
    let name = context.world.fleet.names().pop();
    name.ok_or_else(|| "there is no machine left".to_owned())
}

/// Every instance is replaced, as by an upgrade, and the leader is killed in the middle.
pub(super) async fn roll(context: &StepContext<'_>) -> Result<String, String> {
    let world = context.world;
    let old = world.fleet.names();
    for (index, name) in old.iter().enumerate() {
        let new = world.fleet.add().await?;
        if index == old.len() / 2 {
            kill_the_leader(context).await?;
        }
        context.node_works(&new).await?;
        context.serves(&new).await?;
        world.exclude(name).await?;
        context.is_drained(name).await?;
        context.say(&format!("{new} serves, {name} is drained and destroyed"));
        world.fleet.destroy(name).await?;
    }
    for name in &old {
        context.node_is_gone(name).await?;
    }
    let count = world.traffic.count();
    Ok(format!(
        "{} machines were replaced; {} requests so far, {} lost",
        old.len(),
        count.answered,
        count.lost
    ))
}
