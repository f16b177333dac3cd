//! Does the kubelet still report? A machine whose kubelet renews its lease is not gone, whatever the
//! cloud says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use cloudkeel_api::Clock;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tracing::warn;

use crate::runtime::Brief;

/// What is known of a kubelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// It reported within the lease.
    Fresh,
    /// It did not, or never has.
    Stale,
    /// The API server could not say now.
    Unknown,
    /// Nobody here may ask.
    Unreadable,
}

/// Tells whether a kubelet still reports.
#[async_trait]
pub trait Heartbeats: Send + Sync {
    /// Of this Node.
    async fn of(&self, node: &str) -> Heartbeat;
}

/// Reads the Leases of kubelets. A role that may not read them is warned about once; the rest of the
/// caution has to do then.
pub struct LeaseHeartbeats {
    leases: Api<Lease>,
    clock: Arc<dyn Clock>,
    warned: AtomicBool,
}

impl LeaseHeartbeats {
    const NAMESPACE: &'static str = "kube-node-lease";
    /// What a kubelet writes into its Lease by default.
    const DEFAULT_DURATION: i32 = 40;

    /// Reads with this client.
    pub fn new(client: Client, clock: Arc<dyn Clock>) -> Self {
        Self {
            leases: Api::namespaced(client, Self::NAMESPACE),
            clock,
            warned: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl Heartbeats for LeaseHeartbeats {
    async fn of(&self, node: &str) -> Heartbeat {
        match self.leases.get_opt(node).await {
            Ok(Some(lease)) => judge(&lease, self.clock.now()),
            Ok(None) => Heartbeat::Stale,
            Err(kube::Error::Api(refusal)) if refusal.code == 403 => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    let error = Brief(refusal.as_ref());
                    warn!(%error, "leases of kubelets cannot be read; deletions go without that check");
                }
                Heartbeat::Unreadable
            }
            Err(error) => {
                let error = Brief(&error);
                warn!(node, %error, "not deleted: the lease of its kubelet cannot be read now");
                Heartbeat::Unknown
            }
        }
    }
}

fn judge(lease: &Lease, now: jiff::Timestamp) -> Heartbeat {
    let spec = lease.spec.as_ref();
    let Some(renewed) = spec.and_then(|spec| spec.renew_time.as_ref()) else {
        return Heartbeat::Stale;
    };
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    let seconds = seconds.unwrap_or(LeaseHeartbeats::DEFAULT_DURATION).max(1);
    let lease = Duration::from_secs(u64::try_from(seconds).unwrap_or(1));
    // Clocks of nodes differ: a renewal from the near future is a renewal.
    if now.duration_since(renewed.0).unsigned_abs() <= lease {
        Heartbeat::Fresh
    } else {
        Heartbeat::Stale
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    #[test]
    fn a_lease_is_fresh_for_as_long_as_it_says() {
        let at = |second| jiff::Timestamp::from_second(second).unwrap();
        let lease = |renewed: Option<i64>| Lease {
            spec: Some(LeaseSpec {
                renew_time: renewed.map(|second| MicroTime(at(second))),
                lease_duration_seconds: Some(40),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        };
        for (case, renewed, expected) in [
            ("just now", Some(1000), Heartbeat::Fresh),
            ("within", Some(961), Heartbeat::Fresh),
            ("over", Some(959), Heartbeat::Stale),
            ("clock ahead", Some(1010), Heartbeat::Fresh),
            ("never", None, Heartbeat::Stale),
        ] {
            assert_eq!(judge(&lease(renewed), at(1000)), expected, "{case}");
        }
    }
}
