//! Does the kubelet still report? A machine whose kubelet renews its lease is not gone, whatever the
//! cloud says.
//!
//! Clocks may be wrong, and after an outage of the API server every lease is old. So a lease is looked at
//! twice: with the first proof, and before the Node is deleted. One that was renewed meanwhile is alive by
//! any clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tracing::warn;

use crate::runtime::Brief;

/// What is known of a kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// It last reported at this moment by its own clock, for so long.
    At {
        /// When.
        renewed: Timestamp,
        /// How long that is good.
        lasts: Duration,
    },
    /// It never has.
    Never,
    /// Our role does not allow to know. The rest of the caution has to do.
    NotAllowed,
    /// The API server did not answer.
    NoAnswer,
}

impl Heartbeat {
    /// Whether the lease holds, by our clock.
    pub fn holds(self, now: Timestamp) -> bool {
        // Clocks of nodes differ: a renewal from the near future is a renewal.
        matches!(self, Self::At { renewed, lasts }
            if now.duration_since(renewed).unsigned_abs() <= lasts)
    }

    /// Whether the lease was renewed since an earlier look. No clock can be wrong about that.
    pub fn is_newer_than(self, earlier: Self) -> bool {
        match (earlier, self) {
            (Self::At { renewed: then, .. }, Self::At { renewed: now, .. }) => then != now,
            (Self::Never, Self::At { .. }) => true,
            _ => false,
        }
    }
}

/// Tells whether a kubelet still reports.
#[async_trait]
pub trait Heartbeats: Send + Sync {
    /// Of this Node.
    async fn of(&self, node: &str) -> Heartbeat;
}

/// Reads the Leases of kubelets. A role that may not read them is warned about once.
pub struct LeaseHeartbeats {
    leases: Api<Lease>,
    warned: AtomicBool,
}

impl LeaseHeartbeats {
    const NAMESPACE: &'static str = "kube-node-lease";
    /// What a kubelet writes into its Lease by default.
    const DEFAULT_DURATION: i32 = 40;

    /// Reads with this client.
    pub fn new(client: Client) -> Self {
        Self {
            leases: Api::namespaced(client, Self::NAMESPACE),
            warned: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl Heartbeats for LeaseHeartbeats {
    async fn of(&self, node: &str) -> Heartbeat {
        match self.leases.get_opt(node).await {
            Ok(Some(lease)) => read(&lease),
            Ok(None) => Heartbeat::Never,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    let error = Brief(status.as_ref());
                    warn!(%error, "leases of kubelets cannot be read; deletions go without that check");
                }
                Heartbeat::NotAllowed
            }
            Err(error) => {
                warn!(node, error = %Brief(&error), "the lease of a kubelet cannot be read");
                Heartbeat::NoAnswer
            }
        }
    }
}

fn read(lease: &Lease) -> Heartbeat {
    let spec = lease.spec.as_ref();
    let Some(renewed) = spec.and_then(|spec| spec.renew_time.as_ref()) else {
        return Heartbeat::Never;
    };
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let seconds = seconds.unwrap_or(LeaseHeartbeats::DEFAULT_DURATION).max(1);
    Heartbeat::At {
        renewed: renewed.0,
        lasts: Duration::from_secs(u64::try_from(seconds).unwrap_or(1)),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn lease(renewed: Option<i64>) -> Heartbeat {
        read(&Lease {
            spec: Some(LeaseSpec {
                renew_time: renewed.map(|second| MicroTime(at(second))),
                lease_duration_seconds: Some(40),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        })
    }

    #[test]
    fn a_lease_is_good_for_as_long_as_it_says() {
        for (case, renewed, expected) in [
            ("just now", Some(1000), true),
            ("within", Some(961), true),
            ("over", Some(959), false),
            ("clock ahead", Some(1010), true),
            ("never", None, false),
        ] {
            assert_eq!(lease(renewed).holds(at(1000)), expected, "{case}");
        }
    }

    #[test]
    fn two_looks_tell_a_renewal_without_a_clock() {
        let now = lease(Some(1000));
        for (case, earlier, expected) in [
            ("renewed", lease(Some(990)), true),
            (
                "renewed by a clock that was set back",
                lease(Some(4600)),
                true,
            ),
            ("for the first time", lease(None), true),
            ("not renewed", lease(Some(1000)), false),
            ("not seen before", Heartbeat::NoAnswer, false),
        ] {
            assert_eq!(now.is_newer_than(earlier), expected, "{case}");
        }
        assert!(
            !lease(None).is_newer_than(now),
            "a lease that went is no renewal"
        );
    }
}
