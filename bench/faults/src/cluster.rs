//! A small cluster, with a fault of its cloud.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use cloudkeel_bench_arena::{Contestant, Programs, Running, Stage};
use cloudkeel_testkit::cluster::{Kubelet, NotReady};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::fault::{CloudFault, OTHER_PROJECT};

pub(crate) const NODES: usize = 10;
/// Of them, those whose kubelets are silent.
pub(crate) const SILENT: usize = 5;

/// So that ten machines take several pages.
const PAGE_SIZE: u64 = 3;
/// For a contestant to start and to see the Nodes.
const SETTLING: Duration = Duration::from_secs(5);
/// How long the silence of a kubelet goes unnoticed, by kube-controller-manager's defaults.
const UNNOTICED: Duration = Duration::from_secs(50);
/// Nodes of machines that are gone have to go until then.
const TIMEOUT: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(500);

/// What a fault cost.
pub(crate) struct Loss {
    pub(crate) deleted: usize,
    pub(crate) cloud_calls: u64,
    pub(crate) elapsed: Duration,
}

pub(crate) struct FaultCluster {
    // Ends before the cluster that it runs on.
    running: Running,
    stage: Stage,
    machines: Vec<u64>,
}

impl FaultCluster {
    /// Nodes that are all right, and a contestant that has seen them.
    pub(crate) async fn build(programs: &Programs, contestant: Contestant) -> Result<Self> {
        let stage = Stage::build().await?;
        stage
            .cloud
            .change_settings(|settings| settings.page_size = PAGE_SIZE);
        stage.cloud.add_project(OTHER_PROJECT);
        let mut machines = Vec::new();
        for number in 0..NODES {
            machines.push(stage.join(&name(number)).await?);
        }
        let controller = "cloud-node-lifecycle-controller";
        let flags = ["--leader-elect=false"];
        let running = stage.start(programs, contestant, controller, &flags)?;
        tokio::time::sleep(SETTLING).await;
        stage.cloud.reset_calls();
        Ok(Self {
            running,
            stage,
            machines,
        })
    }

    /// All machines run, half of the kubelets are silent, and the cloud answers wrongly.
    pub(crate) async fn run_with(&self, fault: CloudFault, lasting: Duration) -> Result<Loss> {
        fault.inject(&self.stage.cloud);
        self.silence_kubelets().await?;
        tokio::time::sleep(lasting).await;
        self.loss(lasting).await
    }

    /// The machines of the silent kubelets are gone.
    pub(crate) async fn lose_machines(&self) -> Result<Loss> {
        for machine in self.machines.iter().take(SILENT) {
            let gone = self.stage.cloud.destroy(*machine);
            gone.map_err(|refusal| anyhow!("machine {machine}: {refusal:?}"))?;
        }
        self.silence_kubelets().await?;
        let began = Instant::now();
        loop {
            let loss = self.loss(began.elapsed()).await?;
            if loss.deleted >= SILENT {
                return Ok(loss);
            }
            if began.elapsed() > TIMEOUT {
                let log = self.running.log();
                bail!("Nodes are still there after {TIMEOUT:?}; the log of the program:\n{log}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// When a kubelet counts as silent, its lease is old.
    #[expect(
        clippy::disallowed_methods,
        reason = "the programs under measurement live in real time"
    )]
    async fn silence_kubelets(&self) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.stage.client(), "kube-node-lease");
        let old = Timestamp::now() - UNNOTICED;
        let old = Patch::Merge(json!({"spec": {"renewTime": MicroTime(old)}}));
        for number in 0..SILENT {
            leases
                .patch(&name(number), &PatchParams::default(), &old)
                .await?;
            let kubelet = Kubelet::new(&self.stage.client(), name(number));
            kubelet.set_not_ready(NotReady::Unknown).await?;
        }
        Ok(())
    }

    async fn loss(&self, elapsed: Duration) -> Result<Loss> {
        let nodes: Api<Node> = Api::all(self.stage.client());
        let left = nodes
            .list_metadata(&ListParams::default())
            .await?
            .items
            .len();
        Ok(Loss {
            deleted: NODES - left,
            cloud_calls: self.stage.cloud.calls().total(),
            elapsed,
        })
    }
}

fn name(number: usize) -> String {
    format!("node-{number}")
}
