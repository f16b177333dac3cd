//! Constant traffic through the load balancer, counted. Its clients start with the first response and never pause.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::probe;

const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(40);

/// Requests so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    /// Where requests go, if there are any.
    pub(crate) at: Option<SocketAddr>,
    pub(crate) answered: u64,
    pub(crate) lost: u64,
    /// Why the last one was lost.
    pub(crate) last_error: Option<String>,
}

/// What the clients share.
#[derive(Debug, Default)]
struct Shared {
    /// Where requests go.
    at: Mutex<Option<SocketAddr>>,
    answered: AtomicU64,
    lost: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// Clients at work. They stop when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    shared: Arc<Shared>,
    stop: CancellationToken,
    clients: TaskTracker,
}

impl Traffic {
    /// Starts the clients, or redirects the running ones to this address.
    pub(crate) fn begin(&self, at: SocketAddr) {
        *self.shared.at() = Some(at);
        if !self.clients.close() {
            return;
        }
        for _ in 0..CLIENTS {
            let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
            self.clients.spawn(async move {
                while !stop.is_cancelled() {
                    let at = *shared.at();
                    if let Some(at) = at {
                        shared.note(probe::get(at).await);
                    }
                    stop.run_until_cancelled(sleep(PAUSE)).await;
                }
            });
        }
    }

    /// Lets the requests in flight finish, and sends no more.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.clients.close();
        self.clients.wait().await;
    }

    pub(crate) fn count(&self) -> Count {
        let last_error = self.shared.last_error.lock();
        Count {
            at: *self.shared.at(),
            answered: self.shared.answered.load(Ordering::Relaxed),
            lost: self.shared.lost.load(Ordering::Relaxed),
            last_error: last_error.unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Shared {
    fn at(&self) -> MutexGuard<'_, Option<SocketAddr>> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, answer: Result<String, String>) {
        match answer {
            Ok(_) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(why) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                let mut last_error = self
                    .last_error
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *last_error = Some(why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::polling::TIMEOUT;

    #[tokio::test]
    async fn what_is_not_answered_is_counted_as_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let traffic = Traffic::default();
        traffic.begin(at);
        traffic.begin(at);
        // Every second request gets a response.
        for number in 0..20 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 512];
            let _ = stream.read(&mut request).await.unwrap();
            if number % 2 == 0 {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\n\r\nhi")
                    .await
                    .unwrap();
            }
        }
        drop(listener);
        traffic.end().await;
        let count = traffic.count();
        assert_eq!(count.answered, 10);
        assert!(count.lost >= 10, "{count:?}");
        assert!(count.last_error.is_some());
    }

    #[tokio::test]
    async fn clients_follow_a_service_to_its_new_address() {
        let traffic = Traffic::default();
        for _ in 0..2 {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            traffic.begin(listener.local_addr().unwrap());
            let accepted = timeout(TIMEOUT, listener.accept()).await;
            accepted.expect("a client comes").unwrap();
        }
        traffic.end().await;
    }
}
