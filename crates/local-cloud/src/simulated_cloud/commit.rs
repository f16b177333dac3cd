//! Committing a change before it is answered for.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use cloudkeel_provider_local::wire::ErrorCode;
use http::StatusCode;

use super::SimulatedCloud;
use super::refusal::Refusal;

/// Carries out what was changed in the state, before the change is answered for. A simulation has none.
#[async_trait]
pub trait CommitHook: fmt::Debug + Send + Sync {
    /// Returns when everything that has changed so far is safe. On failure: what went wrong.
    async fn commit(&self) -> Result<(), String>;
}

impl SimulatedCloud {
    /// From now on every change is answered for only after this. The first one counts.
    pub fn set_commit_hook(&self, commit_hook: Arc<dyn CommitHook>) {
        // A second one has nothing to add: it would commit the same changes.
        let _ = self.commit_hook.set(commit_hook);
    }

    /// Waits until everything that has changed so far is safe.
    pub async fn settle(&self) -> Result<(), Refusal> {
        let Some(commit_hook) = self.commit_hook.get() else {
            return Ok(());
        };
        commit_hook.commit().await.map_err(|why| {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let message = format!("it happened, but may not last: {why}");
            Refusal::new(status, ErrorCode::Unavailable, message)
        })
    }
}
