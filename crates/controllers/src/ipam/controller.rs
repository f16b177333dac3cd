//! The controller, as the manager knows it.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::IpamController;
use crate::{Controller, ControllerName};

#[async_trait]
impl Controller for IpamController {
    fn name(&self) -> ControllerName {
        ControllerName::NodeIpam
    }

    async fn run(&self, stop: CancellationToken) {
        Self::run(self, stop).await;
    }
}
