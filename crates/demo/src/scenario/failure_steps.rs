//! Failures that must do no harm: of the cloud, of the credential, of the leader.

use cloudkeel_embedded::Health;
use tokio::time::{Instant, sleep};

use super::StepContext;
use super::checks::is_ready;
use super::lifecycle_steps::last;
use crate::polling::until;
use crate::settings::{NOTHING_FOR, POLL_INTERVAL};
use crate::world::World;

pub(super) async fn outage(context: &StepContext<'_>) -> Result<String, String> {
    let world = context.world;
    let before = instance_reads(world);
    world.cloud.break_down();
    context.say("every call to the cloud is answered with 503");
    let silent = nothing_is_deleted(context).await?;
    let refused = instance_reads(world) - before;
    world.repair_cloud();
    recover(context, &silent).await?;
    was_asked(refused)?;
    Ok(format!(
        "the cloud refused {refused} reads of machines; no Node was deleted"
    ))
}

pub(super) async fn wrong_token(context: &StepContext<'_>) -> Result<String, String> {
    let world = context.world;
    let before = instance_reads(world);
    world.swap_token();
    context
        .say("the managers' token now belongs to another project: every machine seems to be gone");
    let silent = nothing_is_deleted(context).await?;
    let asked = instance_reads(world) - before;
    let stopped = until("deletions are stopped", || stop_reason(world)).await;
    if let Ok(reason) = &stopped {
        context.say(&format!("deletions are stopped: {reason}"));
    }
    let strays = world.cloud.made_elsewhere();
    world.repair_cloud();
    recover(context, &silent).await?;
    was_asked(asked)?;
    stopped?;
    if strays > 0 {
        return Err(format!(
            "{strays} load balancers or routes were created in the other project"
        ));
    }
    Ok(format!(
        "{asked} reads of machines found none of this cluster; no Node was deleted"
    ))
}

/// How often the cloud was asked for instances: without that, the step would prove nothing.
fn instance_reads(world: &World) -> u64 {
    world.cloud.calls().of_machines
}

fn was_asked(looks: u64) -> Result<(), String> {
    if looks == 0 {
        return Err("the cloud was not asked for machines, so nothing is proven".to_owned());
    }
    Ok(())
}

/// Why the leader deletes no Node at all, once it has stopped.
async fn stop_reason(world: &World) -> Option<String> {
    let seen = world.managers.poll().await;
    let statuses = seen.into_iter().filter_map(|seen| seen.status);
    let mut clouds = statuses.flat_map(|status| status.clouds);
    clouds.find_map(|cloud| Some(cloud.deletions?.stopped?.reason))
}

/// Stops the reports of a kubelet, so that the cloud is asked about its instance, and waits for longer than a
/// deletion takes here; returns which. If a Node is deleted, the kubelet resumes at once: the next step must not
/// suffer from it.
async fn nothing_is_deleted(context: &StepContext<'_>) -> Result<String, String> {
    let fleet = &context.world.fleet;
    let name = last(context)?;
    fleet.set_health(&name, Health::Silent)?;
    context.say(&format!("and the kubelet of {name} stops"));
    if let Err(why) = all_nodes_stay(context, &name).await {
        fleet.set_health(&name, Health::Ready)?;
        return Err(why);
    }
    Ok(name)
}

async fn all_nodes_stay(context: &StepContext<'_>, silent: &str) -> Result<(), String> {
    let world = context.world;
    let is_unknown = |node: &_| !is_ready(node);
    context.node_is(silent, "is not ready", is_unknown).await?;
    let deadline = Instant::now() + NOTHING_FOR;
    while Instant::now() < deadline {
        for name in world.fleet.names() {
            if world.node(&name).await?.is_none() {
                return Err(format!(
                    "Node {name} was deleted, though its machine is there"
                ));
            }
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn recover(context: &StepContext<'_>, silent: &str) -> Result<(), String> {
    context.world.fleet.set_health(silent, Health::Ready)?;
    context.node_works(silent).await?;
    context.serves(silent).await
}

pub(super) async fn fail_over(context: &StepContext<'_>) -> Result<String, String> {
    let (killed, next, seconds) = kill_the_leader(context).await?;
    context.say(&format!("{next} leads after {seconds:.1} s"));
    let new = context.world.fleet.add().await?;
    context.node_works(&new).await?;
    context.say(&format!("it initialized {new}"));
    until(&format!("{killed} is back"), || async {
        let seen = context.world.managers.poll().await;
        let all_answer = seen.iter().all(|seen| seen.status.is_some());
        all_answer.then_some(())
    })
    .await?;
    Ok(format!(
        "{killed} was killed, {next} led after {seconds:.1} s"
    ))
}

/// Kills the leader and waits for the next; returns both, and how long it took.
pub(super) async fn kill_the_leader(
    context: &StepContext<'_>,
) -> Result<(&'static str, &'static str, f64), String> {
    let managers = &context.world.managers;
    let killed = until("a manager leads", || managers.leader()).await?;
    context.say(&format!("{killed} leads, and is killed"));
    managers.kill(killed)?;
    let begun = Instant::now();
    let next = until("the other manager leads", || async {
        managers.leader().await.filter(|leader| *leader != killed)
    })
    .await?;
    Ok((killed, next, begun.elapsed().as_secs_f64()))
}
