//! Runs a candidate in the caller's runtime, or on a thread of its own.

use std::io;
use std::thread;

use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Election, Elector, Ended};

/// A running candidate. Dropping it is like a crash: the fence closes, and the lease is held until it expires.
pub struct RunningElection {
    election: Election,
    ended: oneshot::Receiver<Ended>,
    _abandon: DropGuard,
}

impl RunningElection {
    /// Runs in the caller's runtime, until `stop`. See [`Elector::run`] for when to cancel it.
    pub fn here(elector: Elector, stop: CancellationToken) -> Self {
        let election = elector.election();
        let abandon = CancellationToken::new();
        let (record, ended) = oneshot::channel();
        let background = elector.background().clone();
        background.spawn(run(elector, stop, abandon.clone(), record));
        Self {
            election,
            ended,
            _abandon: abandon.drop_guard(),
        }
    }

    /// Runs on a thread and in a runtime of its own, until `stop`, so that the lease is renewed however busy the
    /// other threads are. `make` is called there, so that connections belong to that runtime too.
    pub async fn on_own_thread<E>(
        make: impl FnOnce() -> Result<Elector, E> + Send + 'static,
        stop: CancellationToken,
    ) -> Result<Self, E>
    where
        E: From<io::Error> + Send + 'static,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let abandon = CancellationToken::new();
        let abandoned = abandon.clone();
        let (send_made, made) = oneshot::channel();
        let (record, ended) = oneshot::channel();
        let work = async move {
            match make() {
                Ok(elector) => {
                    // The caller may be gone; then `abandoned` is cancelled.
                    let _ = send_made.send(Ok(elector.election()));
                    run(elector, stop, abandoned, record).await;
                }
                Err(error) => {
                    let _ = send_made.send(Err(error));
                }
            }
        };
        thread::Builder::new()
            .name("leader-election".to_owned())
            .spawn(move || {
                runtime.block_on(work);
                // A pending DNS lookup does not keep the process alive.
                runtime.shutdown_background();
            })?;
        let abandon = abandon.drop_guard();
        let gone = |_| io::Error::other("the thread of the election ended before it began");
        Ok(Self {
            election: made.await.map_err(gone)??,
            ended,
            _abandon: abandon,
        })
    }

    /// A handle for observing it.
    pub const fn election(&self) -> &Election {
        &self.election
    }

    /// Waits for its end; `None` if it panicked.
    pub async fn ended(self) -> Option<Ended> {
        self.ended.await.ok()
    }
}

async fn run(
    elector: Elector,
    stop: CancellationToken,
    abandon: CancellationToken,
    record: oneshot::Sender<Ended>,
) {
    if let Some(ended) = abandon.run_until_cancelled(elector.run(stop)).await {
        // A caller that does not wait needs no result.
        let _ = record.send(ended);
    }
}
