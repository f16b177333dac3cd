//! The heartbeat of a kubelet.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Clock;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Health, KubeletConfig, Life, node};

const LEASE_NAMESPACE: &str = "kube-node-lease";
/// A lease outlives so many heartbeats: 40 seconds at the usual pace, as that of a real kubelet.
const BEATS_PER_LEASE: u32 = 4;
/// How soon a kubelet tries again that could not register.
const REGISTER_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct HeartbeatLoop {
    nodes: Api<Node>,
    leases: Api<Lease>,
    clock: Arc<dyn Clock>,
    config: KubeletConfig,
    life: watch::Receiver<Life>,
    /// What was last said of being ready, and since when.
    reported: Option<(Health, Timestamp)>,
    registered_at: Option<IpAddr>,
}

impl HeartbeatLoop {
    pub(super) fn new(
        client: Client,
        clock: Arc<dyn Clock>,
        config: KubeletConfig,
        life: watch::Receiver<Life>,
    ) -> Self {
        Self {
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client, LEASE_NAMESPACE),
            clock,
            config,
            life,
            reported: None,
            registered_at: None,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let life = self.life.borrow_and_update().clone();
            let pause = self.beat(&life).await;
            tokio::select! {
                biased;
                changed = self.life.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = sleep(pause) => {}
            }
        }
    }

    /// One heartbeat; how long to wait until the next.
    async fn beat(&mut self, life: &Life) -> Duration {
        if !life.health.beats() {
            self.registered_at = None;
            return self.config.beats_every;
        }
        let outcome = if self.registered_at == Some(life.address) {
            self.report(life).await
        } else {
            self.register(life).await
        };
        match outcome {
            Ok(()) => self.config.beats_every,
            Err(error) => {
                tracing::debug!(node = self.config.name, %error, "a heartbeat was missed");
                self.config.beats_every.min(REGISTER_AGAIN)
            }
        }
    }

    /// Creates the Node, or takes over the one that is there.
    async fn register(&mut self, life: &Life) -> Result<(), kube::Error> {
        let now = self.clock.now();
        let object = node::new(&self.config, life.address, now);
        let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        match self.nodes.create(&PostParams::default(), &object).await {
            Ok(_) => self.reported = Some((Health::Ready, now)),
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let node = self.write(&node::moved(&self.config, life.address)).await?;
                self.reported = node::reported_health(&node);
            }
            Err(error) => return Err(error),
        }
        self.registered_at = Some(life.address);
        self.report(life).await
    }

    async fn report(&mut self, life: &Life) -> Result<(), kube::Error> {
        let now = self.clock.now();
        let changed = match self.reported {
            Some((health, since)) if health == life.health => since,
            _ => now,
        };
        self.write(&node::heartbeat(life.health, (now, changed)))
            .await?;
        self.reported = Some((life.health, changed));
        self.renew(now).await
    }

    /// Kubelets patch their status strategically, so that what others wrote survives.
    async fn write(&self, patch: &serde_json::Value) -> Result<Node, kube::Error> {
        let params = PatchParams::default();
        let patch = Patch::Strategic(patch);
        self.nodes
            .patch_status(&self.config.name, &params, &patch)
            .await
    }

    async fn renew(&self, now: Timestamp) -> Result<(), kube::Error> {
        let name = self.config.name.as_str();
        let lease = self.config.beats_every * BEATS_PER_LEASE;
        let spec = json!({
            "holderIdentity": name,
            "leaseDurationSeconds": lease.as_secs().max(1),
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        });
        let renewal = Patch::Merge(json!({"spec": spec}));
        let renewed = self
            .leases
            .patch(name, &PatchParams::default(), &renewal)
            .await;
        match renewed {
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                let lease = json!({"metadata": {"name": name}, "spec": spec});
                let lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
                self.leases
                    .create(&PostParams::default(), &lease)
                    .await
                    .map(|_| ())
            }
            outcome => outcome.map(|_| ()),
        }
    }
}
