//! What is counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: usize) {
        // Bytes and connections fit into 64 bits for longer than machines live.
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(super) fn one(&self) {
        self.add(1);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a target has carried.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Connections, or flows of datagrams, that reached it.
    pub(super) connections: Counter,
    /// From clients to it.
    pub(super) bytes_in: Counter,
    /// From it to clients.
    pub(super) bytes_out: Counter,
    /// Attempts that did not reach it.
    pub(super) failures: Counter,
}
