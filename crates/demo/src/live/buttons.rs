//! The buttons of the demo's page.

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_page::{Buttons, Press};

use super::action;
use crate::scenario::{Scenario, ScenarioStep};
use crate::terminal::Terminal;
use crate::world::World;

/// Executes the buttons of the page.
pub(crate) struct DemoButtons {
    world: Arc<World>,
    scenario: Arc<Scenario>,
    terminal: Arc<Terminal>,
}

impl DemoButtons {
    pub(crate) const fn new(
        world: Arc<World>,
        scenario: Arc<Scenario>,
        terminal: Arc<Terminal>,
    ) -> Self {
        Self {
            world,
            scenario,
            terminal,
        }
    }

    fn start_scenario(&self) -> Result<String, String> {
        if self.scenario.is_playing() {
            return Err("the scenario is being played already".to_owned());
        }
        let (world, scenario) = (Arc::clone(&self.world), Arc::clone(&self.scenario));
        let terminal = Arc::clone(&self.terminal);
        tokio::spawn(async move { scenario.play(&world, &terminal, &ScenarioStep::ALL).await });
        Ok("The scenario begins.".to_owned())
    }
}

#[async_trait]
impl Buttons for DemoButtons {
    async fn press(&self, press: Press) -> Result<String, String> {
        let (world, on) = (&self.world, press.on.as_str());
        match press.id.as_str() {
            action::ADD => {
                let name = world.fleet.add().await?;
                Ok(format!("{name} was created and joins."))
            }
            action::POWER_OFF => {
                world.fleet.power_off(on).await?;
                Ok(format!("{on} was switched off."))
            }
            action::POWER_ON => {
                world.fleet.power_on(on).await?;
                Ok(format!("{on} was switched on."))
            }
            action::DESTROY => {
                world.fleet.destroy(on).await?;
                Ok(format!("{on} was destroyed."))
            }
            action::BREAK => {
                world.cloud.break_down();
                Ok("The cloud answers every call with 503.".to_owned())
            }
            action::SWAP_TOKEN => {
                world.swap_token();
                Ok("The managers' token belongs to another project.".to_owned())
            }
            action::REPAIR => {
                world.repair_cloud();
                Ok("The cloud works again.".to_owned())
            }
            action::KILL => {
                world.managers.kill(on)?;
                Ok(format!("{on} was killed. It is started again soon."))
            }
            action::SCENARIO => self.start_scenario(),
            other => Err(format!("{other:?} is not a button of this page")),
        }
    }
}
