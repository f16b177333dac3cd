//! The live page of this process: `--page`.

mod cloud_rows;
mod node_rows;

use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_api::Clock;
use cloudkeel_page::{Leader, Level, ManagerRow, PageData, Source, Summary};

use crate::health::{Health, Status, StatusReport, Watched};
use crate::metrics::CloudsMetrics;
use crate::panics::PanicReport;

/// Collects the page's data from this process.
pub(crate) struct ManagerPage {
    health: Arc<Health>,
    clouds: CloudsMetrics,
    clock: Arc<dyn Clock>,
}

impl ManagerPage {
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
impl Source for ManagerPage {
    async fn data(&self) -> PageData {
        let report = self.health.status_report();
        PageData {
            time: self.clock.now().to_string(),
            ..page_data(report, &report.read(), &self.clouds)
        }
    }
}

/// The state of this process as rows, with a summary of the problems.
pub(crate) fn page_data(
    report: &StatusReport,
    status: &Status,
    clouds: &CloudsMetrics,
) -> PageData {
    let Watched { nodes, services } = report.watched();
    let nodes = nodes.map(|nodes| nodes.all()).unwrap_or_default();
    let services = services.map(|services| services.all()).unwrap_or_default();
    let (state, level) = if status.leading {
        ("leads", Level::Good)
    } else {
        ("stands by", Level::Neutral)
    };
    let managed = &status.managed;
    let mut data = PageData {
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
        nodes: node_rows::nodes(
            &nodes,
            &node_rows::Machines::of(&report.clouds()),
            &managed.waiting_nodes,
        ),
        balancers: cloud_rows::balancers(&services, managed),
        routes: managed.routes.iter().map(cloud_rows::route).collect(),
        more_routes: node_rows::count(managed.more_routes),
        controllers: status
            .controllers
            .iter()
            .map(node_rows::controller)
            .collect(),
        clouds: status
            .clouds
            .iter()
            .map(|cloud| node_rows::cloud(cloud, clouds.spent(&cloud.name)))
            .collect(),
        events: status.events.iter().map(cloud_rows::event).collect(),
        notice: status.panics.as_ref().map(panic_notice),
        ..PageData::default()
    };
    data.summary = Summary::of(&data);
    data
}

/// What every reader has to see: a program with a bug may not do all that it should.
fn panic_notice(panics: &PanicReport) -> String {
    let PanicReport { total, at, message } = panics;
    let times = if *total == 1 { "once" } else { "repeatedly" };
    format!("A bug: cloudkeel has panicked {times}, last at {at}: {message}. Please report it.")
}

#[cfg(test)]
mod tests;
