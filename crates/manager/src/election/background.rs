//! The tasks that an election starts beside its caller.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::task::JoinHandle;

/// A task without a result.
type Task = BoxFuture<'static, ()>;

/// How an election starts its tasks: the renewals, the timer of its fence, its watch.
///
/// A process starts them in its runtime. Managers that share one can wrap theirs, so that one of them stands still as
/// a process does: with all its timers.
#[derive(Clone)]
pub struct BackgroundTasks(Arc<dyn Fn(Task) -> Task + Send + Sync>);

impl BackgroundTasks {
    /// Starts every task as `wrap` returns it.
    pub fn wrapped_by(wrap: impl Fn(Task) -> Task + Send + Sync + 'static) -> Self {
        Self(Arc::new(wrap))
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        tokio::spawn((self.0)(Box::pin(task)))
    }
}

impl Default for BackgroundTasks {
    fn default() -> Self {
        Self::wrapped_by(|task| task)
    }
}

impl fmt::Debug for BackgroundTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackgroundTasks")
    }
}
