//! Real connections under a clock that tests pause.
//!
//! A paused clock runs ahead whenever all tasks wait, also if they wait for a socket: every request would time out at once.
//! So these requests are sent by a runtime of their own, whose clock is the real one, while a task of tokio's blocking pool
//! waits for them: as long as there is one, tokio does not move a paused clock. Hours of retries on software that is not
//! ours then take as long as its answers.

use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cloudkeel_api::CloudError;
use cloudkeel_http::{
    HttpSettings, HyperTransport, TlsSettings, Transport, TransportError, TransportErrorKind,
};
use http::{Request, Response};
use tokio::runtime::{Builder, Handle};
use tokio::task::AbortHandle;

/// After how long, by the real clock, a server is taken to never answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

static RUNTIME: LazyLock<Result<Handle, String>> =
    LazyLock::new(|| start().map_err(|error| error.to_string()));

/// One thread that lives as long as the process.
fn start() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("real-time".to_owned())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    Ok(handle)
}

/// The runtime with the real clock. Inside [`Handle::enter`], tokio's time is that of this runtime.
pub fn real_time() -> io::Result<Handle> {
    RUNTIME.clone().map_err(io::Error::other)
}

/// Does some work by the real clock, such as starting a server, while a paused clock stands still. If this is dropped, so
/// is the work.
pub async fn in_real_time<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let runtime = real_time()?;
    let task = runtime.spawn(work);
    let _ends_with_this = AbortOnDrop(task.abort_handle());
    let waiting = tokio::task::spawn_blocking(move || runtime.block_on(task));
    let done = waiting.await.map_err(io::Error::other)?;
    done.map_err(io::Error::other)
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A transport whose requests are sent [in real time](in_real_time).
///
/// A server that does not answer for half a minute is taken to never answer. The clock goes on then, so that the time-out of
/// the caller ends the call.
pub struct RealTime {
    inner: Arc<dyn Transport>,
    patience: Duration,
}

impl RealTime {
    /// Requests of this transport.
    pub fn over(inner: impl Transport + 'static) -> Self {
        Self {
            inner: Arc::new(inner),
            patience: ANSWER_TIMEOUT,
        }
    }

    /// Real connections with these TLS settings.
    pub fn connections(tls: TlsSettings) -> Result<Self, CloudError> {
        let settings = HttpSettings {
            tls,
            ..HttpSettings::default()
        };
        HyperTransport::new(settings).map(Self::over)
    }

    /// With another time, by the real clock, after which a server is taken to never answer.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

#[async_trait]
impl Transport for RealTime {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let (inner, patience) = (Arc::clone(&self.inner), self.patience);
        let sent = async move { tokio::time::timeout(patience, inner.send(request)).await };
        match in_real_time(sent).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => std::future::pending().await,
            Err(error) => {
                let message = "the request could not be sent in real time";
                let broken = TransportError::new(TransportErrorKind::Broken, message);
                Err(broken.with_source(error))
            }
        }
    }
}
