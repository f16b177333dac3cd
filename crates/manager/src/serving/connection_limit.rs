//! A limit for concurrent connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::idle_timeout::Activity;

/// How often a full server checks again for a connection to evict.
const EVICTION_RETRY: Duration = Duration::from_millis(100);

/// Limits the number of connections. When full, it evicts the oldest idle connection, so that no client can block
/// others by keeping connections open.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLimit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max: usize,
    connections: Mutex<Connections>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Connections {
    /// In the order they were opened.
    open: BTreeMap<u64, Connection>,
    next_number: u64,
}

#[derive(Debug)]
struct Connection {
    activity: Activity,
    evict: CancellationToken,
}

/// One of the allowed connections; released when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    limit: ConnectionLimit,
    number: u64,
}

impl ConnectionLimit {
    pub(super) fn new(max: usize) -> Self {
        Self(Arc::new(Inner {
            max,
            connections: Mutex::default(),
            released: Notify::new(),
        }))
    }

    /// Waits until the connection may be served. `evict` is cancelled when its slot is needed for another one.
    pub(super) async fn acquire(
        &self,
        activity: &Activity,
        evict: &CancellationToken,
    ) -> ConnectionSlot {
        loop {
            if let Some(slot) = self.try_acquire(activity, evict) {
                return slot;
            }
            // An evicted connection closes at once; a busy one may become idle and be evicted next.
            let _ = tokio::time::timeout(EVICTION_RETRY, self.0.released.notified()).await;
        }
    }

    fn try_acquire(
        &self,
        activity: &Activity,
        evict: &CancellationToken,
    ) -> Option<ConnectionSlot> {
        let mut connections = self
            .0
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if connections.open.len() >= self.0.max {
            let mut open = connections.open.values();
            let eviction_pending = open
                .clone()
                .any(|connection| connection.evict.is_cancelled());
            let oldest = open.find(|connection| !connection.activity.is_serving());
            if let Some(oldest) = oldest.filter(|_| !eviction_pending) {
                oldest.evict.cancel();
            }
            return None;
        }
        let number = connections.next_number;
        connections.next_number += 1;
        let connection = Connection {
            activity: activity.clone(),
            evict: evict.clone(),
        };
        connections.open.insert(number, connection);
        Some(ConnectionSlot {
            limit: self.clone(),
            number,
        })
    }

    fn release(&self, number: u64) {
        let mut connections = self
            .0
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connections.open.remove(&number);
        self.0.released.notify_one();
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limit.release(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Client {
        activity: Activity,
        evict: CancellationToken,
        slot: ConnectionSlot,
    }

    async fn connect(limit: &ConnectionLimit) -> Client {
        let (activity, evict) = (Activity::begin(), CancellationToken::new());
        let slot = limit.acquire(&activity, &evict).await;
        Client {
            activity,
            evict,
            slot,
        }
    }

    async fn is_evicted(client: &Client) {
        let asked = client.evict.cancelled();
        let asked = tokio::time::timeout(Duration::from_secs(10), asked).await;
        assert!(asked.is_ok(), "it is not evicted");
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_idle_connection_is_evicted_when_full() {
        let limit = ConnectionLimit::new(3);
        let [first, second, third] = [
            connect(&limit).await,
            connect(&limit).await,
            connect(&limit).await,
        ];
        let answering = first.activity.request_began();
        let newcomer = tokio::spawn({
            let limit = limit.clone();
            async move { connect(&limit).await }
        });
        is_evicted(&second).await;
        assert!(!first.evict.is_cancelled(), "it is being answered");
        drop(second.slot);
        let newcomer = newcomer.await.unwrap();
        assert!(!third.evict.is_cancelled(), "one place was enough");
        drop((answering, newcomer, first, third));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_waits_while_all_others_are_busy() {
        let limit = ConnectionLimit::new(1);
        let connection = connect(&limit).await;
        let answering = connection.activity.request_began();
        let newcomer = tokio::spawn({
            let limit = limit.clone();
            async move { connect(&limit).await }
        });
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!connection.evict.is_cancelled());
        drop(answering);
        is_evicted(&connection).await;
        drop(connection.slot);
        assert!(!newcomer.await.unwrap().evict.is_cancelled());
    }
}
