//! What the kubelets of a cluster do, and kube-controller-manager about them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use cloudkeel_testkit::cluster::{Kubelet, NodeBuilder, NotReady};
use cloudkeel_testkit::simulated_cloud::wire::Machine;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// How often a kubelet renews its lease. Life has 10 s; this is enough for one that counts as silent after 40.
const RENEWAL: Duration = Duration::from_secs(12);

/// The kubelets that are heard.
#[derive(Clone)]
pub(crate) struct Kubelets {
    client: Client,
    heard: Arc<Mutex<BTreeSet<String>>>,
}

impl Kubelets {
    /// Renews the leases of all that are heard, for as long as the program runs.
    pub(crate) fn start(client: Client) -> Self {
        let kubelets = Self {
            client,
            heard: Arc::default(),
        };
        let renewing = kubelets.clone();
        tokio::spawn(async move { renewing.renew_forever().await });
        kubelets
    }

    /// A kubelet registers its Node, as one with `--cloud-provider=external` does.
    #[expect(
        clippy::disallowed_methods,
        reason = "the programs under measurement live in real time"
    )]
    pub(crate) async fn register(&self, machine: &Machine, pod_cidr: &str) -> Result<()> {
        let name = &machine.name;
        let builder = NodeBuilder::new(name).pod_cidr(pod_cidr);
        let mut node = builder.build(Timestamp::now());
        let info = node
            .status
            .as_mut()
            .and_then(|status| status.node_info.as_mut());
        if let Some(info) = info {
            info.system_uuid.clone_from(&machine.uuid);
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        let made = nodes.create(&PostParams::default(), &node).await;
        made.with_context(|| format!("node {name} was not created"))?;
        Kubelet::new(&self.client, name).set_ready().await?;
        self.with_heard(|heard| heard.insert(name.clone()));
        Ok(())
    }

    /// The kubelet is silent from now on; its Node is still Ready.
    pub(crate) fn silence(&self, name: &str) {
        self.with_heard(|heard| heard.remove(name));
    }

    /// The Node of a silent kubelet is not Ready any more. One that is deleted already needs nothing.
    pub(crate) async fn notice(&self, name: &str) -> Result<()> {
        let kubelet = Kubelet::new(&self.client, name);
        match kubelet.set_not_ready(NotReady::Unknown).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            outcome => Ok(outcome.map(drop)?),
        }
    }

    /// The kubelet is heard again. Its Node may have been deleted meanwhile, if the machine was gone.
    pub(crate) async fn revive(&self, name: &str) -> Result<()> {
        self.with_heard(|heard| heard.insert(name.to_owned()));
        Kubelet::new(&self.client, name).set_ready().await?;
        Ok(())
    }

    fn with_heard<T>(&self, act: impl FnOnce(&mut BTreeSet<String>) -> T) -> T {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut heard)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the programs under measurement live in real time"
    )]
    async fn renew_forever(&self) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        loop {
            let names: Vec<String> = self.with_heard(|heard| heard.iter().cloned().collect());
            let pause = RENEWAL / u32::try_from(names.len().max(1)).unwrap_or(u32::MAX);
            for name in names {
                if !self.with_heard(|heard| heard.contains(&name)) {
                    continue;
                }
                let now = json!({"spec": {"renewTime": MicroTime(Timestamp::now())}});
                let patch = Patch::Merge(now);
                // The lease of a Node that has just gone needs no renewal.
                let _ = leases.patch(&name, &PatchParams::default(), &patch).await;
                tokio::time::sleep(pause).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
