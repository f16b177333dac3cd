//! The two managers: how they begin, die and come back.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use cloudkeel_api::{ConfigSource, Registry, TokioClock};
use cloudkeel_embedded::EmbeddedApi;
use cloudkeel_manager::config::CloudEntry;
use cloudkeel_manager::run::{Invocation, Replica, Start, read_invocation};
use cloudkeel_provider_local::{LocalFactory, Wiring};
use cloudkeel_testkit::simulated_cloud::{InProcess, SimulatedCloud};
use jiff::SignedDuration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::accounts::{Account, Clouds, Layout};
use crate::action::Who;
use crate::api_way::ApiWay;
use crate::clock::MachineClock;
use crate::cloud_way::CloudWay;
use crate::draw::Draw;
use crate::fate::Fate;
use crate::witness::Witness;

/// Deletions that may come at once, and the pause after them: small, so that few Nodes show it.
pub(crate) const DELETION_BURST: u32 = 1;
pub(crate) const DELETION_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// How long a lease lasts that is not renewed.
pub(crate) const LEASE_DURATION: SignedDuration = SignedDuration::from_secs(15);

/// The Pod networks.
pub(crate) const CLUSTER_CIDR: &str = "10.244.0.0/16";

/// A manager, dead or alive.
pub(crate) struct Manager {
    who: Who,
    pub(crate) clock: MachineClock,
    lives: u32,
    life: Option<Life>,
}

/// One life of a manager.
struct Life {
    fate: Arc<Fate>,
    way: Arc<ApiWay>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// What managers need to live.
pub(crate) struct Home {
    pub(crate) api: EmbeddedApi,
    pub(crate) clouds: Clouds,
    pub(crate) witness: Arc<Witness>,
}

impl Manager {
    pub(crate) fn new(who: Who, right: TokioClock) -> Self {
        Self {
            who,
            clock: MachineClock::new(right),
            lives: 0,
            life: None,
        }
    }

    /// Begins a life, unless it has one.
    pub(crate) fn begin(&mut self, home: &Home, draw: &mut Draw) -> Result<()> {
        if self.is_alive() {
            return Ok(());
        }
        self.crash();
        self.lives += 1;
        let name = format!("{}-{}", self.who.name(), self.lives);
        home.witness.begins(self.who, &name);
        let (fate, seed) = (Arc::<Fate>::default(), draw.seed());
        let witness = || Arc::clone(&home.witness);
        let way = ApiWay::new(self.who, Arc::clone(&fate), draw.seed(), witness());
        let clouds = home.clouds.clone();
        let cloud = CloudWay::new(self.who, Arc::clone(&fate), clouds, witness());
        let wiring = Wiring {
            transport: Some(Arc::new(cloud)),
            seed: Some(seed),
        };
        let registry = Registry::new().with(LocalFactory::wired(wiring))?;
        let replica = Replica {
            start: start(&registry, home.clouds.layout)?,
            api: home
                .api
                .client_through(self.who.name(), Arc::<ApiWay>::clone(&way)),
            clock: Arc::new(self.clock.clone()),
            name: name.clone(),
            seed,
        };
        let stop = CancellationToken::new();
        let (until, witness) = (stop.clone(), witness());
        let task = tokio::spawn(async move {
            let ending = replica.run(&registry, until).await;
            witness.note(format_args!("{name} ended: {ending:?}"));
        });
        self.life = Some(Life {
            fate,
            way,
            stop,
            task,
        });
        Ok(())
    }

    /// Whether it runs. One that ended by itself, as after a lost lease, does not; nor one that ran
    /// into a trap.
    pub(crate) fn is_alive(&self) -> bool {
        let runs = |life: &Life| !life.task.is_finished() && !life.fate.is_dead();
        self.life.as_ref().is_some_and(runs)
    }

    /// Whether it was ever started.
    pub(crate) const fn has_lived(&self) -> bool {
        self.lives > 0
    }

    /// Whether nothing is left of its last life.
    pub(crate) const fn is_buried(&self) -> bool {
        self.life.is_none()
    }

    /// Ends it where it stands.
    pub(crate) fn crash(&mut self) {
        if let Some(life) = self.life.take() {
            life.fate.kill();
            life.task.abort();
        }
    }

    /// How it will die, if it is alive.
    pub(crate) fn fate(&self) -> Option<&Fate> {
        self.life.as_ref().map(|life| &*life.fate)
    }

    /// Asks it to end.
    pub(crate) fn stop(&self) {
        if let Some(life) = &self.life {
            life.stop.cancel();
        }
    }

    /// Its way to the API, if it is alive.
    pub(crate) fn way(&self) -> Option<&ApiWay> {
        self.life.as_ref().map(|life| &*life.way)
    }
}

/// The command line of a manager.
fn start(registry: &Registry, layout: Layout) -> Result<Start> {
    let words = [
        "cloudkeel".to_owned(),
        "--cloud-provider=local".to_owned(),
        format!("--cluster-cidr={CLUSTER_CIDR}"),
        format!("--node-deletion-burst={DELETION_BURST}"),
        format!("--node-deletion-interval={}s", DELETION_INTERVAL.as_secs()),
        "--load-balancer-sweep-period=10m".to_owned(),
        "--route-reconciliation-period=5m".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    let invocation = read_invocation(&words, registry, &[]).map_err(anyhow::Error::msg)?;
    let Invocation::Manager(mut start) = invocation else {
        bail!("{words:?} is not the command line of a manager");
    };
    let first = start.setup.clouds.pop().context("there is a cloud")?;
    let entries = layout.accounts().iter();
    let entries = entries.map(|account| entry_of(*account, first.clone()));
    start.setup.clouds = entries.collect();
    Ok(*start)
}

/// The entry of an account in the configuration. Services are the first one's.
fn entry_of(account: Account, mut entry: CloudEntry) -> CloudEntry {
    // A manager that starts while the credential sees another project must say so, not settle there.
    let config = serde_json::json!({
        "endpoint": InProcess::URL,
        "token": account.token(),
        "project": SimulatedCloud::PROJECT,
    });
    account.cloud_name().clone_into(&mut entry.name);
    entry.load_balancers.default = account == Account::First;
    entry.config = ConfigSource::Own(config);
    entry
}
