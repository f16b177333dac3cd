//! Every machine is replaced, as by an upgrade.

use super::Stage;
use super::trouble::kill_the_leader;

pub(super) async fn roll(stage: &Stage<'_>) -> Result<String, String> {
    let world = stage.world;
    let old = world.fleet.names();
    for (index, name) in old.iter().enumerate() {
        let new = world.fleet.add().await?;
        if index == old.len() / 2 {
            kill_the_leader(stage).await?;
        }
        stage.node_works(&new).await?;
        stage.serves(&new).await?;
        world.exclude(name).await?;
        stage.is_drained(name).await?;
        stage.say(&format!("{new} serves, {name} is drained and destroyed"));
        world.fleet.destroy(name).await?;
    }
    for name in &old {
        stage.node_is_gone(name).await?;
    }
    let count = world.traffic.count();
    Ok(format!(
        "{} machines were replaced; {} requests so far, {} lost",
        old.len(),
        count.answered,
        count.lost
    ))
}
