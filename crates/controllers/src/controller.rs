//! What the manager knows of a controller.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::ControllerName;
use crate::report::{ControllerReport, Holdings};

/// A controller. It runs on the leader only, and its clients stop writing with the lease.
#[async_trait]
pub trait Controller: Send + Sync {
    /// Which one.
    fn name(&self) -> ControllerName;

    /// Works until `stop` is cancelled, then returns soon. It never gives up by itself: whatever goes
    /// wrong is told and tried again.
    async fn run(&self, stop: CancellationToken);

    /// How it stands, for people who ask.
    fn report(&self) -> ControllerReport {
        ControllerReport::default()
    }

    /// What it keeps in the clouds, as far as it knows without asking them.
    fn holdings(&self) -> Holdings {
        Holdings::default()
    }
}
