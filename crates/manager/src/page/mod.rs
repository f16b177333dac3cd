//! What the live page shows of this process: `--page`.

mod holdings;
mod rows;

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::Clock;
use cloudkeel_page::{Leader, Level, ManagerRow, Picture, Source, Summary};

use crate::health::{Health, Status, StatusBoard, Watched};
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
        Picture {
            time: self.clock.now().to_string(),
            ..picture_of(board, &board.read(), &self.clouds)
        }
    }
}

/// What this process knows, as rows, with a summary of what is wrong.
pub(crate) fn picture_of(board: &StatusBoard, status: &Status, clouds: &CloudsMetrics) -> Picture {
    let Watched { nodes, services } = board.watched();
    let nodes = nodes.map(|nodes| nodes.all()).unwrap_or_default();
    let services = services.map(|services| services.all()).unwrap_or_default();
    let (state, level) = if status.leading {
        ("leads", Level::Good)
    } else {
        ("stands by", Level::Neutral)
    };
    let holdings = &status.holdings;
    let mut picture = Picture {
        title: "cloudkeel".to_owned(),
        version: status.version.to_owned(),
        leader: Leader {
            holder: status.leader.holder.clone(),
            is_shown: status.leading,
            error: status.leader.error.clone(),
        },
        managers: vec![ManagerRow {
            name: "this replica".to_owned(),
            state: state.to_owned(),
            level,
            ..ManagerRow::default()
        }],
        nodes: rows::nodes(
            &nodes,
            &rows::Machines::of(&board.clouds()),
            &holdings.waiting_nodes,
        ),
        balancers: holdings::balancers(&services, holdings),
        routes: holdings.routes.iter().map(holdings::route).collect(),
        more_routes: rows::count(holdings.more_routes),
        controllers: status.controllers.iter().map(rows::controller).collect(),
        clouds: status
            .clouds
            .iter()
            .map(|cloud| rows::cloud(cloud, clouds.spent(&cloud.name)))
            .collect(),
        events: status.events.iter().map(holdings::event).collect(),
        ..Picture::default()
    };
    picture.summary = Summary::of(&picture);
    picture
}

#[cfg(test)]
mod tests;
