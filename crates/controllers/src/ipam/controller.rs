//! The controller, as the manager knows it.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::IpamController;
use crate::report::ControllerReport;
use crate::{Controller, ControllerName};

#[async_trait]
impl Controller for IpamController {
    fn name(&self) -> ControllerName {
        ControllerName::NodeIpam
    }

    async fn run(&self, stop: CancellationToken) {
        Self::run(self, stop).await;
    }

    fn report(&self) -> ControllerReport {
        let mut report = ControllerReport {
            queue: self.queue.report(),
            ..ControllerReport::default()
        };
        let waiting = self.desk().waiting.clone().into_iter();
        report.wait_for(
            waiting
                .map(|node| format!("{node}: a free Pod network"))
                .collect(),
        );
        report
    }
}
