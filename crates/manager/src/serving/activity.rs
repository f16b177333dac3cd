//! What happens on a connection, and for how long it may be silent.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a connection may keep us waiting.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// From the first byte of a request to the last of its headers. The first request of a connection is
    /// owed from the start.
    pub(super) headers: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A request has begun, its headers are not complete.
    Reading { since: Instant },
    /// Requests are being answered.
    Answering { requests: usize },
    /// Nothing.
    Idle { since: Instant },
}

/// Follows what a connection is doing. Clones follow the same connection.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    phase: Mutex<Phase>,
    changed: Notify,
}

impl Activity {
    /// A connection that was opened now.
    pub(super) fn begin() -> Self {
        Self(Arc::new(Inner {
            phase: Mutex::new(Phase::Reading {
                since: Instant::now(),
            }),
            changed: Notify::new(),
        }))
    }

    /// Bytes came in.
    fn bytes_read(&self) {
        self.change(|phase| match phase {
            Phase::Idle { .. } => Phase::Reading {
                since: Instant::now(),
            },
            other => other,
        });
    }

    /// The headers of a request are complete; it is being answered until the value is dropped.
    pub(super) fn request_began(&self) -> Answering {
        self.change(|phase| match phase {
            Phase::Answering { requests } => Phase::Answering {
                requests: requests + 1,
            },
            Phase::Reading { .. } | Phase::Idle { .. } => Phase::Answering { requests: 1 },
        });
        Answering(self.clone())
    }

    fn request_ended(&self) {
        self.change(|phase| match phase {
            Phase::Answering { requests } if requests > 1 => Phase::Answering {
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

    /// Whether a request is being answered.
    pub(super) fn is_answering(&self) -> bool {
        let phase = *self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(phase, Phase::Answering { .. })
    }

    fn deadline(&self, patience: Patience) -> Option<Instant> {
        let phase = *self.0.phase.lock().unwrap_or_else(PoisonError::into_inner);
        match phase {
            Phase::Reading { since } => Some(since + patience.headers),
            Phase::Idle { since } => Some(since + patience.idle),
            Phase::Answering { .. } => None,
        }
    }

    /// Returns when the connection has been silent for too long.
    pub(super) async fn too_long_silent(&self, patience: Patience) {
        loop {
            let Some(deadline) = self.deadline(patience) else {
                self.0.changed.notified().await;
                continue;
            };
            if tokio::time::timeout_at(deadline, self.0.changed.notified())
                .await
                .is_err()
                && self.deadline(patience) == Some(deadline)
            {
                return;
            }
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Answering(Activity);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.request_ended();
    }
}

/// A stream that tells when bytes come in.
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
