//! Two managers, of which one leads.

use anyhow::Result;
use cloudkeel_bench_arena::{Contestant, Programs, Running, resident_kib};

use crate::cluster::SoakCluster;

const CONTROLLERS: &str = "cloud-node-controller,cloud-node-lifecycle-controller,service-lb-controller,node-route-controller";
/// A lease as short as the rest of this cluster's time.
const FLAGS: [&str; 7] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=5s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=1s",
    "--configure-cloud-routes=true",
    "--allocate-node-cidrs=true",
    "--cluster-cidr=10.64.0.0/10",
];

pub(crate) struct Managers {
    programs: Programs,
    running: Vec<Running>,
    /// The logs of those that were killed.
    ended: Vec<String>,
}

impl Managers {
    pub(crate) fn start(programs: &Programs, cluster: &SoakCluster) -> Result<Self> {
        let mut managers = Self {
            programs: programs.clone(),
            running: Vec::new(),
            ended: Vec::new(),
        };
        managers.add(cluster)?;
        managers.add(cluster)?;
        Ok(managers)
    }

    fn add(&mut self, cluster: &SoakCluster) -> Result<()> {
        let stage = &cluster.stage;
        let running = stage.start(&self.programs, Contestant::Cloudkeel, CONTROLLERS, &FLAGS)?;
        self.running.push(running);
        Ok(())
    }

    /// The older one is killed without a word, and another one started: so each leads in turn.
    pub(crate) fn replace_older(&mut self, cluster: &SoakCluster) -> Result<()> {
        let older = self.running.remove(0);
        self.ended.push(older.log());
        drop(older);
        self.add(cluster)
    }

    /// The memory of both now, in KiB.
    pub(crate) fn memory(&self) -> Result<Vec<u64>> {
        self.running
            .iter()
            .map(|it| resident_kib(it.id()))
            .collect()
    }

    /// What all have logged.
    pub(crate) fn logs(&self) -> String {
        let now = self.running.iter().map(Running::log);
        let all: Vec<String> = self.ended.iter().cloned().chain(now).collect();
        all.join("\n--- the next one ---\n")
    }
}
