//! Machines that are removed one after the other, as by a rolling replacement. Their Nodes stay Ready for a while.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use cloudkeel_bench_arena::{Contestant, Programs};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::cluster::{Cluster, name};

/// How long the silence of a kubelet goes unnoticed.
const STILL_READY: Duration = Duration::from_secs(45);
/// A Node that is still there this long after the last one was noticed stays for good.
const TIMEOUT: Duration = Duration::from_mins(10);
/// How often a kubelet renews its lease.
const RENEWAL: Duration = Duration::from_secs(10);

/// Machines that are removed.
pub(crate) struct Rolling {
    pub(crate) share: (usize, usize),
    pub(crate) every: Duration,
    pub(crate) latency: Duration,
}

/// How long Nodes were there after they were not Ready.
pub(crate) struct Replaced {
    contestant: Contestant,
    stayed: Vec<Duration>,
    lost: usize,
}

impl Replaced {
    pub(crate) fn json(&self) -> Value {
        let seconds = self.stayed.iter().map(Duration::as_secs_f64);
        json!({
            "contestant": self.contestant.name(),
            "removed": self.lost,
            "medianSeconds": self.median().map(|time| time.as_secs_f64()),
            "longestSeconds": self.stayed.last().map(Duration::as_secs_f64),
            "secondsNotReady": seconds.collect::<Vec<_>>(),
            "left": self.left(),
        })
    }

    fn median(&self) -> Option<Duration> {
        self.stayed.get(self.stayed.len() / 2).copied()
    }

    fn left(&self) -> usize {
        self.lost - self.stayed.len()
    }
}

/// What is known of a Node whose machine was removed.
struct Lost {
    at: Instant,
    noticed: Option<Instant>,
    gone: Option<Instant>,
}

impl Rolling {
    pub(crate) async fn measure(
        &self,
        programs: &Programs,
        contestant: Contestant,
    ) -> Result<Replaced> {
        let (remove, nodes) = self.share;
        let cluster = Cluster::build(programs, contestant, nodes, self.latency).await?;
        let mut lost: BTreeMap<usize, Lost> = BTreeMap::new();
        let began = Instant::now();
        let mut renewed = began;
        let last = self.every * u32::try_from(remove)? + STILL_READY + TIMEOUT;
        while began.elapsed() < last {
            let due = usize::try_from(began.elapsed().as_millis() / self.every.as_millis().max(1))?;
            for number in lost.len()..remove.min(due + 1) {
                let machine = cluster.machines.get(number).copied().unwrap_or_default();
                let gone = cluster.stage.cloud.destroy(machine);
                gone.map_err(|refusal| anyhow!("machine {machine}: {refusal:?}"))?;
                let lost_now = Lost {
                    at: Instant::now(),
                    noticed: None,
                    gone: None,
                };
                lost.insert(number, lost_now);
            }
            if renewed.elapsed() >= RENEWAL {
                renewed = Instant::now();
                renew_others(&cluster, &lost, nodes).await?;
            }
            notice(&cluster, &mut lost).await?;
            if lost.len() == remove && lost.values().all(|it| it.gone.is_some()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let stayed = lost.values().filter_map(|it| Some(it.gone? - it.noticed?));
        Ok(Replaced {
            contestant,
            stayed: {
                let mut stayed: Vec<Duration> = stayed.collect();
                stayed.sort();
                stayed
            },
            lost: lost.len(),
        })
    }
}

async fn renew_others(cluster: &Cluster, lost: &BTreeMap<usize, Lost>, nodes: usize) -> Result<()> {
    for number in (0..nodes).filter(|number| !lost.contains_key(number)) {
        cluster.kubelet(number).renew_lease().await?;
    }
    Ok(())
}

/// Nodes that are silent for long enough are not Ready; those that are gone are written down.
async fn notice(cluster: &Cluster, lost: &mut BTreeMap<usize, Lost>) -> Result<()> {
    let nodes: Api<Node> = Api::all(cluster.stage.client());
    let listed = nodes.list_metadata(&ListParams::default()).await?;
    let there: Vec<_> = listed
        .items
        .into_iter()
        .filter_map(|it| it.metadata.name)
        .collect();
    for (number, it) in lost {
        if it.gone.is_none() && !there.contains(&name(*number)) {
            it.gone = Some(Instant::now());
        }
        let is_due = it.noticed.is_none() && it.at.elapsed() >= STILL_READY;
        if is_due && it.gone.is_none() {
            cluster.set_not_ready(*number).await?;
            it.noticed = Some(Instant::now());
        }
    }
    Ok(())
}

pub(crate) fn table(rows: &[Replaced]) -> String {
    let mut text = format!(
        "{:<12} {:>8} {:>26} {:>26} {:>5}\n",
        "who", "removed", "median s after NotReady", "longest s after NotReady", "left"
    );
    for row in rows {
        let seconds = |at: Option<&Duration>| at.map_or(0.0, Duration::as_secs_f64);
        let _ = writeln!(
            text,
            "{:<12} {:>8} {:>26.1} {:>26.1} {:>5}",
            row.contestant.name(),
            row.lost,
            seconds(row.median().as_ref()),
            seconds(row.stayed.last()),
            row.left(),
        );
    }
    text
}
