//! SIGTERM and SIGINT: the first asks for an end, the second does not ask.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A token that the first signal cancels. The second ends the process at once.
pub(super) fn stop_on_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        next(&mut terminate, &mut interrupt).await;
        info!("asked to end: finishing what was begun");
        stopping.cancel();
        next(&mut terminate, &mut interrupt).await;
        warn!("asked again: ending at once");
        end_at_once();
    });
    Ok(stop)
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person asked twice: nothing may stand in the way, destructors included"
)]
fn end_at_once() {
    std::process::exit(130);
}
