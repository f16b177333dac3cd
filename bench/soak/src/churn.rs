//! What happens in a cluster that never rests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use cloudkeel_testkit::simulated_cloud::{Fault, FaultMatch};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::Arguments;
use crate::cluster::{SoakCluster, node_name, service_name};
use crate::managers::Managers;
use crate::random::Random;
use crate::report::Report;

const TICK: Duration = Duration::from_millis(50);
const SAMPLE: Duration = Duration::from_secs(10);
/// The longest that the cloud fails, and that a machine is off.
const LONGEST_FAULT_SECONDS: usize = 5;
const LONGEST_OFF_SECONDS: usize = 20;

/// A machine with a Node.
#[derive(Debug, Clone)]
struct Member {
    name: String,
    machine: u64,
}

/// What has to happen later.
#[derive(Debug)]
enum Later {
    /// The cluster notices that a kubelet is silent.
    Notice(String),
    /// The autoscaler deletes the Node of a machine that it has deleted.
    DeleteNode(String),
    SwitchOn(Member),
    EndFault,
}

/// When each kind of event is due.
struct Every {
    period: Duration,
    next: Instant,
}

impl Every {
    fn new(period: Duration) -> Self {
        Self {
            period,
            next: Instant::now() + period,
        }
    }

    /// Whether it is time, once for each period. A period of zero is never.
    fn is_due(&mut self) -> bool {
        let due = !self.period.is_zero() && Instant::now() >= self.next;
        if due {
            self.next = Instant::now() + self.period;
        }
        due
    }
}

pub(crate) struct Churn {
    random: Random,
    lasting: Duration,
    unnoticed: Duration,
    machine: Every,
    service: Every,
    fault: Every,
    kill: Every,
    sample: Every,
    members: Vec<Member>,
    services: Vec<usize>,
    /// How many Services there should be.
    usual: usize,
    /// Of the next Node and of the next Service.
    next_number: usize,
    later: Vec<(Instant, Later)>,
    counts: BTreeMap<&'static str, u64>,
}

