//! What happens to every cluster: machines come, serve, rest and go.

use tokio::time::Instant;

use super::Stage;
use super::look::{SHUT_DOWN, has_taint, is_ready};
use crate::probe;
use crate::wait::until;

pub(super) async fn join(stage: &Stage<'_>) -> Result<String, String> {
    let names = stage.world.fleet.names();
    for name in &names {
        let node = stage.node_works(name).await?;
        let id = node.spec.and_then(|spec| spec.provider_id);
        stage.say(&format!("{name} is {}", id.unwrap_or_default()));
    }
    Ok(format!("{} Nodes are initialised", names.len()))
}

pub(super) async fn balance(stage: &Stage<'_>) -> Result<String, String> {
    let world = stage.world;
    world.make_service().await?;
    let at = until("the Service has an address", || world.entrance()).await?;
    let answer = until("the balancer answers", || async {
        probe::get(at).await.ok()
    })
    .await?;
    stage.scenario.note_first_answer(world.started.elapsed());
    stage.say(&format!("$ {}", probe::curl(at)));
    stage.say(&answer);
    // From here to the end, every request is counted.
    world.traffic.begin(at);
    for name in world.fleet.names() {
        stage.serves(&name).await?;
    }
    Ok(format!("{at} answers: {answer}"))
}

pub(super) async fn power_off(stage: &Stage<'_>) -> Result<String, String> {
    let name = last(stage)?;
    stage.say(&format!("{name} is switched off"));
    stage.world.fleet.power_off(&name).await?;
    let is_tainted = |node: &_| has_taint(node, SHUT_DOWN);
    stage.node_is(&name, "has the taint", is_tainted).await?;
    stage.say(&format!("Node {name} has the taint {SHUT_DOWN}"));
    stage.world.fleet.power_on(&name).await?;
    let is_back = |node: &_| is_ready(node) && !has_taint(node, SHUT_DOWN);
    stage.node_is(&name, "is back", is_back).await?;
    stage.serves(&name).await?;
    Ok(format!("{name} was tainted, and is back without the taint"))
}

pub(super) async fn destroy(stage: &Stage<'_>) -> Result<String, String> {
    let name = last(stage)?;
    stage.say(&format!(
        "{name} is destroyed. Here two proofs over 2 s are enough; in production it takes three over 30 s"
    ));
    let begun = Instant::now();
    stage.world.fleet.destroy(&name).await?;
    stage.node_is_gone(&name).await?;
    let seconds = begun.elapsed().as_secs_f64();
    stage.say(&format!("Node {name} is removed after {seconds:.1} s"));
    let new = stage.world.fleet.add().await?;
    stage.node_works(&new).await?;
    stage.serves(&new).await?;
    Ok(format!("Node {name} is removed; {new} took its place"))
}

/// The machine that this chapter is about.
pub(super) fn last(stage: &Stage<'_>) -> Result<String, String> {
    let name = stage.world.fleet.names().pop();
    name.ok_or_else(|| "there is no machine left".to_owned())
}
