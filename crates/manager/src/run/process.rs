//! The process: signals, a bounded shutdown, and no core dumps.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::leader::EVENT_FLUSH_TIMEOUT;
use super::prepare::PROVIDER_CLOSE_TIMEOUT;
use crate::election::{EVENTS_FLUSH_TIMEOUT, RELEASE_TIMEOUT};
use crate::log_messages::{
    CORE_DUMPS_ENABLED, SECOND_SHUTDOWN_SIGNAL, SHUTDOWN_SIGNAL, SHUTDOWN_TIMED_OUT,
};
use crate::serving::DRAIN_TIMEOUT;

/// A token that the first SIGTERM or SIGINT cancels. The second one ends the process at once.
pub(super) fn stop_on_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        next(&mut terminate, &mut interrupt).await;
        info!("{SHUTDOWN_SIGNAL}");
        stopping.cancel();
        next(&mut terminate, &mut interrupt).await;
        warn!("{SECOND_SHUTDOWN_SIGNAL}");
        exit_at_once();
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
    reason = "a second signal must end the process even if a destructor hangs"
)]
fn exit_at_once() {
    std::process::exit(130);
}

/// The longest that a shutdown can take: controllers finish, the last events are written, the lease is released,
/// then providers and ports close side by side. The manifests give a Pod more time than this.
pub(super) fn max_shutdown_time(grace: Duration) -> Duration {
    let close = PROVIDER_CLOSE_TIMEOUT.max(DRAIN_TIMEOUT);
    grace + EVENT_FLUSH_TIMEOUT + RELEASE_TIMEOUT + EVENTS_FLUSH_TIMEOUT + close
}

/// Completes when a shutdown has taken longer than `limit`, which means that something hangs.
pub(super) async fn shutdown_timed_out(stop: &CancellationToken, limit: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(limit).await;
    warn!(?limit, "{SHUTDOWN_TIMED_OUT}");
}

/// Disables core dumps of this process, which would contain credentials, and lets only root read its memory and
/// environment. Child processes are not affected.
#[cfg(target_os = "linux")]
pub(super) fn disable_core_dumps() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        warn!(err = %error, "{CORE_DUMPS_ENABLED}");
    }
}

/// Other systems are for development only.
#[cfg(not(target_os = "linux"))]
pub(super) fn disable_core_dumps() {}

#[cfg(test)]
mod tests {
    use cloudkeel_api::{Documented as _, KeyValue as _};

    use super::*;
    use crate::flags;

    #[test]
    fn a_pod_is_given_more_time_than_the_longest_shutdown() {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let manifests = std::path::Path::new(&folder).join("../../deploy/manifests");
        let grace = flags::SHUTDOWN_GRACE_PERIOD.doc().default.unwrap();
        let help = flags::SHUTDOWN_GRACE_PERIOD.doc().help;
        let more = max_shutdown_time(Duration::ZERO).as_secs();
        assert!(help.contains(&format!("at most {more}s more")), "{help}");
        let longest = max_shutdown_time(Duration::parse(grace).unwrap());
        for file in ["deployment/deployment.yaml", "daemonset/daemonset.yaml"] {
            let text = std::fs::read_to_string(manifests.join(file)).unwrap();
            let (_, given) = text.split_once("terminationGracePeriodSeconds: ").unwrap();
            let given: u64 = given.lines().next().unwrap().trim().parse().unwrap();
            assert!(
                longest < Duration::from_secs(given),
                "{file}: {longest:?} of {given} s"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_that_hangs_ends() {
        let stop = CancellationToken::new();
        let limit = Duration::from_secs(20);
        let waiting = tokio::time::timeout(limit * 10, shutdown_timed_out(&stop, limit));
        assert!(waiting.await.is_err(), "only once it is asked for");
        stop.cancel();
        let began = tokio::time::Instant::now();
        shutdown_timed_out(&stop, limit).await;
        assert_eq!(began.elapsed(), limit);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn core_dumps_are_disabled() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};

        disable_core_dumps();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
