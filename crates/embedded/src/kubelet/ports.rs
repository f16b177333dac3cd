//! The node ports of a machine: what should answer on each, and keeping to that.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listener::{Answer, Protocol, listen};
use super::{Health, Life};

/// How soon a port that could not be had is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A port of the machine.
type Port = (Protocol, u16);

/// What answers on a port, until it is stopped.
struct Open {
    at: SocketAddr,
    answer: Answer,
    stop: CancellationToken,
}

pub(super) struct Ports {
    client: Client,
    node: String,
    life: watch::Receiver<Life>,
    services: BTreeMap<String, Service>,
    open: BTreeMap<Port, Open>,
    tasks: TaskTracker,
}

impl Ports {
    pub(super) fn new(
        client: Client,
        node: String,
        life: watch::Receiver<Life>,
        tasks: TaskTracker,
    ) -> Self {
        Self {
            client,
            node,
            life,
            services: BTreeMap::new(),
            open: BTreeMap::new(),
            tasks,
        }
    }

    /// Follows the Services and the life of the machine.
    pub(super) async fn run(mut self) {
        let services: Api<Service> = Api::all(self.client.clone());
        let events = watcher(services, watcher::Config::default());
        let mut events = std::pin::pin!(events.default_backoff());
        loop {
            let all_open = self.reconcile().await;
            tokio::select! {
                biased;
                event = events.next() => match event {
                    Some(Ok(event)) => self.take(event),
                    // The watcher begins anew by itself.
                    Some(Err(error)) => tracing::debug!(node = self.node, %error, "a watch broke"),
                    None => return,
                },
                changed = self.life.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = sleep(AGAIN), if !all_open => {}
            }
        }
    }

    fn take(&mut self, event: Event<Service>) {
        match event {
            Event::Init => self.services.clear(),
            Event::InitApply(service) | Event::Apply(service) => {
                self.services.insert(key(&service), service);
            }
            Event::InitDone => {}
            Event::Delete(service) => {
                self.services.remove(&key(&service));
            }
        }
    }

    /// Opens and closes ports until they are as they should be; false if one could not be had.
    async fn reconcile(&mut self) -> bool {
        let life = self.life.borrow_and_update().clone();
        let wanted = self.wanted(&life);
        let is_right = |port: &Port, open: &Open| {
            open.at.ip() == life.address && wanted.get(port) == Some(&open.answer)
        };
        self.open.retain(|port, open| {
            let keep = is_right(port, open);
            if !keep {
                open.stop.cancel();
            }
            keep
        });
        let mut all_open = true;
        for (port, answer) in wanted {
            if self.open.contains_key(&port) {
                continue;
            }
            let at = SocketAddr::new(life.address, port.1);
            let stop = CancellationToken::new();
            match listen(port.0, at, answer.clone(), &stop, &self.tasks).await {
                Ok(()) => {
                    self.open.insert(port, Open { at, answer, stop });
                }
                Err(error) => {
                    tracing::warn!(node = self.node, %at, %error, "a node port cannot be opened");
                    all_open = false;
                }
            }
        }
        all_open
    }

    fn wanted(&self, life: &Life) -> BTreeMap<Port, Answer> {
        if life.health == Health::Off {
            return BTreeMap::new();
        }
        let services = self.services.iter();
        services
            .flat_map(|(key, service)| self.wanted_by(key, service, life))
            .collect()
    }

    fn wanted_by(&self, key: &str, service: &Service, life: &Life) -> Vec<(Port, Answer)> {
        let Some(spec) = &service.spec else {
            return Vec::new();
        };
        let is_local = spec.external_traffic_policy.as_deref() == Some("Local");
        let runs_here = life.runs.has(key);
        let mut wanted = Vec::new();
        if let Some(port) = spec
            .health_check_node_port
            .and_then(|port| u16::try_from(port).ok())
        {
            let health = Answer::Health {
                service: key.to_owned(),
                local: runs_here,
            };
            wanted.push(((Protocol::Tcp, port), health));
        }
        if is_local && !runs_here {
            return wanted;
        }
        for port in spec.ports.iter().flatten() {
            let number = port.node_port.and_then(|port| u16::try_from(port).ok());
            let protocol = Protocol::of(port.protocol.as_deref());
            if let (Some(number), Some(protocol)) = (number, protocol) {
                let echo = Answer::Echo {
                    node: self.node.clone(),
                    service: key.to_owned(),
                };
                wanted.push(((protocol, number), echo));
            }
        }
        wanted
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        for open in self.open.values() {
            open.stop.cancel();
        }
    }
}

fn key(service: &Service) -> String {
    let namespace = service.namespace().unwrap_or_default();
    format!("{namespace}/{}", service.name_any())
}
