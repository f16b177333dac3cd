//! A cluster: the embedded API, and controllers that reach it through a gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cloudkeel_api::TokioClock;
use cloudkeel_controllers::view::SlimNode;
use cloudkeel_embedded::EmbeddedApi;
use futures::Stream;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::Duration;

use super::clock::ServerClock;
use super::gate::{Gate, What, Write};
use super::world::World;

/// An event in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedEvent {
    pub(crate) source: String,
    pub(crate) reason: String,
    /// The name of the Node or the Service.
    pub(crate) about: String,
    pub(crate) message: String,
    /// How often.
    pub(crate) count: u64,
    name: String,
}

/// Clones are the same cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    api: EmbeddedApi,
    world: World,
    gate: Arc<Gate>,
    /// Where in the journal begins what is not forgotten.
    remembered: Arc<AtomicUsize>,
}

impl Cluster {
    pub(crate) fn new(clock: TokioClock) -> Self {
        let clock = Arc::new(ServerClock::new(clock));
        let api = EmbeddedApi::builder()
            .clock(Arc::<ServerClock>::clone(&clock))
            .keep_journal()
            .build();
        let world = World {
            direct: api.direct_client("another-client"),
            clock,
            skew: Arc::default(),
        };
        Self {
            api,
            gate: Arc::new(Gate::new(world.clone())),
            world,
            remembered: Arc::default(),
        }
    }

    /// What all other clients do.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// The client of the controllers.
    pub(crate) fn client(&self) -> Client {
        let gate = Arc::<Gate>::clone(&self.gate);
        self.api.client_through("cloudkeel", gate)
    }

    /// Lists all Nodes and goes on with every change.
    pub(crate) fn watch_nodes(
        &self,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<SlimNode>>> + use<> {
        let nodes = Api::<SlimNode>::all(self.client());
        watcher(nodes, watcher::Config::default()).default_backoff()
    }

    /// Lists all Services and goes on with every change.
    pub(crate) fn watch_services(
        &self,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<Service>>> + use<> {
        let services = Api::<Service>::all(self.client());
        watcher(services, watcher::Config::default()).default_backoff()
    }

    /// Does something right before the next such request is carried out.
    pub(crate) fn before(&self, what: What, deed: impl FnOnce(&World) + Send + 'static) {
        self.gate.plan(what, Box::new(deed));
    }

    /// Refuses the next such request with this HTTP status.
    pub(crate) fn refuse(&self, what: What, status: u16) {
        self.gate.refuse(what, status);
    }

    /// From now on nothing is refused that was planned to be.
    pub(crate) fn end_refusals(&self) {
        self.gate.end_refusals();
    }

    /// Every write of the controllers so far, also those that were refused.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.gate.writes()
    }

    /// How long the cluster is there.
    pub(crate) fn elapsed(&self) -> Duration {
        self.gate.elapsed()
    }

    /// When which Node was deleted by request.
    pub(crate) fn deletions(&self) -> Vec<(String, Duration)> {
        let writes = self.writes().into_iter();
        writes
            .filter(|write| write.what == What::Delete && write.status == 200)
            .map(|write| (write.name, write.at))
            .collect()
    }

    /// The events with this reason, oldest first.
    pub(crate) fn events(&self, reason: &str) -> Vec<RecordedEvent> {
        let journal = self
            .api
            .journal_from(self.remembered.load(Ordering::SeqCst));
        let mut all: Vec<RecordedEvent> = Vec::new();
        for commit in journal.iter().filter(|commit| commit.resource == "events") {
            let Some(event) = &commit.after else { continue };
            let events = events(event);
            match all.iter_mut().find(|known| known.name == events.name) {
                Some(known) => *known = events,
                None => all.push(events),
            }
        }
        all.retain(|events| events.reason == reason);
        all
    }

    /// Forgets what was written and recorded.
    pub(crate) fn forget(&self) {
        self.gate.forget();
        self.world.forget_events();
        let so_far = self.api.journal().len();
        self.remembered.store(so_far, Ordering::SeqCst);
    }
}

fn events(event: &Value) -> RecordedEvent {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    RecordedEvent {
        source: text(&event["source"]["component"]),
        reason: text(&event["reason"]),
        about: text(&event["involvedObject"]["name"]),
        message: text(&event["message"]),
        count: event["count"].as_u64().unwrap(),
        name: text(&event["metadata"]["name"]),
    }
}
