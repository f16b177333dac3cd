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
    answer: watch::Sender<Answer>,
    stop: CancellationToken,
}

pub(super) struct Ports {
    client: Client,
    node: String,
    life: watch::Receiver<Life>,
    services: BTreeMap<String, Service>,
    /// What a list that has not ended has shown so far.
    listed: BTreeMap<String, Service>,
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
            listed: BTreeMap::new(),
            open: BTreeMap::new(),
            tasks,
        }
    }

    /// Follows the Services and the life of the machine.
    pub(super) async fn run(mut self) {
        let services: Api<Service> = Api::all(self.client.clone());
        let events = watcher(services, watcher::Config::default());
        let mut events = std::pin::pin!(events.default_backoff());
        let mut all_open = true;
        loop {
            let is_news = tokio::select! {
                biased;
                event = events.next() => match event {
                    Some(Ok(event)) => self.take(event),
                    Some(Err(error)) => {
                        // The watcher begins anew by itself.
                        tracing::debug!(node = self.node, %error, "a watch broke");
                        false
                    }
                    None => return,
                },
                changed = self.life.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    true
                }
                () = sleep(AGAIN), if !all_open => true,
            };
            if is_news {
                all_open = self.reconcile().await;
            }
        }
    }

    /// Whether the Services may be others now. A list counts once it is whole: before, what it has not shown yet
    /// would look gone.
    fn take(&mut self, event: Event<Service>) -> bool {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(service) => {
                self.listed.insert(key(&service), service);
            }
            Event::InitDone => {
                self.services = std::mem::take(&mut self.listed);
                return true;
            }
            Event::Apply(service) => {
                self.services.insert(key(&service), service);
                return true;
            }
            Event::Delete(service) => return self.services.remove(&key(&service)).is_some(),
        }
        false
    }

    /// Opens and closes ports until they are as they should be; false if one could not be had.
    async fn reconcile(&mut self) -> bool {
        let life = self.life.borrow_and_update().clone();
        let wanted = self.wanted(&life);
        self.open.retain(|port, open| {
            let keep = open.at.ip() == life.address && wanted.contains_key(port);
            if !keep {
                open.stop.cancel();
            }
            keep
        });
        let mut all_open = true;
        for (port, answer) in wanted {
            if let Some(open) = self.open.get(&port) {
                open.answer.send_replace(answer);
                continue;
            }
            let at = SocketAddr::new(life.address, port.1);
            let (answer, reported) = watch::channel(answer);
            let stop = CancellationToken::new();
            match listen(port.0, at, reported, &stop, &self.tasks).await {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Runs;
    use super::*;
    use crate::EmbeddedApi;

    fn service(name: &str, node_port: u16) -> Service {
        let service = json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": node_port}]},
        });
        serde_json::from_value(service).unwrap()
    }

    #[tokio::test]
    async fn nothing_looks_gone_while_the_services_are_listed_anew() {
        let life = Life {
            health: Health::Ready,
            address: [127, 0, 0, 1].into(),
            runs: Runs::default(),
        };
        let (_life, seen) = watch::channel(life.clone());
        let client = EmbeddedApi::new().client("kubelet");
        let mut ports = Ports::new(client, "n".to_owned(), seen, TaskTracker::new());
        for (event, is_news, wanted) in [
            (
                Event::Apply(service("a", 30_001)),
                true,
                [30_001].as_slice(),
            ),
            (Event::Init, false, &[30_001]),
            (Event::InitApply(service("b", 30_002)), false, &[30_001]),
            (Event::InitApply(service("c", 30_003)), false, &[30_001]),
            (Event::InitDone, true, &[30_002, 30_003]),
            (
                Event::Delete(service("a", 30_001)),
                false,
                &[30_002, 30_003],
            ),
            (Event::Delete(service("b", 30_002)), true, &[30_003]),
        ] {
            let reported = format!("{event:?}");
            assert_eq!(ports.take(event), is_news, "{reported}");
            let open: Vec<u16> = ports.wanted(&life).keys().map(|(_, port)| *port).collect();
            assert_eq!(open, wanted, "{reported}");
        }
    }
}