impl Churn {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let seconds = Duration::from_secs;
        Self {
            random: Random::new(arguments.seed),
            lasting: seconds(60 * arguments.minutes),
            unnoticed: seconds(arguments.unnoticed),
            machine: Every::new(Duration::from_millis(arguments.machine_every)),
            service: Every::new(Duration::from_millis(arguments.service_every)),
            fault: Every::new(seconds(arguments.fault_every)),
            kill: Every::new(seconds(arguments.kill_every)),
            sample: Every::new(SAMPLE),
            members: Vec::new(),
            services: (0..arguments.services).collect(),
            usual: arguments.services,
            next_number: arguments.nodes.max(arguments.services),
            later: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    pub(crate) const fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Everything happens until the time is over; then what has begun is finished.
    pub(crate) async fn run(
        &mut self,
        cluster: &SoakCluster,
        managers: &mut Managers,
        report: &mut Report,
    ) -> Result<()> {
        let machines = cluster.stage.cloud.machines().into_iter();
        let members = machines.map(|it| Member {
            name: it.name,
            machine: it.id,
        });
        self.members = members.collect();
        let end = Instant::now() + self.lasting;
        let mut is_over = false;
        while !is_over || !self.later.is_empty() {
            self.finish_due(cluster).await?;
            if self.sample.is_due() {
                report.sample(managers)?;
            }
            is_over = Instant::now() >= end;
            if !is_over {
                self.begin_due(cluster, managers).await?;
            }
            tokio::time::sleep(TICK).await;
        }
        Ok(())
    }

    async fn begin_due(&mut self, cluster: &SoakCluster, managers: &mut Managers) -> Result<()> {
        if self.machine.is_due() {
            self.disturb_machine(cluster).await?;
        }
        if self.service.is_due() {
            self.disturb_service(cluster).await?;
        }
        if self.fault.is_due() {
            self.begin_fault(cluster);
        }
        if self.kill.is_due() {
            managers.replace_older(cluster)?;
            self.count("managers killed");
        }
        Ok(())
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn after(&mut self, time: Duration, what: Later) {
        self.later.push((Instant::now() + time, what));
    }

    fn new_number(&mut self) -> usize {
        self.next_number += 1;
        self.next_number
    }

    async fn disturb_machine(&mut self, cluster: &SoakCluster) -> Result<()> {
        if self.members.is_empty() {
            return Ok(());
        }
        let index = self.random.below(self.members.len());
        let member = self.members.swap_remove(index);
        match self.random.below(100) {
            0..60 => {
                Self::destroy(cluster, &member)?;
                self.after(self.unnoticed, Later::Notice(member.name));
                let number = self.new_number();
                self.join(cluster, node_name(number), number).await?;
                self.count("machines replaced");
            }
            60..75 => {
                delete_node(cluster, &member.name).await?;
                Self::destroy(cluster, &member)?;
                let number = self.new_number();
                self.join(cluster, member.name, number).await?;
                self.count("machines replaced under their name");
            }
            75..85 => {
                Self::destroy(cluster, &member)?;
                self.after(Duration::from_secs(1), Later::DeleteNode(member.name));
                let number = self.new_number();
                self.join(cluster, node_name(number), number).await?;
                self.count("machines replaced by an autoscaler");
            }
            _ => {
                let off = cluster.stage.cloud.power_off(member.machine);
                off.map_err(|refusal| anyhow!("{}: {refusal:?}", member.name))?;
                cluster.kubelets.silence(&member.name);
                let seconds = 1 + self.random.below(LONGEST_OFF_SECONDS);
                let time = Duration::from_secs(u64::try_from(seconds)?);
                if time > self.unnoticed {
                    self.after(self.unnoticed, Later::Notice(member.name.clone()));
                }
                self.after(time, Later::SwitchOn(member));
                self.count("machines switched off and on");
            }
        }
        Ok(())
    }

    /// The machine is gone, and with it its kubelet.
    fn destroy(cluster: &SoakCluster, member: &Member) -> Result<()> {
        cluster.kubelets.silence(&member.name);
        cluster.stage.destroy(member.machine)
    }

    async fn join(&mut self, cluster: &SoakCluster, name: String, number: usize) -> Result<()> {
        let machine = cluster.join(&name, number).await?;
        self.members.push(Member { name, machine });
        Ok(())
    }

    async fn disturb_service(&mut self, cluster: &SoakCluster) -> Result<()> {
        let choice = self.random.below(self.usual.max(1) * 2);
        if self.services.len() <= choice {
            let number = self.new_number();
            cluster.make_service(number).await?;
            self.services.push(number);
            self.count("Services created");
        } else if self.random.below(2) == 0 {
            let index = self.random.below(self.services.len());
            let name = service_name(self.services.swap_remove(index));
            let services = cluster.services();
            services.delete(&name, &DeleteParams::default()).await?;
            self.count("Services deleted");
        } else if let Some(number) = self.random.choose(&self.services).copied() {
            let port = 1_000 + self.random.below(1_000);
            let ports =
                json!({"spec": {"ports": [{"name": "http", "port": port, "protocol": "TCP"}]}});
            let services = cluster.services();
            let (name, how) = (service_name(number), PatchParams::default());
            services.patch(&name, &how, &Patch::Merge(ports)).await?;
            self.count("Services changed");
        }
        Ok(())
    }

    fn begin_fault(&mut self, cluster: &SoakCluster) {
        let faults = [
            Fault::status(401),
            Fault::status(403),
            Fault::too_many_calls(Some(2)),
            Fault::status(500),
            Fault::NoAnswer,
            Fault::BrokenAfter,
            Fault::EmptyList,
            Fault::LostNextPage,
            Fault::TruncatedPage,
            Fault::Html,
        ];
        if let Some(fault) = self.random.choose(&faults) {
            cluster
                .stage
                .cloud
                .faults()
                .always(FaultMatch::any(), fault.clone());
            let seconds = 1 + self.random.below(LONGEST_FAULT_SECONDS);
            let time = Duration::from_secs(u64::try_from(seconds).unwrap_or(1));
            self.after(time, Later::EndFault);
            self.count("faults of the cloud");
        }
    }

    async fn finish_due(&mut self, cluster: &SoakCluster) -> Result<()> {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.later)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.later = later;
        for (_, what) in due {
            match what {
                Later::Notice(name) => cluster.kubelets.notice(&name).await?,
                Later::DeleteNode(name) => delete_node(cluster, &name).await?,
                Later::EndFault => cluster.stage.cloud.faults().clear(),
                Later::SwitchOn(member) => {
                    let on = cluster.stage.cloud.power_on(member.machine);
                    on.map_err(|refusal| anyhow!("{}: {refusal:?}", member.name))?;
                    cluster.kubelets.revive(&member.name).await?;
                    self.members.push(member);
                }
            }
        }
        Ok(())
    }
}

/// Deletes a Node, as an operator or an autoscaler does. The manager may have been faster.
async fn delete_node(cluster: &SoakCluster, name: &str) -> Result<()> {
    match cluster.nodes().delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}
