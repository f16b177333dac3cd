//! Constant traffic through the balancer, counted. Its clients begin with the first answer and never
//! pause for what goes on behind the balancer.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    pub(crate) answered: u64,
    pub(crate) lost: u64,
    /// Why the last one was lost.
    pub(crate) complaint: Option<String>,
}

#[derive(Debug, Default)]
struct Counters {
    answered: AtomicU64,
    lost: AtomicU64,
    complaint: Mutex<Option<String>>,
}

/// Clients at work. They stop when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    counters: Arc<Counters>,
    stop: CancellationToken,
    clients: TaskTracker,
}

impl Traffic {
    /// Sends clients there, unless they are at work already.
    pub(crate) fn begin(&self, at: SocketAddr) {
        if !self.clients.close() {
            return;
        }
        for _ in 0..CLIENTS {
            let (counters, stop) = (Arc::clone(&self.counters), self.stop.clone());
            self.clients.spawn(async move {
                while !stop.is_cancelled() {
                    counters.note(probe::get(at).await);
                    stop.run_until_cancelled(sleep(PAUSE)).await;
                }
            });
        }
    }

    /// Lets the requests that are under way end, and makes no more.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.clients.close();
        self.clients.wait().await;
    }

    pub(crate) fn count(&self) -> Count {
        let complaint = self.counters.complaint.lock();
        Count {
            answered: self.counters.answered.load(Ordering::Relaxed),
            lost: self.counters.lost.load(Ordering::Relaxed),
            complaint: complaint.unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Counters {
    fn note(&self, answer: Result<String, String>) {
        match answer {
            Ok(_) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(why) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                let mut complaint = self
                    .complaint
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *complaint = Some(why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn what_is_not_answered_is_counted_as_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let traffic = Traffic::default();
        traffic.begin(at);
        traffic.begin(at);
        // Every second request is answered.
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
        assert!(count.complaint.is_some());
    }
}
