//! The part of kube-controller-manager that watches over the health of Nodes: a silent one becomes unknown, and
//! taints follow the condition `Ready`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudkeel_api::Clock;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The defaults of kube-controller-manager.
const PERIOD: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(50);

/// Watches over Nodes until it is dropped.
pub struct NodeMonitor {
    _stop: DropGuard,
}

impl NodeMonitor {
    /// Starts with the times of kube-controller-manager: a look every 5 seconds, unknown after 50.
    pub fn start(client: &Client, clock: Arc<dyn Clock>) -> Self {
        Self::start_with(client, clock, PERIOD, GRACE)
    }

    /// Starts with other times: a look every `period`, unknown after `grace`.
    pub fn start_with(
        client: &Client,
        clock: Arc<dyn Clock>,
        period: Duration,
        grace: Duration,
    ) -> Self {
        let monitor = Monitor {
            nodes: Api::all(client.clone()),
            leases: Api::namespaced(client.clone(), "kube-node-lease"),
            clock,
            period,
            grace,
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move {
            stopped.run_until_cancelled(Box::pin(monitor.run())).await;
        });
        Self {
            _stop: stop.drop_guard(),
        }
    }
}

struct Monitor {
    nodes: Api<Node>,
    leases: Api<Lease>,
    clock: Arc<dyn Clock>,
    period: Duration,
    grace: Duration,
}

impl Monitor {
    async fn run(self) {
        loop {
            if let Err(error) = self.look().await {
                tracing::debug!(%error, "the health of the Nodes could not be seen to");
            }
            tokio::time::sleep(self.period).await;
        }
    }

    async fn look(&self) -> Result<(), kube::Error> {
        let leases = self.leases.list(&ListParams::default()).await?;
        let renewals: BTreeMap<_, _> = leases.iter().filter_map(renewal).collect();
        for node in self.nodes.list(&ListParams::default()).await? {
            let renewed = renewals.get(&node.name_any()).copied();
            match self.see_to(&node, renewed).await {
                // It changed or went meanwhile: the next look sees how.
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    async fn see_to(&self, node: &Node, renewed: Option<Timestamp>) -> Result<(), kube::Error> {
        let now = self.clock.now();
        let ready = ready(node);
        let status = ready.map_or("Unknown", |ready| ready.status.as_str());
        let patience = last_seen(node, renewed).checked_add(self.grace);
        let is_silent = patience.is_ok_and(|until| until < now);
        if is_silent && ready.is_none_or(|ready| ready.status != "Unknown") {
            self.call_unknown(node, now).await?;
            return self
                .taint(&self.nodes.get(&node.name_any()).await?, "Unknown")
                .await;
        }
        self.taint(node, status).await
    }

    async fn call_unknown(&self, node: &Node, now: Timestamp) -> Result<(), kube::Error> {
        let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let unknown = |kind: &str| {
            json!({
                "type": kind, "status": "Unknown", "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.", "lastTransitionTime": at,
            })
        };
        let kinds = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];
        let conditions: Vec<Value> = kinds.into_iter().map(unknown).collect();
        let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
        let params = PatchParams::default();
        let patched = self
            .nodes
            .patch_status(&node.name_any(), &params, &patch)
            .await;
        patched.map(|_| ())
    }

    /// Taints are one list with several writers, so the write holds only for the version it was made from.
    async fn taint(&self, node: &Node, ready: &str) -> Result<(), kube::Error> {
        let before = node
            .spec
            .as_ref()
            .and_then(|spec| spec.taints.clone())
            .unwrap_or_default();
        let wanted = taints(&before, ready);
        if wanted == before {
            return Ok(());
        }
        let metadata = json!({"resourceVersion": node.resource_version()});
        let patch = Patch::Merge(json!({"metadata": metadata, "spec": {"taints": wanted}}));
        let patched = self
            .nodes
            .patch(&node.name_any(), &PatchParams::default(), &patch)
            .await;
        patched.map(|_| ())
    }
}

fn ready(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
}

/// Whose lease it is, and when it was last renewed.
fn renewal(lease: &Lease) -> Option<(String, Timestamp)> {
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?;
    Some((lease.name_any(), renewed.0))
}

/// The latest of everything that a kubelet writes.
fn last_seen(node: &Node, renewed: Option<Timestamp>) -> Timestamp {
    let created = node.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let beat = ready(node)
        .and_then(|ready| ready.last_heartbeat_time.as_ref())
        .map(|time| time.0);
    [created, beat, renewed]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or(Timestamp::MIN)
}

/// The taints that go with a status of `Ready`; those of others stay.
fn taints(before: &[Taint], ready: &str) -> Vec<Taint> {
    let key = match ready {
        "True" => None,
        "False" => Some(NOT_READY),
        _ => Some(UNREACHABLE),
    };
    let others = before
        .iter()
        .filter(|taint| taint.key != NOT_READY && taint.key != UNREACHABLE);
    let ours = key.into_iter().flat_map(|key| {
        ["NoSchedule", "NoExecute"].map(|effect| Taint {
            key: key.to_owned(),
            effect: effect.to_owned(),
            ..Taint::default()
        })
    });
    others.cloned().chain(ours).collect()
}
