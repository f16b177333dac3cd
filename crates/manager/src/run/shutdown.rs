//! From SIGTERM to the end, in bounded time.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::leading::LAST_WORDS;
use super::prepare::PROVIDER_CLOSE_TIMEOUT;
use crate::election::{LAST_EVENTS, LONGEST_RELEASE};
use crate::serving::DRAIN_TIMEOUT;

/// The longest way to the end: the controllers finish, the last events are written, the lease is released, and
/// providers and ports close side by side. The manifests give a Pod more than this.
pub(super) fn longest(grace: Duration) -> Duration {
    let close = PROVIDER_CLOSE_TIMEOUT.max(DRAIN_TIMEOUT);
    grace + LAST_WORDS + LONGEST_RELEASE + LAST_EVENTS + close
}

/// Completes when the process was asked to end so long ago that something hangs.
pub(super) async fn overdue(stop: &CancellationToken, limit: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(limit).await;
    warn!(
        ?limit,
        "shutdown takes too long; what is left ends with the process"
    );
}

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
        let more = longest(Duration::ZERO).as_secs();
        assert!(help.contains(&format!("at most {more}s more")), "{help}");
        let longest = longest(Duration::parse(grace).unwrap());
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
        let waiting = tokio::time::timeout(limit * 10, overdue(&stop, limit));
        assert!(waiting.await.is_err(), "only once it is asked for");
        stop.cancel();
        let began = tokio::time::Instant::now();
        overdue(&stop, limit).await;
        assert_eq!(began.elapsed(), limit);
    }
}
