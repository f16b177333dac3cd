//! A dry run: the controllers as they are, on providers and clients that record what they would do and change nothing.
//!
//! ```text
//! controllers ─▶ DryRunProvider ─ reads ─▶ cloud
//!      │               └ plans ─▶ Recorder ─▶ `cloudkeel plan`, log, /status, metrics
//!      └──────▶ recording client ─ reads ─▶ API server
//!                      └ writes ─▶ Recorder
//! ```

mod changes;
mod provider;
mod recorder;
mod step;

use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Severity;
use cloudkeel_controllers::clouds::Cloud;
use cloudkeel_controllers::report::RouteUse;
use cloudkeel_controllers::runtime::Reported;
use cloudkeel_controllers::{Controller, ControllerName};
use tokio_util::sync::CancellationToken;

pub(crate) use changes::changes;
pub(crate) use provider::DryRunProvider;
pub(crate) use recorder::{INSTANCE_GONE, ObjectWrite, Recorder};
pub use step::{CloudCalls, DryRunReport, DryRunStep, WaitingReport};

/// How a balancer whose plan was recorded is reported by its controller.
pub(crate) const PLANNED: &str = "this is a dry run";

/// How often the controllers are asked whether they are idle, and how often in a row they have to be.
const IDLE_POLL: Duration = Duration::from_millis(20);
const IDLE_POLLS: u32 = 3;

/// A dry run of this process.
#[derive(Clone)]
pub(crate) struct DryRun {
    pub(crate) recorder: Arc<Recorder>,
    /// Whether it ends when the controllers have worked off what they saw at first.
    pub(crate) until_idle: bool,
}

impl DryRun {
    /// Waits until all controllers are idle and reports what they wait for; then stops them. Without an end, waits for
    /// ever.
    pub(crate) async fn end_when_idle(
        &self,
        controllers: &[Arc<dyn Controller>],
        clouds: &[Arc<Cloud>],
        stop: &CancellationToken,
    ) {
        if !self.until_idle {
            return std::future::pending().await;
        }
        let mut idle_polls = 0;
        while idle_polls < IDLE_POLLS {
            tokio::time::sleep(IDLE_POLL).await;
            let are_idle = controllers.iter().all(|controller| controller.is_idle());
            idle_polls = if are_idle { idle_polls + 1 } else { 0 };
        }
        self.note_state(controllers, clouds);
        self.recorder.complete();
        stop.cancel();
    }

    /// Records what the controllers wait for, and what could not be read.
    pub(crate) fn note_state(&self, controllers: &[Arc<dyn Controller>], clouds: &[Arc<Cloud>]) {
        for controller in controllers {
            let (name, report) = (controller.name().canonical(), controller.report());
            let waits = report.waits_for.iter();
            for what in waits.filter(|what| !what.contains(PLANNED)) {
                self.recorder.note_waiting(name, what);
            }
            for pending in &report.pending_deletions {
                self.recorder.note_pending_deletion(pending);
            }
            let suspects = report.managed.routes.iter();
            for route in suspects.filter(|route| route.role == RouteUse::Suspect) {
                self.recorder.note_suspect_route(route);
            }
        }
        for cloud in clouds {
            if let Some((_, error)) = cloud.inventory.failure() {
                let what = format!("instances cannot be listed: {error}");
                self.recorder
                    .note_failure(&cloud.name, "instances", Some(what));
            }
        }
    }

    /// Records what a controller reports as wrong.
    pub(crate) fn note_event(&self, reported: &Reported) {
        if reported.event.severity == Severity::Warning {
            let event = &reported.event;
            let object = match &event.subject {
                cloudkeel_api::Subject::Node { name, .. } => format!("Node {name}"),
                cloudkeel_api::Subject::Service(service) => format!("Service {service}"),
            };
            let problem = format!("{object}: {}: {}", event.reason, event.message);
            self.recorder.note_problem(problem);
        }
    }
}

/// The order in which a plan shows the controllers.
pub(crate) fn order_of(controller: &str) -> usize {
    let place = ControllerName::ALL.iter();
    let mut place = place.map(|name| name.canonical());
    place
        .position(|name| name == controller)
        .unwrap_or(usize::MAX)
}
