//! What has to come true before a change is answered for.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_provider_local::wire::ErrorCode;
use http::StatusCode;

use super::SimulatedCloud;
use super::refusal::Refusal;

/// Makes true outside of the world what was changed in it. A simulation has none.
#[async_trait]
pub trait Aftermath: fmt::Debug + Send + Sync {
    /// Returns when everything that has changed so far is safe. On failure: what went wrong.
    async fn settle(&self) -> Result<(), String>;
}

impl SimulatedCloud {
    /// From now on every change is answered for only after this. The first one counts.
    pub fn set_aftermath(&self, aftermath: Arc<dyn Aftermath>) {
        // A second one has nothing to add: it would be told of the same changes.
        let _ = self.aftermath.set(aftermath);
    }

    /// Waits until everything that has changed so far is safe.
    pub async fn settle(&self) -> Result<(), Refusal> {
        let Some(aftermath) = self.aftermath.get() else {
            return Ok(());
        };
        aftermath.settle().await.map_err(|why| {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let message = format!("it happened, but may not last: {why}");
            Refusal::new(status, ErrorCode::Unavailable, message)
        })
    }
}
