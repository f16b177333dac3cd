//! The two managers: how they start, crash and come back.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use cloudkeel_api::{ConfigSource, Registry, TokioClock};
use cloudkeel_embedded::EmbeddedApi;
use cloudkeel_manager::config::CloudEntry;
use cloudkeel_manager::election::BackgroundTasks;
use cloudkeel_manager::run::{Invocation, Reload, Replica, Start, read_invocation};
use cloudkeel_provider_local::{LocalFactory, Wiring};
use cloudkeel_testkit::simulated_cloud::{InProcess, SimulatedCloud};
use jiff::SignedDuration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::accounts::{Account, Clouds};
use crate::action::ManagerId;
use crate::api_faults::{ApiConnection, ApiFaults};
use crate::clock::MachineClock;
use crate::cloud_transport::CloudTransport;
use crate::crash::{CrashSwitch, run_in_background, run_unless_frozen};
use crate::invariants::Checker;
use crate::rng::Rng;
use crate::topology::Topology;

/// Deletions that may come at once, and the pause after them: small, so that few Nodes show it.
pub(crate) const DELETION_BURST: u32 = 1;
pub(crate) const DELETION_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// How long a lease lasts that is not renewed.
pub(crate) const LEASE_DURATION: SignedDuration = SignedDuration::from_secs(15);

/// A manager, running or not.
pub(crate) struct Manager {
    id: ManagerId,
    pub(crate) clock: MachineClock,
    /// What goes wrong with its requests, whichever process sends them.
    pub(crate) api_faults: Arc<ApiFaults>,
    starts: u32,
    running: Option<Running>,
}

/// One process of a manager.
struct Running {
    crash_switch: Arc<CrashSwitch>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What managers work on.
pub(crate) struct Backends {
    pub(crate) topology: Topology,
    pub(crate) api: EmbeddedApi,
    pub(crate) clouds: Clouds,
    pub(crate) checker: Arc<Checker>,
}

impl Manager {
    pub(crate) fn new(manager_id: ManagerId, right: TokioClock, rng: &mut Rng) -> Self {
        Self {
            id: manager_id,
            api_faults: ApiFaults::new(rng.seed()),
            clock: MachineClock::new(right),
            starts: 0,
            running: None,
        }
    }

    /// Starts it, unless it runs.
    pub(crate) fn start(&mut self, backends: &Backends, rng: &mut Rng) -> Result<()> {
        if self.is_alive() {
            return Ok(());
        }
        self.crash();
        self.starts += 1;
        let name = format!("{}-{}", self.id.name(), self.starts);
        backends.checker.manager_started(self.id, &name);
        let (crash_switch, seed) = (Arc::<CrashSwitch>::default(), rng.seed());
        let checker = || Arc::clone(&backends.checker);
        let connection = ApiConnection {
            manager_id: self.id,
            started: Instant::now(),
            crash_switch: Arc::clone(&crash_switch),
            faults: Arc::clone(&self.api_faults),
            checker: checker(),
        };
        let clouds = backends.clouds.clone();
        let cloud = CloudTransport::new(self.id, Arc::clone(&crash_switch), clouds, checker());
        let wiring = Wiring {
            transport: Some(Arc::new(cloud)),
            seed: Some(seed),
            ..Wiring::default()
        };
        let registry = Registry::new().with(LocalFactory::wired(wiring))?;
        let replica = Replica {
            start: command_line(&registry, backends)?,
            api: backends
                .api
                .client_through(self.id.name(), Arc::new(connection)),
            clock: Arc::new(self.clock.clone()),
            name: name.clone(),
            seed,
            background: background(&crash_switch),
            reload: Some(reload(&registry, backends)?),
        };
        let stop = CancellationToken::new();
        let (until, checker) = (stop.clone(), checker());
        let (switch, id) = (Arc::clone(&crash_switch), self.id);
        let task = tokio::spawn(async move {
            let running = Box::pin(replica.run(&registry, until));
            let on_wake = |frozen| checker.manager_woke(id, frozen);
            let ended = Box::pin(run_unless_frozen(switch, on_wake, running)).await;
            checker.note(format_args!("{name} ended: {ended:?}"));
        });
        self.running = Some(Running {
            crash_switch,
            stop,
            task,
        });
        Ok(())
    }

