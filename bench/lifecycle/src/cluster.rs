//! Nodes with machines, and what kubelets and the cluster do about them.

use std::time::Duration;

use anyhow::Result;
use cloudkeel_bench_arena::{Contestant, Programs, Running, Stage};
use cloudkeel_testkit::cluster::{Kubelet, NotReady};
use futures::{StreamExt as _, TryStreamExt as _};

/// How many Nodes are made at once.
const AT_ONCE: usize = 32;
/// For a contestant to start and to see the Nodes.
const SETTLING: Duration = Duration::from_secs(15);

/// A contestant at work in a cluster whose Nodes are all initialised.
pub(crate) struct Cluster {
    // Ends before the cluster that it runs on.
    _running: Running,
    pub(crate) stage: Stage,
    /// The machines, in the order of their Nodes.
    pub(crate) machines: Vec<u64>,
}

impl Cluster {
    pub(crate) async fn build(
        programs: &Programs,
        contestant: Contestant,
        nodes: usize,
        latency: Duration,
    ) -> Result<Self> {
        let stage = Stage::build().await?;
        let joining = (0..nodes).map(|number| {
            let stage = &stage;
            async move { stage.join(&name(number)).await }
        });
        let machines: Vec<u64> = futures::stream::iter(joining)
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        stage
            .cloud
            .change_settings(|settings| settings.latency.fixed = latency);
        let controllers = "cloud-node-controller,cloud-node-lifecycle-controller";
        let flags = ["--leader-elect=false"];
        let running = stage.start(programs, contestant, controllers, &flags)?;
        tokio::time::sleep(SETTLING).await;
        Ok(Self {
            _running: running,
            stage,
            machines,
        })
    }

    pub(crate) fn kubelet(&self, number: usize) -> Kubelet {
        Kubelet::new(&self.stage.client(), name(number))
    }

    /// The cluster has noticed that the kubelet of a Node is silent.
    pub(crate) async fn set_not_ready(&self, number: usize) -> Result<()> {
        self.kubelet(number)
            .set_not_ready(NotReady::Unknown)
            .await?;
        Ok(())
    }
}

pub(crate) fn name(number: usize) -> String {
    format!("node-{number:05}")
}
