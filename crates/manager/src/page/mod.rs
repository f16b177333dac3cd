//! What the live page shows of this process: `--page`.

mod holdings;
mod rows;

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::Clock;
use cloudkeel_page::{Level, ManagerRow, Picture, Source};

use crate::health::{Health, Watched};
use crate::metrics::CloudsMetrics;

/// Takes the picture of this process.
pub(crate) struct Board {
    health: Arc<Health>,
    clouds: CloudsMetrics,
    clock: Arc<dyn Clock>,
}

impl Board {
    pub(crate) const fn new(
        health: Arc<Health>,
        clouds: CloudsMetrics,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            health,
            clouds,
            clock,
        }
    }
}

#[async_trait]
impl Source for Board {
    async fn picture(&self) -> Picture {
        let board = self.health.board();
        let status = board.read();
        let Watched { nodes, services } = board.watched();
        let nodes = nodes.map(|nodes| nodes.all()).unwrap_or_default();
        let services = services.map(|services| services.all()).unwrap_or_default();
        let (state, level, notice) = if status.leading {
            ("leads", Level::Good, None)
        } else {
            let notice = "This replica stands by: the one that leads shows the cluster.";
            ("stands by", Level::Neutral, Some(notice.to_owned()))
        };
        Picture {
            title: "cloudkeel".to_owned(),
            time: self.clock.now().to_string(),
            notice,
            managers: vec![ManagerRow {
                name: "this replica".to_owned(),
                state: state.to_owned(),
                level,
                ..ManagerRow::default()
            }],
            nodes: rows::nodes(&nodes, &rows::Machines::of(&board.clouds())),
            balancers: holdings::balancers(&services, &nodes, &status.holdings),
            routes: status.holdings.routes.iter().map(holdings::route).collect(),
            more_routes: rows::count(status.holdings.more_routes),
            controllers: status.controllers.iter().map(rows::controller).collect(),
            clouds: status
                .clouds
                .iter()
                .map(|cloud| rows::cloud(cloud, self.clouds.spent(&cloud.name)))
                .collect(),
            events: status.events.into_iter().map(holdings::event).collect(),
            ..Picture::default()
        }
    }
}

#[cfg(test)]
mod tests;
