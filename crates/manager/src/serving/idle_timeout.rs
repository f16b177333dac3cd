//! Tracks what a connection is doing, and for how long it has been idle.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Timeouts of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionTimeouts {
    /// From the first byte of a request to the end of its headers. For the first request, from the start of the
    /// connection.
    pub(super) headers: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A request has begun, its headers are not complete.
    Reading { since: Instant },
    /// Requests are being served.
    RequestGuard { requests: usize },
    /// No request.
    Idle { since: Instant },
}

/// Tracks what a connection is doing. Clones track the same connection.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    phase: Mutex<Phase>,
    changed: Notify,
}

impl Activity {
    /// A connection that was just opened.
    pub(super) fn begin() -> Self {
        Self(Arc::new(Inner {
            phase: Mutex::new(Phase::Reading {
                since: Instant::now(),
            }),
            changed: Notify::new(),
        }))
    }

    /// Data arrived.
    fn bytes_read(&self) {
        self.change(|phase| match phase {
            Phase::Idle { .. } => Phase::Reading {
                since: Instant::now(),
            },
            other => other,
        });
    }

    /// The headers of a request are complete; it is being served until the guard is dropped.
    pub(super) fn request_began(&self) -> RequestGuard {
        self.change(|phase| match phase {
            Phase::RequestGuard { requests } => Phase::RequestGuard {
                requests: requests + 1,
            },
            Phase::Reading { .. } | Phase::Idle { .. } => Phase::RequestGuard { requests: 1 },
        });
        RequestGuard(self.clone())
    }

    fn request_ended(&self) {
        self.change(|phase| match phase {
            Phase::RequestGuard { requests } if requests > 1 => Phase::RequestGuard {
                requests: requests - 1,
            },
            _ => Phase::Idle {
                since: Instant::now(),
            },
        });
    }

    fn change(&self, to: impl FnOnce(Phase) -> Phase) {
        let mut phase = self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let next = to(*phase);
        if *phase != next {
            *phase = next;
            self.0.changed.notify_one();
        }
    }

    /// Whether a request is being served.
    pub(super) fn is_serving(&self) -> bool {
        let phase = *self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(phase, Phase::RequestGuard { .. })
    }

    fn deadline(&self, timeouts: ConnectionTimeouts) -> Option<Instant> {
        let phase = *self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        match phase {
            Phase::Reading { since } => Some(since + timeouts.headers),
            Phase::Idle { since } => Some(since + timeouts.idle),
            Phase::RequestGuard { .. } => None,
        }
    }

    /// Returns when the connection has been idle for too long.
    pub(super) async fn timed_out(&self, timeouts: ConnectionTimeouts) {
        loop {
            let Some(deadline) = self.deadline(timeouts) else {
                self.0.changed.notified().await;
                continue;
            };
            if tokio::time::timeout_at(deadline, self.0.changed.notified())
                .await
                .is_err()
                && self.deadline(timeouts) == Some(deadline)
            {
                return;
            }
        }
    }
}

/// A request that is being served.
#[derive(Debug)]
pub(super) struct RequestGuard(Activity);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.request_ended();
    }
}

/// A stream that records when data arrives.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    activity: Activity,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, activity: Activity) -> Self {
        Self { stream, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.activity.bytes_read();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