    /// Whether it runs. One that ended by itself, as after a lost lease, does not; nor one that crashed at a point.
    pub(crate) fn is_alive(&self) -> bool {
        let runs =
            |running: &Running| !running.task.is_finished() && !running.crash_switch.is_dead();
        self.running.as_ref().is_some_and(runs)
    }

    /// Whether it was ever started.
    pub(crate) const fn was_started(&self) -> bool {
        self.starts > 0
    }

    /// Whether nothing is left of its last process.
    pub(crate) const fn is_cleaned_up(&self) -> bool {
        self.running.is_none()
    }

    /// Ends it where it stands.
    pub(crate) fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            running.crash_switch.kill();
            running.task.abort();
        }
    }

    /// Whether it crashed at a point that was set for it.
    pub(crate) fn has_crashed(&self) -> bool {
        let switch = self.crash_switch();
        switch.is_some_and(CrashSwitch::is_dead)
    }

    /// The switch of its process, if it runs.
    pub(crate) fn crash_switch(&self) -> Option<&CrashSwitch> {
        self.running.as_ref().map(|running| &*running.crash_switch)
    }

    /// Asks it to end.
    pub(crate) fn stop(&self) {
        if let Some(running) = &self.running {
            running.stop.cancel();
        }
    }
}

/// What a manager starts beside its work stands still with it.
fn background(crash_switch: &Arc<CrashSwitch>) -> BackgroundTasks {
    let switch = Arc::clone(crash_switch);
    BackgroundTasks::wrapped_by(move |task| Box::pin(run_in_background(Arc::clone(&switch), task)))
}

/// The command line of a manager.
fn command_line(registry: &Registry, backends: &Backends) -> Result<Start> {
    let topology = backends.topology;
    let mut words = vec![
        "cloudkeel".to_owned(),
        "--cloud-provider=local".to_owned(),
        format!("--cluster-cidr={}", topology.cluster_cidr()),
        format!("--node-deletion-burst={DELETION_BURST}"),
        format!("--node-deletion-interval={}s", DELETION_INTERVAL.as_secs()),
        "--load-balancer-drift-check-period=10m".to_owned(),
        "--route-reconciliation-period=5m".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    if topology.ipam {
        let own = [
            "--allocate-node-cidrs",
            "--controllers=*,node-ipam-controller",
        ];
        words.extend(own.map(str::to_owned));
    }
    let invocation = read_invocation(&words, registry, &[]).map_err(anyhow::Error::msg)?;
    let Invocation::Manager(mut start) = invocation else {
        bail!("{words:?} is not the command line of a manager");
    };
    let first = start.setup.clouds.pop().context("there is a cloud")?;
    start.setup.clouds = entries(&first, &backends.clouds);
    Ok(*start)
}

/// Reads the configuration again, with the tokens as they are then.
fn reload(registry: &Registry, backends: &Backends) -> Result<Reload> {
    let start = command_line(registry, backends)?;
    let (mut setup, clouds) = (start.setup, backends.clouds.clone());
    let first = setup.clouds.first().cloned().context("there is a cloud")?;
    setup.clouds.clear();
    Ok(Arc::new(move || {
        let mut setup = setup.clone();
        setup.clouds = entries(&first, &clouds);
        Ok(setup)
    }))
}

fn entries(like: &CloudEntry, clouds: &Clouds) -> Vec<CloudEntry> {
    let accounts = clouds.layout.accounts().iter();
    let entry = |account: &Account| entry_of(*account, &clouds.token(*account), like.clone());
    accounts.map(entry).collect()
}

/// The entry of an account in the configuration. Services are the first one's.
fn entry_of(account: Account, token: &str, mut entry: CloudEntry) -> CloudEntry {
    // A manager that starts while the credential sees another project must say so, not settle there.
    let config = serde_json::json!({
        "endpoint": InProcess::URL,
        "token": token,
        "project": SimulatedCloud::PROJECT,
    });
    account.cloud_name().clone_into(&mut entry.name);
    entry.load_balancers.default = account == Account::First;
    entry.config = ConfigSource::Own(config);
    entry
}
