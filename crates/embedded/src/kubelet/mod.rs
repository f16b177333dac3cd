//! Simulated kubelets: they register Nodes, send heartbeats, fall silent, come back elsewhere, and answer on the node
//! ports of every Service.

mod config;
mod heartbeat;
mod listener;
mod node;
mod ports;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use cloudkeel_api::Clock;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use config::KubeletConfig;

use heartbeat::HeartbeatLoop;
use ports::Ports;

/// How a kubelet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It runs, and says that its Node is ready.
    Ready,
    /// It runs, and says that its Node is not.
    Unwell,
    /// It hangs: no heartbeat, while what runs on its machine goes on answering.
    Silent,
    /// Its machine was switched off: no heartbeat, and nothing answers once what was asked before is answered.
    Off,
}

impl Health {
    fn beats(self) -> bool {
        matches!(self, Self::Ready | Self::Unwell)
    }
}

/// Which Services have a Pod on a Node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Runs {
    /// All of them.
    #[default]
    Everything,
    /// Those of these names, as `namespace/name`.
    Only(BTreeSet<String>),
}

impl Runs {
    pub(crate) fn has(&self, service: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(services) => services.contains(service),
        }
    }
}

/// What changes in the life of a kubelet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Life {
    health: Health,
    address: IpAddr,
    runs: Runs,
}

/// A kubelet at work. It stops when this is dropped.
pub struct Kubelet {
    name: String,
    life: watch::Sender<Life>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Kubelet {
    /// Starts a kubelet, which registers its Node and goes on from there.
    pub fn start(client: &Client, clock: Arc<dyn Clock>, config: KubeletConfig) -> Self {
        let (life, seen) = watch::channel(Life {
            health: Health::Ready,
            address: config.address,
            runs: Runs::default(),
        });
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let name = config.name.clone();
        if config.serves_ports {
            let ports = Ports::new(client.clone(), name.clone(), seen.clone(), tasks.clone());
            let stopped = stop.clone();
            tasks.spawn(async move {
                stopped.run_until_cancelled(ports.run()).await;
            });
        }
        let heartbeats = HeartbeatLoop::new(client.clone(), clock, config, seen);
        let stopped = stop.clone();
        tasks.spawn(async move {
            stopped.run_until_cancelled(heartbeats.run()).await;
        });
        tasks.close();
        Self {
            name,
            life,
            stop,
            tasks,
        }
    }

    /// The name of its Node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes it ready or not. One that was silent or off starts anew: it registers its Node if that is gone.
    pub fn set_health(&self, health: Health) {
        self.life.send_modify(|life| life.health = health);
    }

    /// Gives its machine another address, as after a restart.
    pub fn move_to(&self, address: IpAddr) {
        self.life.send_modify(|life| life.address = address);
    }

    /// Says which Services have a Pod here.
    pub fn set_runs(&self, runs: Runs) {
        self.life.send_modify(|life| life.runs = runs);
    }

    /// Ends it, and waits until its ports are closed. Its Node stays.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
